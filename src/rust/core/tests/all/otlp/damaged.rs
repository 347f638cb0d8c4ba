//! Damaged messages: for any bytes, the reader returns a profile or an error with its position.

use super::broken::edited;
use super::message::*;
use super::wire::{Form, Packing, decode, encode, encode_as, mistyped};
use super::{read, refused, try_read, try_write, whole, write, writer};
use data_encoding::HEXLOWER;
use flate2::{Compression, write::GzEncoder};
use profile_core::error::{Error, Position};
use profile_core::model::Profile;
use serde_json::{Value, json};
use std::io::Write;

/// A message with all kinds of content that a version supports.
fn message(layout: Layout) -> Value {
    let mut data = whole();
    if layout != Layout::V11 {
        data["dictionary"]["attributeTable"][6]["value"]["arrayValue"]["values"] =
            json!([{"stringValue": "note"}]);
    }
    data
}

pub fn frame(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&length.to_be_bytes(), bytes].concat()
}

/// The message in all its encodings.
fn codings() -> Vec<Vec<u8>> {
    let mut all: Vec<_> = LAYOUTS
        .map(|layout| encode(&message(layout), layout))
        .into();
    all.push([frame(&all[1]), frame(&all[1])].concat());
    let json = whole().to_string();
    all.push(json.clone().into_bytes());
    all.push(format!("{json}\n{json}\n").into_bytes());
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

/// The places where a message can be cut, and is then another message.
fn cuts(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len())
        .filter(|&end| survives(&bytes[..end]))
        .collect()
}

#[test]
fn a_message_cut_anywhere_is_refused() {
    for bytes in codings() {
        assert!(survives(&bytes));
        // A file that is cut between two messages is complete.
        let between: Vec<_> = match bytes[0] {
            0 => vec![bytes.len() / 2],
            b'{' if bytes.ends_with(b"\n") => {
                vec![bytes.len() / 2 - 1, bytes.len() / 2, bytes.len() - 1]
            }
            _ => vec![],
        };
        assert_eq!(cuts(&bytes), between);
    }
    // With the dictionary first, the dictionary alone is a message without profiles.
    let plain = Form::plain(Layout::V11);
    let bytes = encode_as(
        &whole(),
        Form {
            reversed: true,
            ..plain
        },
    );
    let tables = encode(&json!({"dictionary": whole()["dictionary"]}), Layout::V11);
    assert_eq!(cuts(&bytes), [tables.len()]);
    for packing in [Packing::Single, Packing::Mixed] {
        let form = Form { packing, ..plain };
        assert!(cuts(&encode_as(&whole(), form)).is_empty());
    }
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
    let (mut tried, mut kept, mut damaged) = (0, 0, bytes.to_vec());
    for at in 0..bytes.len() {
        for bit in (0..8).filter(|&bit| changes(at, bit)) {
            tried += 1;
            damaged[at] ^= 1 << bit;
            if survives(&damaged) {
                kept += 1;
                if writes(at) {
                    written_again(&read(&damaged));
                }
            }
            damaged[at] = bytes[at];
        }
    }
    assert!(kept > tried / 8 && kept < tried, "{kept} of {tried}");
}

/// A profile that was read can be written and read back unchanged, or the writer returns an error.
fn written_again(profile: &Profile) {
    for json in [false, true] {
        let write = |profile: &Profile| match try_write(profile, &writer(false, json)) {
            Ok(out) => Some(out),
            Err(Error::Lossy(_)) => None,
            Err(other) => panic!("{other}"),
        };
        if let Some(out) = write(profile) {
            assert_eq!(write(&read(&out)), Some(out));
        }
    }
}

