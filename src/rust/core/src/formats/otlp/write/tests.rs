//! What was written is written again as the same bytes after it was read.

use super::Writer;
use crate::formats::otlp::FORMAT;
use crate::formats::testing::{read, rprof_profile};
use crate::formats::write::Writer as _;
use crate::model::{Address, Label, Location, Mapping, Profile};

fn bytes(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::default()
        .write(profile, &mut out, &|| false)
        .unwrap();
    out
}

/// Three samples. The first one has a label, the others have an address in mappings that are equal. `unused` is the
/// name of a third mapping.
fn with_equal_mappings(unused: Option<&str>) -> Profile {
    let mut profile = rprof_profile("sample.interval=20000\n\"f\" \n\"g\" \n\"h\" \n");
    let [file, id, key] = ["lib.so", "a1", "key"].map(|text| profile.strings.intern(text).unwrap());
    for row in [1, 2] {
        let mapping = profile.add_mapping(Mapping::of_file(file, id)).unwrap();
        let address = Address {
            mapping: Some(mapping),
            address: 0x1000,
            ..Address::default()
        };
        let location = Location {
            address: profile.intern_address(address).unwrap(),
            ..Location::default()
        };
        let location = profile.locations.intern(location).unwrap();
        profile.samples.stack[row] = profile.stacks.intern(&[location]).unwrap();
    }
    if let Some(name) = unused {
        let name = profile.strings.intern(name).unwrap();
        profile.add_mapping(Mapping::of_file(name, id)).unwrap();
    }
    profile.labels.push(Label {
        sample: 0,
        key,
        str: Some(id),
        num: None,
        unit: None,
        other: None,
    });
    profile
}

#[test]
fn equal_mappings_become_one_without_a_change_of_the_order_of_attributes() {
    let first = bytes(&with_equal_mappings(None));
    let (second, _) = read(&FORMAT, &first);
    assert_eq!(second.mappings.len(), 1);
    assert_eq!(bytes(&second), first);
}

#[test]
fn unused_mappings_have_their_place_among_those_that_are_read() {
    let first = bytes(&with_equal_mappings(Some("unused.so")));
    let (second, _) = read(&FORMAT, &first);
    let names = second.mappings.iter();
    let names: Vec<_> = names.map(|m| second.strings.get(m.filename)).collect();
    assert_eq!(names, ["lib.so", "unused.so"]);
    assert_eq!(bytes(&second), first);
}
