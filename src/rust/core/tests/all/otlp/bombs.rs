//! Small messages that could expand to a lot of data, and large messages that could take quadratic time: time and memory
//! must stay proportional to the number of bytes.

use super::damaged::frame;
use super::wire::{delimited, part};
use super::{read, read_until, refused, try_read, try_write, writer};
use profile_core::error::{Error, Position};
use profile_core::model::Profile;
use serde_json::{Value, json};

const TOO_MANY: &str =
    "The content up to here has too many frames, attributes, texts and sources for a";
const TOO_LONG: &str = "The strings up to here are too long for this file.";

/// Parts of a message, as their encoded fields: `samples` of a profile, `profiles` of a scope, `rows` of the dictionary.
fn profile(samples: &[u8]) -> Vec<u8> {
    let types = part(
        1,
        "ValueType",
        &json!({"typeStrindex": 1, "unitStrindex": 2}),
    );
    delimited(2, &[&types, samples].concat())
}

fn message(profiles: &[u8], rows: &[u8]) -> Vec<u8> {
    [delimited(1, &delimited(2, profiles)), delimited(2, rows)].concat()
}

fn sample(value: Value) -> Vec<u8> {
    part(2, "Sample", &value)
}

/// A profile that differs from others by its duration.
fn one_of_many(i: usize) -> Vec<u8> {
    let sample = json!({"values": ["1"]});
    part(
        2,
        "Profile",
        &json!({"durationNano": i.to_string(), "samples": [sample]}),
    )
}

fn strings(texts: &[&str]) -> Vec<u8> {
    ["", "samples", "count"]
        .iter()
        .chain(texts)
        .flat_map(|text| delimited(5, text.as_bytes()))
        .collect()
}

fn attribute(value: &Value) -> Vec<u8> {
    [
        part(6, "KeyValueAndUnit", &json!({})),
        part(6, "KeyValueAndUnit", value),
    ]
    .concat()
}

/// Expects an error for a message, at one of its bytes.
#[track_caller]
fn too_much(bytes: &[u8], told: &str) {
    let (place, message) = refused(bytes);
    assert!(matches!(place, Position::Byte(at) if at < bytes.len() as u64));
    assert!(message.starts_with(told), "{message}");
}

/// Reads and writes a message that does not expand much.
#[track_caller]
fn soon(bytes: &[u8]) -> Profile {
    let profile = read(bytes);
    for flag in [false, true] {
        let out = try_write(&profile, &writer(flag, flag)).unwrap();
        // A value of one byte may become a sample.
        assert!(out.len() < 12 * bytes.len() + 1000, "{}", out.len());
    }
    profile
}

#[test]
fn stacks_are_not_written_out_without_end() {
    let rows = |frames: usize, lines: usize| {
        let location = json!({"address": "7", "lines": vec![json!({}); lines]});
        let stack = json!({"locationIndices": vec![1; frames]});
        [
            strings(&[]),
            part(2, "Location", &json!({})),
            part(2, "Location", &location),
            part(7, "Stack", &json!({})),
            part(7, "Stack", &stack),
        ]
        .concat()
    };
    let one = sample(json!({"stackIndex": 1, "values": ["1"]}));
    let many = sample(json!({"stackIndex": 1, "values": vec!["1"; 100_000]}));
    // A stack is repeated by many samples, by many observations of one sample, and by inlined calls.
    for (samples, lines) in [(&one.repeat(100_000), 0), (&many, 0), (&one, 10_000)] {
        too_much(&message(&profile(samples), &rows(100_000, lines)), TOO_MANY);
    }
    // A thousand samples with a thousand frames are accepted.
    let read = soon(&message(&profile(&one.repeat(1000)), &rows(1000, 0)));
    assert_eq!(read.samples.len(), 1000);
}

#[test]
fn observations_have_their_attributes_but_not_without_end() {
    let rows = [
        strings(&["key"]),
        attribute(&json!({"keyStrindex": 3, "value": {"intValue": "5"}})),
    ]
    .concat();
    let with = |index: i32, indices: usize, values: usize| {
        let sample =
            sample(json!({"attributeIndices": vec![index; indices], "values": vec!["1"; values]}));
        message(&profile(&sample), &rows)
    };
    too_much(&with(1, 100_000, 1_000_000), TOO_MANY);
    assert_eq!(soon(&with(1, 1, 1_000_000)).labels.len(), 1_000_000);
    // Index 0 means "no attribute", so any number of them is accepted.
    assert!(soon(&with(0, 300_000, 300_000)).labels.is_empty());
}

