//! Tests of the test code: encoders and decoders (`wire.rs`), content (`content.rs`), and rules (`check.rs`).

use super::check::{MUST, SHOULD, violations};
use super::content::{assert_same, content, difference};
use super::message::*;
use super::whole;
use super::wire::{Form, decode, encode, encode_as, without_nothing};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The golden files contain a message of each layout in which every field has a different value, as bytes and as
/// OTLP/JSON. They were created by Google's protobuf from the published definitions, except that ids are hexadecimal.
#[test]
fn bytes_and_json_are_those_of_protobuf() {
    let golden = [
        include_str!("golden/v9.txt"),
        include_str!("golden/v11.txt"),
    ];
    for (layout, golden) in LAYOUTS.into_iter().zip(golden) {
        let (hex, json) = golden.split_once('\n').unwrap();
        let bytes = HEXLOWER.decode(hex.as_bytes()).unwrap();
        let data = decode(&bytes, layout).unwrap();
        assert_eq!(data, serde_json::from_str::<Value>(json).unwrap());
        assert_eq!(encode(&data, layout), bytes, "{layout:?}");
        for form in Form::all(layout) {
            assert_eq!(
                decode(&encode_as(&data, form), layout).as_ref(),
                Ok(&data),
                "{form:?}"
            );
        }
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = encode(&whole(), Layout::V11);
    let wrong = (1..bytes.len()).filter(|end| decode(&bytes[..*end], Layout::V11).is_err());
    assert!(wrong.count() > bytes.len() - 10);
    for wrong in [
        &b"\x08\x01"[..],
        b"\x03",
        b"\x12\x03\x2a\x01\xff",
        &[0xff; 11],
    ] {
        assert!(decode(wrong, Layout::V11).is_err(), "{wrong:?}");
    }
}

/// The place with a path whose first word is one of those below.
fn place<'a>(data: &'a mut Value, path: &str) -> &'a mut Value {
    const RESOURCE: &str = "resourceProfiles/0";
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let start = match first {
        "d" => "dictionary".to_owned(),
        "resource" => RESOURCE.to_owned(),
        "entity" => format!("{RESOURCE}/resource/entityRefs/0"),
        "scope" => format!("{RESOURCE}/scopeProfiles/0"),
        "profile" => format!("{RESOURCE}/scopeProfiles/0/profiles/1"),
        "sample" => format!("{RESOURCE}/scopeProfiles/0/profiles/1/samples/1"),
        other => panic!("{other}"),
    };
    let steps = start
        .split('/')
        .chain(rest.split('/'))
        .filter(|step| !step.is_empty());
    steps.fold(data, |at, step| match step.parse::<usize>() {
        Ok(index) => &mut at[index],
        Err(_) => &mut at[step],
    })
}

/// Changes the whole message: sets a value, adds an item to a list, or takes the last one away.
pub fn edited(edits: &str) -> Value {
    let mut data = whole();
    for edit in edits.split(" ; ") {
        let [path, operator, value] = edit.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{edit}")
        };
        let (at, value) = (place(&mut data, path), serde_json::from_str(value).unwrap());
        match operator {
            "=" => *at = value,
            "-=" => drop(at.as_array_mut().unwrap().pop()),
            _ if at.is_null() => *at = json!([value]),
            _ => at.as_array_mut().unwrap().push(value),
        }
    }
    data
}

/// Each line has a rule, and changes that break this rule and no other.
#[test]
fn each_rule_is_noticed_alone() {
    assert_eq!(violations(&whole()), []);
    // A message that does not use the dictionary may omit it.
    let rules: Vec<_> = violations(&json!({})).into_iter().map(|v| v.rule).collect();
    assert_eq!(rules, ["empty-envelope"]);
    let mut broken = BTreeSet::new();
    for line in include_str!("golden/broken.txt").lines() {
        let (rule, edits) = line.split_once(": ").unwrap();
        let found = violations(&edited(edits));
        let rules: BTreeSet<_> = found.iter().map(|v| v.rule).collect();
        assert_eq!(rules, BTreeSet::from([rule]), "{line}: {found:#?}");
        broken.insert(rule);
    }
    assert_eq!(broken, MUST.into_iter().chain(SHOULD).collect());
}

/// Changes a field. Returns false if it has no value that can be changed.
fn change(field: &Field, value: &mut Value) -> bool {
    let value = match value {
        Value::Array(items) if items.is_empty() => return false,
        Value::Array(items) => items.last_mut().unwrap(),
        Value::Null if field.repeated => return false,
        value => value,
    };
    *value = match (field.kind, &*value) {
        ("string", text) => json!(format!("{}x", text.as_str().unwrap_or_default())),
        ("bytes", _) => json!("AgI="),
        ("id", id) => json!(format!("{}01", id.as_str().unwrap_or_default())),
        ("bool", flag) => json!(!flag.as_bool().unwrap()),
        (_, index) if field.table().is_some() => json!(i32::from(number(index) == 0)),
        ("uint32", count) => json!(number(count) + 1),
        (_, count) => json!((number(count) + 1).to_string()),
    };
    true
}

