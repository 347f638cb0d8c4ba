//! Addresses and times at the ends of their ranges: what was written is the same file after it was read and written
//! again.

use super::Writer;
use crate::formats::firefox::FORMAT;
use crate::formats::losses::{LossKind, Losses};
use crate::formats::testing::{name_of, read, rprof_profile};
use crate::formats::write::Writer as _;
use crate::model::{Address, Location, Mapping, Profile, Source};
use serde_json::Value;

fn write(profile: &Profile) -> (String, Losses) {
    let mut out = Vec::new();
    let losses = Writer::default().write(profile, &mut out, &|| false);
    (String::from_utf8(out).unwrap(), losses.unwrap())
}

/// One sample at an address without a function, in a library.
fn at_address(address: u64, start: u64) -> Profile {
    let mut profile = rprof_profile("sample.interval=20000\n\"f\" \n");
    let file = profile.strings.intern("lib.so").unwrap();
    let empty = profile.strings.intern("").unwrap();
    let mapping = Mapping {
        start,
        ..Mapping::of_file(file, empty)
    };
    let mapping = Some(profile.add_mapping(mapping).unwrap());
    let address = Address {
        mapping,
        address,
        ..Address::default()
    };
    let location = Location {
        address: profile.intern_address(address).unwrap(),
        ..Location::default()
    };
    let location = profile.locations.intern(location).unwrap();
    profile.samples.stack[0] = profile.stacks.intern(&[location]).unwrap();
    profile
}

/// The address of the only frame in a file.
fn address_in(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    value["shared"]["frameTable"]["address"][0].clone()
}

#[test]
fn the_start_of_a_library_keeps_its_name() {
    let (text, _) = write(&at_address(0x1000, 0x1000));
    assert_eq!(address_in(&text), 0);
    let (back, _) = read(&FORMAT, &text);
    let stack = back.stacks.get(back.samples.stack[0]).to_vec().unwrap();
    assert_eq!(name_of(&back, stack[0]), "0x1000");
    let (again, _) = write(&back);
    assert_eq!(write(&read(&FORMAT, &again).0).0, again);
}

#[test]
fn an_address_that_a_double_cannot_represent_is_not_written() {
    let (text, _) = write(&at_address(1 << 62, 0));
    assert_eq!(address_in(&text), 1u64 << 62);
    let (text, _) = write(&at_address((1 << 62) + 1, 0));
    assert_eq!(address_in(&text), -1);
    let (text, _) = write(&at_address(i64::MAX as u64, 0));
    assert_eq!(address_in(&text), -1);
    read(&FORMAT, &text);
}

#[test]
fn times_that_are_too_far_apart_are_reported() {
    let mut profile = rprof_profile("sample.interval=20000\n\"f\" \n\"g\" \n");
    profile.sources[0].time = Some(8_000_000_000_000_000_000);
    profile.samples.times = vec![
        (0, 8_000_000_001_000_000_000),
        (1, -8_000_000_000_000_000_000),
    ];
    let (text, losses) = write(&profile);
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(LossKind::FarTime, 1)]);
    let deltas = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        value["threads"][0]["samples"]["timeDeltas"].clone()
    };
    // The second sample follows the first one.
    assert_eq!(deltas(&text), serde_json::json!([1000, 20]));
    let (back, _) = read(&FORMAT, &text);
    assert_eq!(deltas(&write(&back).0), deltas(&text));
}

#[test]
fn a_source_that_began_long_after_another_one_has_no_start() {
    let mut profile = rprof_profile("sample.interval=20000\n\"f\" \n");
    profile.sources[0].time = Some(i64::MIN + 1);
    let source = Source {
        time: Some(i64::MAX),
        ..profile.sources[0].clone()
    };
    profile.add_source(source).unwrap();
    let (text, losses) = write(&profile);
    assert_eq!(losses.iter().collect::<Vec<_>>(), [(LossKind::FarTime, 1)]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["threads"][1]["registerTime"], 0);
}
