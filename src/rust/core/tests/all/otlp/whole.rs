//! A message that breaks no rule and has all kinds of content.

use super::message::*;

pub fn text(text: &str) -> AnyValue {
    AnyValue::String(text.to_string())
}

pub fn pair(key: &str, value: AnyValue) -> KeyValue {
    KeyValue {
        key: key.to_string(),
        value,
        key_strindex: 0,
    }
}

pub fn attribute(key: i32, value: AnyValue, unit: i32) -> KeyValueAndUnit {
    KeyValueAndUnit {
        key_strindex: key,
        value,
        unit_strindex: unit,
    }
}

const STRINGS: [&str; 16] = [
    "",
    "samples",
    "count",
    "f",
    "f.c",
    "lib.so",
    "process.executable.build_id.gnu",
    "pprof.mapping.has_functions",
    "profile.frame.type",
    "thread.id",
    "By",
    "pprof.profile.comment",
    "note",
    "pprof.profile.doc_url",
    "allocation",
    "nested",
];

/// A message with one scope and two profiles, each with two samples; there is a single frame.
pub fn whole() -> Data {
    let zeros = Link {
        trace_id: vec![0; 16],
        span_id: vec![0; 8],
    };
    let link = Link {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
    };
    let nested = AnyValue::Kvlist(vec![
        pair("a", AnyValue::Int(1)),
        pair("b", AnyValue::Empty),
    ]);
    let dictionary = Dictionary {
        mapping_table: vec![
            Mapping::default(),
            Mapping {
                memory_start: 0x1000,
                memory_limit: 0x2000,
                file_offset: 0,
                filename_strindex: 5,
                attribute_indices: vec![1, 2],
            },
        ],
        location_table: vec![
            Location::default(),
            Location {
                mapping_index: 1,
                address: 0x1800,
                lines: vec![Line {
                    function_index: 1,
                    line: 3,
                    column: 1,
                }],
                attribute_indices: vec![3],
            },
        ],
        function_table: vec![
            Function::default(),
            Function {
                name_strindex: 3,
                system_name_strindex: 0,
                filename_strindex: 4,
                start_line: 2,
            },
        ],
        link_table: vec![zeros, link],
        string_table: STRINGS.map(String::from).to_vec(),
        attribute_table: vec![
            KeyValueAndUnit::default(),
            attribute(6, text("abcd"), 0),
            attribute(7, AnyValue::Bool(true), 0),
            attribute(8, text("native"), 0),
            attribute(9, AnyValue::Int(7), 0),
            attribute(14, AnyValue::Int(64), 10),
            attribute(11, AnyValue::Array(vec![AnyValue::StringStrindex(12)]), 0),
            attribute(13, text("https://a.test/"), 0),
            attribute(15, nested, 0),
        ],
        stack_table: vec![
            Stack::default(),
            Stack {
                location_indices: vec![1, 1],
            },
        ],
    };
    let sample = Sample {
        stack_index: 1,
        attribute_indices: vec![4, 5],
        link_index: 1,
        values: vec![3, 4],
        timestamps_unix_nano: vec![100, 109],
    };
    let profile = Profile {
        sample_type: ValueType {
            type_strindex: 1,
            unit_strindex: 2,
        },
        samples: vec![
            sample.clone(),
            Sample {
                attribute_indices: vec![8, 4],
                ..sample
            },
        ],
        time_unix_nano: 100,
        duration_nano: 10,
        profile_id: vec![9; 16],
        original_payload_format: "pprof".to_string(),
        original_payload: vec![1],
        attribute_indices: vec![6, 7],
        ..Profile::default()
    };
    let order = AnyValue::Array(vec![AnyValue::Int(1), AnyValue::Int(0)]);
    Data {
        resource_profiles: vec![ResourceProfiles {
            resource: Resource {
                attributes: vec![pair("service.name", text("r"))],
                dropped_attributes_count: 0,
                entity_refs: vec![EntityRef {
                    type_: "service".to_string(),
                    id_keys: vec!["service.name".to_string()],
                    ..EntityRef::default()
                }],
            },
            schema_url: "https://opentelemetry.io/schemas/1.37.0".to_string(),
            scope_profiles: vec![ScopeProfiles {
                scope: InstrumentationScope {
                    name: "profile".to_string(),
                    attributes: vec![pair("pprof.scope.sample_type_order", order)],
                    ..InstrumentationScope::default()
                },
                profiles: vec![profile.clone(), profile],
                schema_url: String::new(),
            }],
        }],
        dictionary,
    }
}
