//! Damaged messages: for any bytes, the reader returns a profile or an error with its position.

use super::message::*;
use super::references::each_index;
use super::wire::{Form, Packing, decode, encode, encode_as};
use super::{json::to_json, nodes::*, whole::whole};
use data_encoding::HEXLOWER;
use flate2::{Compression, write::GzEncoder};
use profile_core::error::{Error, Position, Result};
use profile_core::formats::otlp::{self, Writer};
use profile_core::formats::{self, Input, Writer as _};
use profile_core::io::input::Origin;
use profile_core::model::Profile;
use std::io::Write;

pub fn try_read(bytes: &[u8]) -> Result<Profile> {
    let origin = Origin {
        name: "input".to_owned(),
        ..Origin::default()
    };
    formats::read(Input::Bytes(bytes), Some(&otlp::FORMAT), origin, &|| false)
        .map(|(profile, _)| profile)
}

/// Expects an error, and returns its position and message.
pub fn refused(bytes: &[u8]) -> (Position, String) {
    match try_read(bytes) {
        Err(Error::Parse {
            position, message, ..
        }) => (position, message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it can be read"),
    }
}

/// A message with all kinds of content that a version supports.
pub fn message(layout: Layout) -> Data {
    let mut data = whole();
    if layout != Layout::V11 {
        let note = AnyValue::String("note".to_owned());
        data.dictionary.attribute_table[6].value = AnyValue::Array(vec![note]);
    }
    data
}

pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&length.to_be_bytes(), bytes].concat()
}

fn json() -> String {
    to_json(&whole()).to_string()
}

/// The message in all its encodings.
fn codings() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = LAYOUTS
        .map(|layout| encode(&message(layout), layout))
        .into();
    all.push([frame(&all[1]), frame(&all[1])].concat());
    all.push(json().into_bytes());
    all.push(format!("{}\n{}\n", json(), json()).into_bytes());
    all
}