/// Changes index number `at` of the message. Returns the message, the table that the index refers to, and the path of the
/// index in JSON; `None` if there are fewer indices.
fn with_index(at: usize, index: i32) -> Option<(Value, String, String)> {
    let mut data = whole();
    let (mut seen, mut changed) = (0, None);
    each_index(&mut data, "Data", "", &mut |table, place, old| {
        if seen == at {
            *old = json!(index);
            let name = table.trim_end_matches("Table");
            let name = [&name[..1].to_uppercase(), &name[1..]].concat();
            changed = Some((name, place.trim_start_matches('.').to_owned()));
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

        let (place, message) = refused(data.to_string().as_bytes());
        assert!(message.starts_with(&told), "{path}: {message}");
        let place = place.to_string();
        // Within values, the paths of the test have other names.
        let row = path.split(".value").next().unwrap();
        let told = place.split(".value").next().unwrap();
        assert!(
            row.starts_with(told) && place.contains('['),
            "{path}: {place}"
        );

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
fn values_and_times_have_the_same_length() {
    for (edit, told) in [
        ("sample/values += \"1\"", "has 3 values, but 2 times."),
        ("sample/values -= 1", "has 1 values, but 2 times."),
    ] {
        let (_, message) = refused(&encode(&edited(edit), Layout::V11));
        assert!(message.ends_with(told), "{message}");
    }
}

#[test]
fn version_1_8_is_refused() {
    let (hex, json) = include_str!("golden/v8.txt").split_once('\n').unwrap();
    let bytes = HEXLOWER.decode(hex.as_bytes()).unwrap();
    // Without the fields that only this version has, names of other fields still tell.
    let plain = br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample":[]}]}]}]}"#;
    for old in [
        &bytes,
        json.trim_end().as_bytes(),
        plain,
        &[plain, &b"\n"[..], plain].concat(),
    ] {
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
        let data = message(layout);
        let (mut told, mut foreign) = (0, 0);
        let all = (0..).map_while(|at| {
            let three = [0, 1, 2].map(|wire| mistyped(&data, layout, at, wire));
            three[0].is_some().then_some(three)
        });
        for (bytes, changed) in all.flatten().flatten() {
            let Some(field) = changed else { continue };
            let wanted = format!("Field {} should hold ", field.number);
            match try_read(&bytes) {
                Err(Error::Parse {
                    position, message, ..
                }) => {
                    assert_eq!(
                        position,
                        Position::Byte(field.at),
                        "{}: {message}",
                        field.path
                    );
                    assert!(message.starts_with(&wanted), "{}: {message}", field.path);
                    told += 1;
                }
                // The field has this type in another version, which may not be supported.
                Err(Error::Unsupported(_)) if field.path.contains(".profiles.") => {}
                Err(Error::Foreign(error)) if error.found.contains("pprof") => foreign += 1,
                other => panic!("{}: {other:?}", field.path),
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
    read(&[&bytes[..], b"\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"].concat());
}

#[test]
fn what_is_there_twice_or_is_zeros_is_refused() {
    let bytes = encode(&whole(), Layout::V11);
    let (place, message) = refused(&[&bytes[..], &bytes].concat());
    assert!(
        matches!(place, Position::Byte(at) if at > bytes.len() as u64),
        "{place}"
    );
    assert!(message.starts_with("A second dictionary."), "{message}");
    let (place, message) = refused(br#"{"dictionary":{},"dictionary":{}}"#);
    assert_eq!(place, Position::Line(1));
    assert!(message.contains("`dictionary` occurs twice"), "{message}");
    assert!(try_read(&[0; 4000]).is_err());
    // A message with only an unknown field.
    assert!(try_read(&[0x7a, 0x01, 0x02]).is_err());
    // Zeros after a message are invalid, too.
    let bytes = frame(&bytes);
    read(&bytes);
    assert!(try_read(&[&bytes[..], &[0; 400]].concat()).is_err());
}

#[test]
fn values_are_nested_100_times() {
    let wraps: [fn(Value) -> Value; 2] = [
        |value| json!({"arrayValue": {"values": [value]}}),
        |value| json!({"kvlistValue": {"values": [{"key": "k", "value": value}]}}),
    ];
    for wrap in wraps {
        for depth in [1, 42, 99, 100, 101, 1000] {
            let nested = (0..depth).fold(json!({"intValue": "7"}), |value, _| wrap(value));
            let mut data = whole();
            data["dictionary"]["attributeTable"][8]["value"] = nested;
            let json = data.to_string();
            for bytes in [encode(&data, Layout::V11), json.clone().into_bytes()] {
                if depth > 100 {
                    let message = refused(&bytes).1;
                    assert!(message.contains("nested more than 100 times"), "{message}");
                    continue;
                }
                let profile = read(&bytes);
                written_again(&profile);
                let value = profile.labels.iter().find_map(|label| label.other).unwrap();
                let text = profile.strings.get(value.text);
                assert!(text.contains("\"intValue\":\"7\""), "{depth}: {text}");
                let again = decode(&write(&profile), Layout::V11).unwrap().to_string();
                let levels = |text: &str| text.matches("\"values\":[{").count();
                assert!(levels(&again) >= depth, "{}", levels(&again));
            }
        }
    }
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
    read(&whole);
    for end in 2..whole.len() {
        let message = refused(&whole[..end]).1;
        assert!(
            message.starts_with("The gzip data end early."),
            "{end}: {message}"
        );
    }
    // Concatenated gzip members have one content, wherever it is split.
    for cut in [0, 1, 100, bytes.len()] {
        read(&[gzip(&bytes[..cut]), gzip(&bytes[cut..])].concat());
    }
    let message = refused(&[&whole[..], b"garbage that goes on"].concat()).1;
    assert!(
        message.starts_with("The data cannot be read any further: "),
        "{message}"
    );
    let mut wrong = whole.clone();
    wrong[whole.len() / 2] ^= 0x55;
    assert!(try_read(&wrong).is_err());
}
