//! Tests of the encoders and decoders for protocol buffers (`wire.rs`) and JSON (`json.rs`).

use super::json::{from_json, to_json};
use super::message::*;
use super::whole::whole;
use super::wire::{Form, decode, encode, encode_as};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

/// The golden files contain a message of each layout in which every field has a different value, as
/// bytes and as OTLP/JSON. They were created by Google's protobuf from the published definitions,
/// except that ids are hexadecimal.
#[test]
fn bytes_and_json_are_those_of_protobuf() {
    let golden = [
        include_str!("golden/v9.txt"),
        include_str!("golden/v11.txt"),
    ];
    for (layout, golden) in LAYOUTS.into_iter().zip(golden) {
        let lines: Vec<_> = golden.lines().collect();
        let (hex, json) = (lines[0], lines[1]);
        let bytes = HEXLOWER.decode(hex.as_bytes()).unwrap();
        let data = decode(&bytes, layout).unwrap();
        assert_eq!(encode(&data, layout), bytes, "{layout:?}");
        for form in Form::all(layout) {
            assert_eq!(
                decode(&encode_as(&data, form), layout).as_ref(),
                Ok(&data),
                "{form:?}"
            );
        }
        let json: Value = serde_json::from_str(json).unwrap();
        assert_eq!(to_json(&data), json, "{layout:?}");
        assert_eq!(from_json(&json).unwrap(), data, "{layout:?}");
    }
}

#[test]
fn json_may_be_written_in_several_ways() {
    let given = json!({
        "unknown": {"a": 1},
        "resourceProfiles": [{
            "resource": {"attributes": [
                {"key": "a", "value": {"intValue": 7}},
                {"key": "b", "value": {"doubleValue": "0.5"}},
                {"key": "c", "value": {"bytesValue": "_-8"}},
                {"key": "d", "value": {"arrayValue": {}}},
                {"key": "e", "value": null},
            ]},
            "schemaUrl": null,
            "scopeProfiles": [{"profiles": [{
                "timeUnixNano": 18_446_744_073_709_551_615_u64,
                "samples": [{"values": [1, "-2"], "stackIndex": "3", "stack_index": 4}],
            }]}],
        }],
        "dictionary": {"linkTable": [{"traceId": "0A", "spanId": "0a"}]},
    });
    let data = from_json(&given).unwrap();
    let resource = &data.resource_profiles[0];
    let values: Vec<_> = resource
        .resource
        .attributes
        .iter()
        .map(|a| a.value.clone())
        .collect();
    let half = AnyValue::Double(Double::new(0.5));
    let bytes = AnyValue::Bytes(vec![0xff, 0xef]);
    let rest = AnyValue::Array(Vec::new());
    assert_eq!(
        values,
        [AnyValue::Int(7), half, bytes, rest, AnyValue::Empty]
    );
    let profile = &resource.scope_profiles[0].profiles[0];
    assert_eq!(profile.time_unix_nano, u64::MAX);
    assert_eq!(
        (profile.samples[0].stack_index, &profile.samples[0].values),
        (3, &vec![1, -2])
    );
    let link = &data.dictionary.link_table[0];
    assert_eq!((&link.trace_id, &link.span_id), (&vec![10], &vec![10]));

    for wrong in [
        json!([]),
        json!({"dictionary": {"stringTable": [1]}}),
        json!({"dictionary": {"linkTable": [{"traceId": "x"}]}}),
        json!({"dictionary": {"functionTable": [{"nameStrindex": 2_147_483_648_u64}]}}),
    ] {
        assert!(from_json(&wrong).is_err(), "{wrong}");
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