/// Returns whether part of a message can be read. If not, the position of the error must be in it.
fn survives(bytes: &[u8]) -> bool {
    match try_read(bytes) {
        Ok(_) => return true,
        Err(Error::Parse {
            position, message, ..
        }) => match position {
            Position::Byte(at) => assert!(at <= bytes.len() as u64, "{at}: {message}"),
            Position::Line(line) => assert!((1..=2).contains(&line), "{line}: {message}"),
            Position::Field(path) => assert!(path.len() > 5, "{path}: {message}"),
            Position::Sample(_) => panic!("{message}"),
        },
        Err(Error::Foreign(_) | Error::Unsupported(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
    false
}

#[test]
fn a_message_cut_anywhere_is_refused() {
    for bytes in codings() {
        assert!(survives(&bytes));
        let whole: Vec<_> = (0..bytes.len())
            .filter(|&e| survives(&bytes[..e]))
            .collect();
        // A file that is cut between two messages is complete.
        let between: Vec<_> = match bytes[0] {
            0 => vec![bytes.len() / 2],
            b'{' if bytes.ends_with(b"\n") => {
                vec![bytes.len() / 2 - 1, bytes.len() / 2, bytes.len() - 1]
            }
            _ => vec![],
        };
        assert_eq!(whole, between);
    }
    // With the dictionary first, the dictionary alone is a message without profiles.
    let mut form = Form::plain(Layout::V11);
    form.reversed = true;
    let bytes = encode_as(&whole(), form);
    let whole: Vec<_> = (0..bytes.len())
        .filter(|&e| survives(&bytes[..e]))
        .collect();
    let tables = encode(
        &Data {
            dictionary: super::whole::whole().dictionary,
            ..Data::default()
        },
        Layout::V11,
    );
    assert_eq!(whole, [tables.len()]);
}

#[test]
fn a_bit_of_any_byte_may_be_wrong() {
    for (number, bytes) in codings().into_iter().take(4).enumerate() {
        bits_may_be_wrong(&bytes, |at, bit| (at + number) % 8 == bit, |at| at % 8 == 0);
    }
}

#[test]
#[ignore = "thorough"]
fn any_bit_may_be_wrong() {
    for bytes in codings().into_iter().take(4) {
        bits_may_be_wrong(&bytes, |_, _| true, |_| true);
    }
}

/// Changes bits, and writes what can still be read after changes of some bytes.
fn bits_may_be_wrong(
    bytes: &[u8],
    changes: impl Fn(usize, usize) -> bool,
    writes: impl Fn(usize) -> bool,
) {
    let (mut tried, mut read, mut damaged) = (0, 0, bytes.to_vec());
    for at in 0..bytes.len() {
        for bit in (0..8).filter(|&bit| changes(at, bit)) {
            tried += 1;
            damaged[at] ^= 1 << bit;
            if survives(&damaged) {
                read += 1;
                if writes(at) {
                    written_again(&try_read(&damaged).unwrap());
                }
            }
            damaged[at] = bytes[at];
        }
    }
    assert!(read > tried / 8 && read < tried, "{read} of {tried}");
}

/// A profile that was read can be written and read back unchanged, or the writer returns an error.
fn written_again(profile: &Profile) {
    for json in [false, true] {
        let options = Writer {
            json,
            ..Writer::default()
        };
        let write = |profile: &Profile| {
            let mut out = Vec::new();
            match options.write(profile, &mut out, &|| false) {
                Ok(_) => Some(out),
                Err(Error::Lossy(_)) => None,
                Err(other) => panic!("{other}"),
            }
        };
        if let Some(out) = write(profile) {
            assert_eq!(write(&try_read(&out).unwrap()), Some(out));
        }
    }
}

const TABLES: [&str; 7] = [
    "Mapping",
    "Location",
    "Function",
    "Link",
    "String",
    "Attribute",
    "Stack",
];

/// Changes index number `at` of the message. Returns the message, the table that the index refers
/// to, and the path of the index in JSON; `None` if there are fewer indices.
fn with_index(at: usize, index: i32) -> Option<(Data, &'static str, String)> {
    let mut data = whole();
    let (mut seen, mut changed) = (0, None);
    each_index(&mut data, "", &mut |table, old, place| {
        if seen == at {
            *old = index;
            changed = Some((TABLES[table], place.trim_start_matches('.').to_owned()));
        }
        seen += 1;
    });
    changed.map(|(table, place)| (data, table, place))
}

#[test]
fn an_index_that_is_out_of_range_is_told_with_its_table_and_place() {
    // Bytes that occur nowhere else in the message.
    const FAR: i32 = 77_777;
    const BYTES: [u8; 3] = [0xd1, 0xdf, 0x04];
    let mut count = 0;
    while let Some((data, table, path)) = with_index(count, FAR) {
        let told = format!("{table} index {FAR} is out of range (table size: ");
        let bytes = encode(&data, Layout::V11);
        let index = bytes.windows(3).position(|w| w == BYTES).unwrap();
        let (place, message) = refused(&bytes);
        let Position::Byte(at) = place else {
            panic!("{place}")
        };
        assert!(message.starts_with(&told), "{path}: {message}");
        // The position is in the row that contains the index.
        let at = at as usize;
        assert!((at..at + 200).contains(&index), "{path}: {at} {index}");

        let (place, message) = refused(to_json(&data).to_string().as_bytes());
        assert!(message.starts_with(&told), "{path}: {message}");
        let place = place.to_string();
        // Within values, the paths of the test have other names.
        let row = path.split(".value").next().unwrap();
        let told = place.split(".value").next().unwrap();
        assert!(row.starts_with(told), "{path}: {place}");
        assert!(place.contains('['), "{path}: {place}");

        for index in [-1, i32::MAX] {
            let (data, ..) = with_index(count, index).unwrap();
            let (_, message) = refused(&encode(&data, Layout::V11));
            let told = format!("{table} index {index} is out of range");
            assert!(message.starts_with(&told), "{path}: {message}");
        }
        count += 1;
    }
    assert!(count > 40, "{count}");
}

#[test]
fn version_1_8_is_refused() {
    let mut lines = include_str!("golden/v8.txt").lines();
    let bytes = HEXLOWER.decode(lines.next().unwrap().as_bytes()).unwrap();
    let json = lines.next().unwrap().as_bytes();
    // Without the fields that only this version has, names of other fields still tell.
    let plain = br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample":[]}]}]}]}"#;
    for old in [&bytes, json, plain, &[plain, &b"\n"[..], plain].concat()] {
        match try_read(old) {
            Err(Error::Unsupported(message)) => {
                assert!(message.contains("is of version 1.8 or older"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_field_of_another_type_is_told_with_its_byte() {
    for layout in LAYOUTS {
        let tree = tree(&mut message(layout), layout);
        let (mut told, mut foreign) = (0, 0);
        for at in 0..count(&tree) {
            for wrong in [Kind::Varint, Kind::Fixed64, Kind::Bytes] {
                let (bytes, node) = mistyped(&tree, at, wrong);
                let Some(node) = node else { continue };
                let wanted = format!("Field {} should hold ", node.number);
                match try_read(&bytes) {
                    Err(Error::Parse {
                        position, message, ..
                    }) => {
                        assert_eq!(
                            position,
                            Position::Byte(node.at),
                            "{}: {message}",
                            node.path
                        );
                        assert!(message.starts_with(&wanted), "{}: {message}", node.path);
                        told += 1;
                    }
                    // The field has this type in another version, which may not be supported.
                    Err(Error::Unsupported(_)) if node.path.contains(".profiles.") => {}
                    Err(Error::Foreign(error)) if error.found.contains("pprof") => foreign += 1,
                    other => panic!("{} as {wrong:?}: {other:?}", node.path),
                }
            }
        }
        // The format is detected by the first byte of a resource, which may now look like a
        // sample type of pprof.
        assert!(told > 200 && foreign < 4, "{told} {foreign}");
    }
}

#[test]
fn numbers_may_be_too_long() {
    let bytes = encode(&whole(), Layout::V11);
    // A length of 2^63, a tag of ten bytes, a number of eleven bytes.
    let ends: [(&[u8], usize, &str); 5] = [
        (
            b"\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            11,
            "A field of 9223372036854775808 bytes",
        ),
        (
            b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            1,
            "A number of more than ten bytes",
        ),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",
            0,
            "There is no field number 2305843009213693951.",
        ),
        (b"\x18\xff\xff", 1, "An incomplete number starts here."),
        (b"\x07", 0, "There is no field number 0."),
    ];
    for (end, at, told) in ends {
        let (place, message) = refused(&[&bytes, end].concat());
        assert_eq!(
            place,
            Position::Byte((bytes.len() + at) as u64),
            "{message}"
        );
        assert!(message.starts_with(told), "{message}");
    }
    // A number with all 64 bits set is valid.
    assert!(
        try_read(&[&bytes[..], b"\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"].concat()).is_ok()
    );
}

#[test]
fn a_second_dictionary_is_refused() {
    let bytes = encode(&whole(), Layout::V11);
    let (place, message) = refused(&[&bytes[..], &bytes].concat());
    let start = bytes.len() as u64;
    let Position::Byte(at) = place else {
        panic!("{place}")
    };
    assert!(at > start, "{at}");
    assert!(message.starts_with("A second dictionary."), "{message}");
    let (place, message) = refused(br#"{"dictionary":{},"dictionary":{}}"#);
    assert_eq!(place, Position::Line(1));
    assert!(message.contains("`dictionary` occurs twice"), "{message}");
}

#[test]
fn a_row_of_zeros_is_no_message() {
    assert!(try_read(&[0; 4000]).is_err());
    // Zeros after a message are invalid, too.
    let bytes = frame(&encode(&whole(), Layout::V11));
    assert!(try_read(&bytes).is_ok());
    assert!(try_read(&[&bytes[..], &[0; 400]].concat()).is_err());
}

#[test]
fn values_are_nested_100_times() {
    type Wrap = fn(AnyValue) -> AnyValue;
    let wraps: [Wrap; 2] = [
        |value| AnyValue::Array(vec![value]),
        |value| {
            let key = "k".to_owned();
            let pair = KeyValue {
                key,
                value,
                ..KeyValue::default()
            };
            AnyValue::Kvlist(vec![pair])
        },
    ];
    for wrap in wraps {
        for depth in [1, 42, 99, 100, 101, 1000] {
            let nested = (0..depth).fold(AnyValue::Int(7), |value, _| wrap(value));
            let mut data = whole();
            data.dictionary.attribute_table[8].value = nested;
            let json = to_json(&data).to_string().into_bytes();
            for bytes in [encode(&data, Layout::V11), json] {
                if depth > 100 {
                    let message = refused(&bytes).1;
                    assert!(message.contains("nested more than 100 times"), "{message}");
                    continue;
                }
                let profile = try_read(&bytes).unwrap();
                written_again(&profile);
                let value = profile.labels.iter().find_map(|label| label.other).unwrap();
                let text = profile.strings.get(value.text);
                assert!(text.contains("\"intValue\":\"7\""), "{depth}: {text}");
                let mut out = Vec::new();
                Writer::default()
                    .write(&profile, &mut out, &|| false)
                    .unwrap();
                let again = decode(&out, Layout::V11).unwrap();
                assert_eq!(depth_of(&again), depth);
            }
        }
    }
}

/// The maximum depth of the values in the attribute table.
fn depth_of(data: &Data) -> usize {
    fn depth(value: &AnyValue) -> usize {
        match value {
            AnyValue::Array(all) => 1 + all.iter().map(depth).max().unwrap_or(0),
            AnyValue::Kvlist(all) => 1 + all.iter().map(|p| depth(&p.value)).max().unwrap_or(0),
            _ => 0,
        }
    }
    let entries = data.dictionary.attribute_table.iter();
    entries.map(|entry| depth(&entry.value)).max().unwrap_or(0)
}

#[test]
fn gzip_may_be_cut_or_go_on() {
    let bytes = encode(&whole(), Layout::V11);
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let whole = gzip(&bytes);
    assert!(try_read(&whole).is_ok());
    for end in 2..whole.len() {
        let message = refused(&whole[..end]).1;
        assert!(
            message.starts_with("The gzip data end early."),
            "{end}: {message}"
        );
    }
    // Concatenated gzip members have one content, wherever it is split.
    for cut in [0, 1, 100, bytes.len()] {
        let members = [gzip(&bytes[..cut]), gzip(&bytes[cut..])].concat();
        assert!(try_read(&members).is_ok(), "{cut}");
    }
    let message = refused(&[&whole[..], b"garbage that goes on"].concat()).1;
    assert!(
        message.starts_with("The data cannot be read any further: "),
        "{message}"
    );
    let mut wrong = whole.clone();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 0x55;
    assert!(try_read(&wrong).is_err());
}

#[test]
fn numbers_alone_or_packed_may_be_cut() {
    for packing in [Packing::Single, Packing::Mixed] {
        let mut form = Form::plain(Layout::V11);
        form.packing = packing;
        let bytes = encode_as(&whole(), form);
        assert!((0..bytes.len()).all(|end| !survives(&bytes[..end])));
    }
}