#[test]
fn every_field_matters() {
    let before = content(&whole());
    let (mut changed, mut more) = (0, true);
    for wanted in 0.. {
        let mut data = whole();
        let (mut count, mut found) = (0, None);
        walk(&mut data, "Data", "", &mut |place, field, value| {
            // The content of first rows does not matter.
            if count == wanted && !place.contains("Table[0]") && change(field, value) {
                found = Some(place.to_owned());
            }
            count += 1;
        });
        more &= count > wanted;
        if !more {
            break;
        }
        if let Some(place) = found {
            changed += 1;
            assert!(
                difference(&before, &content(&without_nothing(data)), "").is_some(),
                "{place}"
            );
        }
    }
    assert!(changed > 90, "{changed}");
    for drops in [
        "resource/scopeProfiles -= 1",
        "scope/profiles -= 1",
        "profile/samples -= 1",
        "d/locationTable/1/lines = []",
    ] {
        assert!(
            difference(&before, &content(&edited(drops)), "").is_some(),
            "{drops}"
        );
    }
}

#[test]
fn content_is_resolved() {
    let content = content(&whole());
    let profile = &content[0]["scopeProfiles"][0]["profiles"][1];
    assert_eq!(
        profile["sampleType"],
        json!({"type": "samples", "unit": "count"})
    );
    assert_eq!(profile["comments"], json!(["note"]));
    let url =
        json!([{"key": "pprof.profile.doc_url", "value": {"stringValue": "https://a.test/"}}]);
    assert_eq!(profile["attribute"], url);
    let observations = list(profile, "observations").iter();
    let seen: Vec<_> = observations
        .map(|o| (&o["value"], &o["timestamp"], &o["attribute"][0]["key"]))
        .collect();
    let expected = json!([
        ["3", "100", "allocation"],
        ["4", "109", "allocation"],
        ["3", "100", "nested"],
        ["4", "109", "nested"]
    ]);
    assert_eq!(json!(seen), expected);
    let observation = &profile["observations"][0];
    assert_eq!(observation["attribute"][0]["unit"], "By");
    assert_eq!(
        observation["link"],
        json!({"traceId": "01".repeat(16), "spanId": "02".repeat(8)})
    );
    let frame = &observation["stack"]["location"][1];
    assert_eq!(
        (&frame["address"], &frame["mapping"]["filename"]),
        (&json!("6144"), &json!("lib.so"))
    );
    let code = json!({"name": "f", "filename": "f.c", "startLine": "2"});
    assert_eq!(
        frame["lines"],
        json!([{"function": code, "line": "3", "column": "1"}])
    );
}

#[test]
fn what_is_the_same_has_the_same_content() {
    let same =
        |one: &str, other: &str| assert_same(&content(&edited(one)), &content(&edited(other)));
    let unchanged = "sample/linkIndex = 1";
    for edits in [
        "sample/attributeIndices = [4, 8, 0]",
        "d/stringTable += \"alone\" ; resource/scopeProfiles += {}",
        "d/attributeTable/6/value = {\"arrayValue\": {\"values\": [{\"stringValue\": \"note\"}]}}",
        "d/stackTable += {\"locationIndices\": [1, 1]} ; sample/stackIndex = 2",
    ] {
        same(edits, unchanged);
    }
    same("sample/values = []", "sample/values = [\"1\", \"1\"]");
    // Comments have two forms. Keys are ordered by number, not as text.
    let with = |pairs: &[(&str, Value)]| {
        let mut edits = "profile/attributeIndices = []".to_owned();
        for (i, (key, value)) in pairs.iter().enumerate() {
            let row = json!({"keyStrindex": 16 + i, "value": value});
            edits += &format!(
                " ; d/stringTable += \"pprof.profile.comment{key}\" ; d/attributeTable += {row}"
            );
            edits += &format!(" ; profile/attributeIndices += {}", 9 + i);
        }
        let profile = content(&edited(&edits))[0]["scopeProfiles"][0]["profiles"][1].take();
        [
            profile["comments"].clone(),
            json!(list(&profile, "attribute").len()),
        ]
    };
    let text = |text: &str| json!({"stringValue": text});
    let comments = [json!(["z", "a"]), json!(0)];
    assert_eq!(
        with(&[(
            "",
            json!({"arrayValue": {"values": [text("z"), text("a")]}})
        )]),
        comments
    );
    assert_eq!(with(&[(".10", text("a")), (".9", text("z"))]), comments);
    assert_eq!(
        with(&[("", json!({"intValue": "1"})), (".x", text("a"))]),
        [json!([]), json!(2)]
    );
}