#[test]
fn types_of_few_samples_make_no_columns_without_end() {
    let names: Vec<_> = (0..900).map(|i| format!("type {i}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let profile = |type_: usize, values: usize| {
        let samples = json!([{"values": vec!["1"; values]}]);
        part(
            2,
            "Profile",
            &json!({"sampleType": {"typeStrindex": type_, "unitStrindex": 2}, "samples": samples}),
        )
    };
    let with = |large: Option<usize>| {
        let values = |i: usize| {
            if large == Some(i) {
                1_000_000
            } else {
                1 + i % 2
            }
        };
        let profiles: Vec<_> = (0..900).flat_map(|i| profile(i + 3, values(i))).collect();
        message(&profiles, &strings(&names))
    };
    assert_eq!(soon(&with(None)).values.len(), 900);
    too_much(&with(Some(0)), TOO_MANY);
    too_much(&with(Some(899)), TOO_MANY);
    // More types than allowed, each in a profile with the same samples.
    let profiles: Vec<_> = (0..30_000).flat_map(|i| profile(i, 1)).collect();
    match try_read(&message(&profiles, &delimited(5, b"").repeat(30_000))) {
        Err(Error::Unsupported(message)) => assert!(message.contains("1000 sample types")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_text_is_not_copied_without_end() {
    let long = "x".repeat(400_000);
    let rows = |key: &str, attributes: &[u8]| [&strings(&[&long, key]), attributes].concat();
    // The long string as the key of all attributes is stored once.
    let keys = part(6, "KeyValueAndUnit", &json!({"keyStrindex": 3})).repeat(50_000);
    let strings = soon(&message(
        &profile(&sample(json!({"values": ["1"]}))),
        &rows("key", &keys),
    ))
    .strings;
    assert!(strings.iter().map(str::len).sum::<usize>() < 2 * long.len());
    // As an element of an array it is copied each time.
    let values = vec![json!({"stringValueStrindex": 3}); 50_000];
    let array = attribute(&json!({"keyStrindex": 4, "value": {"arrayValue": {"values": values}}}));
    too_much(&message(b"", &rows("key", &array)), TOO_LONG);
    // As the name of a type it is copied, too.
    let profiles = |fields: &Value| {
        let of = |i: usize| {
            let mut fields = fields.clone();
            fields["durationNano"] = json!(i.to_string());
            part(2, "Profile", &fields)
        };
        (0..20_000).flat_map(of).collect::<Vec<_>>()
    };
    let message_ = refused(&message(
        &profiles(&json!({"sampleType": {"typeStrindex": 3}})),
        &rows("key", b""),
    ))
    .1;
    assert!(
        message_ == TOO_LONG || message_.starts_with(TOO_MANY),
        "{message_}"
    );
    // The same for the metadata of sources, which is stored for each source.
    let text = attribute(&json!({"keyStrindex": 4, "value": {"stringValue": long}}));
    for key in [
        "pprof.profile.doc_url",
        "r.rprof.file",
        "pprof.profile.comment",
    ] {
        too_much(
            &message(
                &profiles(&json!({"attributeIndices": [1, 1, 1]})),
                &rows(key, &text),
            ),
            TOO_MANY,
        );
    }
}

#[test]
fn a_long_attribute_may_be_of_many() {
    let long = "x".repeat(400_000);
    let values = [
        json!({"stringValue": long}),
        json!({"bytesValue": "eHh4".repeat(100_000)}),
        json!({"arrayValue": {"values": [{"stringValue": long}, {"intValue": "1"}]}}),
    ];
    let location = |i: usize, attributes: usize| {
        part(
            2,
            "Location",
            &json!({"address": i.to_string(), "attributeIndices": vec![1; attributes]}),
        )
    };
    let locations: Vec<_> = (0..20_000)
        .flat_map(|i| location(i, if i == 1 { 20_000 } else { 1 }))
        .collect();
    let stack: Vec<_> = (0..20_000).collect();
    let with =
        |stack: i32| sample(json!({"stackIndex": stack, "attributeIndices": [1], "values": ["1"]}));
    let samples = [with(1), with(0).repeat(19_999)].concat();
    for key in [
        "key",
        "profile.frame.type",
        "process.executable.build_id.gnu",
    ] {
        for value in &values {
            let rows = [
                &strings(&[key])[..],
                &attribute(&json!({"keyStrindex": 3, "value": value})),
                &part(1, "Mapping", &json!({"attributeIndices": [1]})).repeat(20_000),
                &part(7, "Stack", &json!({})),
                &part(7, "Stack", &json!({"locationIndices": stack})),
                &locations,
            ];
            soon(&message(&profile(&samples), &rows.concat()));
        }
    }
}

#[test]
fn many_keys_resources_scopes_and_profiles_take_no_longer_than_few() {
    const MANY: usize = 60_000;
    let keys: Vec<_> = (0..MANY).map(|i| format!("key {i}")).collect();
    let texts: Vec<_> = keys.iter().map(String::as_str).collect();
    let row = |i: usize| {
        part(
            6,
            "KeyValueAndUnit",
            &json!({"keyStrindex": 3 + i, "value": {"intValue": "1"}}),
        )
    };
    let rows: Vec<_> = (0..MANY).flat_map(row).collect();
    let rows = [
        strings(&texts),
        part(6, "KeyValueAndUnit", &json!({})),
        rows,
    ]
    .concat();
    let indices: Vec<_> = (1..MANY).collect();
    let with_all = profile(&sample(
        json!({"attributeIndices": indices, "values": ["1"]}),
    ));
    let resource: Vec<_> = keys
        .iter()
        .flat_map(|key| part(1, "KeyValue", &json!({"key": key})))
        .collect();
    let resource = [delimited(1, &resource), delimited(2, &with_all)].concat();
    soon(&[delimited(1, &resource), delimited(2, &rows)].concat());

    // As many profiles, each in a scope of its own, each in a resource of its own.
    let all = |wrap: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        (0..MANY)
            .flat_map(|i| wrap(one_of_many(i)))
            .collect::<Vec<_>>()
    };
    let rows = delimited(2, &strings(&[]));
    let soon = |resources: Vec<u8>| soon(&[resources, rows.clone()].concat());
    assert_eq!(
        soon(delimited(1, &delimited(2, &all(&|profile| profile))))
            .sources
            .len(),
        MANY
    );
    assert_eq!(
        soon(delimited(1, &all(&|profile| delimited(2, &profile))))
            .scopes
            .len(),
        MANY
    );
    assert_eq!(
        soon(all(&|profile| delimited(1, &delimited(2, &profile))))
            .resources
            .len(),
        MANY
    );
}

#[test]
fn what_says_nothing_may_be_there_a_million_times() {
    match try_read(&message(&delimited(2, b"").repeat(1_000_000), b"")) {
        Ok(profile) => assert_eq!(profile.sources.len(), 1_000_000),
        Err(error) => assert!(error.to_string().contains(TOO_MANY), "{error}"),
    }
    assert!(
        read(&frame(&[0x12, 0x00]).repeat(300_000))
            .sources
            .is_empty()
    );
    let lines = "{\"resourceProfiles\":[]}\n".repeat(300_000);
    assert!(read(lines.as_bytes()).sources.is_empty());
    // Each attribute claims to be the order of all profiles of the scope.
    let order = json!({"key": "pprof.scope.sample_type_order", "value": {"arrayValue": {}}});
    let scope = delimited(1, &part(3, "KeyValue", &order).repeat(20_000));
    read(&message(
        &[scope, delimited(2, b"").repeat(100_000)].concat(),
        b"",
    ));
}

#[test]
fn problems_of_a_large_json_message_have_their_places() {
    let texts = "\"\",".repeat(500_000);
    let irregular = r#"{"lines":[{"line":"-5","column":"-6"}]},"#.repeat(1500);
    let json = format!(
        r#"{{"dictionary":{{"stringTable":[{texts}""],"locationTable":[{{}},{irregular}{{}}]}}}}"#
    );
    let (_, problems) = read_until(json.as_bytes(), &|| false).unwrap();
    let places: Vec<_> = problems
        .kept()
        .iter()
        .map(|p| p.position.to_string())
        .collect();
    for (i, two) in places.chunks(2).enumerate() {
        let line = format!("dictionary.locationTable[{}].lines[0]", i + 1);
        // The first field starts at the same byte as the line, so it has the path of the line.
        assert_eq!(two, [line.clone(), format!("{line}.column")]);
    }
    assert_eq!(places.len(), 1000);
}
