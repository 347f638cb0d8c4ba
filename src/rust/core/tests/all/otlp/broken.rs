//! Tests of `check.rs`: for each rule, messages that break only this rule.

use super::check::{RULES, violations};
use super::message::*;
use super::whole::{attribute, pair, text, whole};
use std::collections::BTreeSet;

/// Access to the parts of a message that are changed.
struct Parts<'a> {
    resource: &'a mut ResourceProfiles,
    d: &'a mut Dictionary,
}

impl Parts<'_> {
    fn scope(&mut self) -> &mut ScopeProfiles {
        &mut self.resource.scope_profiles[0]
    }

    fn profile(&mut self) -> &mut Profile {
        &mut self.scope().profiles[1]
    }

    fn sample(&mut self) -> &mut Sample {
        &mut self.profile().samples[1]
    }

    fn entity(&mut self) -> &mut EntityRef {
        &mut self.resource.resource.entity_refs[0]
    }

    fn resource_pair(&mut self, key: &str, value: AnyValue) {
        self.resource.resource.attributes.push(pair(key, value));
    }

    fn scope_pair(&mut self, key: &str, value: AnyValue) {
        self.scope().scope.attributes.push(pair(key, value));
    }

    /// Adds an attribute to a profile.
    fn profile_pair(&mut self, key: &str, value: AnyValue) {
        let strings = &mut self.d.string_table;
        let known = strings.iter().position(|string| string == key);
        let key = known.unwrap_or_else(|| {
            strings.push(key.to_string());
            strings.len() - 1
        });
        let row = self.d.attribute_table.len() as i32;
        self.d.attribute_table.push(attribute(key as i32, value, 0));
        self.profile().attribute_indices.push(row);
    }
}

type Break = fn(&mut Parts);

/// The rules, and changes that break them.
const BREAKS: &[(&str, &[Break])] = &[
    (
        "index-range",
        &[
            |p| p.sample().stack_index = 2,
            |p| p.sample().stack_index = -1,
            |p| p.sample().link_index = 2,
            |p| p.sample().attribute_indices.push(99),
            |p| p.profile().attribute_indices.push(-1),
            |p| p.profile().period_type.unit_strindex = 99,
            |p| p.d.stack_table[1].location_indices.push(2),
            |p| p.d.location_table[1].mapping_index = 2,
            |p| p.d.location_table[1].lines[0].function_index = 2,
            |p| p.d.function_table[1].system_name_strindex = 99,
            |p| p.d.mapping_table[1].attribute_indices.push(99),
            |p| p.d.attribute_table[1].unit_strindex = 99,
            |p| p.d.attribute_table[1].value = AnyValue::StringStrindex(99),
            |p| p.resource.resource.attributes[0].key_strindex = 99,
            |p| p.resource_pair("a", AnyValue::Array(vec![AnyValue::StringStrindex(-2)])),
        ],
    ),
    (
        "null-index",
        &[
            |p| p.sample().attribute_indices.push(0),
            |p| p.d.stack_table[1].location_indices.push(0),
        ],
    ),
    (
        "zero-first",
        &[
            |p| p.d.mapping_table[0].memory_start = 1,
            |p| p.d.location_table[0].address = 1,
            |p| p.d.function_table[0].start_line = 1,
            |p| p.d.link_table[0].trace_id = vec![3; 16],
            |p| p.d.link_table[0].trace_id = vec![0; 15],
            |p| p.d.string_table[0] = "no".to_string(),
            |p| p.d.attribute_table[0].value = AnyValue::Int(0),
            |p| p.d.stack_table[0].location_indices.push(1),
            |p| {
                *p.d = Dictionary::default();
                let profiles = &mut p.resource.scope_profiles[0].profiles;
                profiles.iter_mut().for_each(|p| *p = Profile::default());
            },
        ],
    ),
    ("link-zero", &[|p| p.d.link_table[0] = Link::default()]),
    (
        "duplicate",
        &[
            // A used row that equals another row by value.
            |p| {
                p.d.string_table.push("f".to_string());
                p.d.function_table.push(p.d.function_table[1].clone());
                p.d.function_table[2].name_strindex = 16;
                let lines = &mut p.d.location_table[1].lines;
                lines.push(lines[0].clone());
                lines[1].function_index = 2;
            },
            |p| {
                p.d.stack_table.push(p.d.stack_table[1].clone());
                p.sample().stack_index = 2;
            },
            |p| {
                p.d.attribute_table.push(p.d.attribute_table[6].clone());
                p.d.attribute_table[9].value = AnyValue::Array(vec![text("note")]);
                p.profile().attribute_indices[0] = 9;
            },
            |p| {
                p.d.string_table.push(String::new());
                p.profile().period_type.unit_strindex = 16;
            },
        ],
    ),
    (
        "orphan",
        &[
            |p| p.d.string_table.push("alone".to_string()),
            |p| {
                p.d.stack_table.push(Stack {
                    location_indices: vec![1],
                });
            },
        ],
    ),
    (
        "function-named",
        &[|p| {
            p.d.function_table.push(Function {
                start_line: 7,
                ..Function::default()
            });
            p.d.location_table[1].lines.push(Line {
                function_index: 2,
                ..Line::default()
            });
        }],
    ),
    (
        "line-negative",
        &[
            |p| p.d.function_table[1].start_line = -1,
            |p| p.d.location_table[1].lines[0].line = -1,
            |p| p.d.location_table[1].lines[0].column = i64::MIN,
        ],
    ),
    (
        "link-ids",
        &[
            |p| p.d.link_table[1].trace_id = vec![1; 15],
            |p| p.d.link_table[1].span_id.clear(),
            |p| p.d.link_table[1].span_id = vec![0; 8],
        ],
    ),
    (
        "address-in-mapping",
        &[
            |p| p.d.location_table[1].address = 0xfff,
            |p| p.d.location_table[1].address = 0x2001,
        ],
    ),
    (
        "mapping-build-id",
        &[|p| p.d.string_table[6] = "process.executable.build_id".to_string()],
    ),
    (
        "empty-envelope",
        &[
            |p| p.resource.scope_profiles.push(ScopeProfiles::default()),
            |p| {
                p.resource.scope_profiles.clear();
                *p.d = Dictionary::default();
            },
        ],
    ),
    (
        "schema-url",
        &[
            |p| p.resource.schema_url = "1.37.0".to_string(),
            |p| p.scope().schema_url = "http:///1.37.0".to_string(),
            |p| p.entity().schema_url = "https://opentelemetry.io".to_string(),
        ],
    ),
    ("entity-type", &[|p| p.entity().type_.clear()]),
    ("entity-id", &[|p| p.entity().id_keys.clear()]),
    (
        "entity-keys",
        &[
            |p| p.entity().id_keys.push("other".to_string()),
            |p| p.entity().description_keys.push("other".to_string()),
        ],
    ),
    (
        "profile-id",
        &[
            |p| p.profile().profile_id = vec![1; 8],
            |p| p.profile().profile_id = vec![0; 16],
        ],
    ),
    (
        "original-payload",
        &[
            |p| p.profile().original_payload.clear(),
            |p| p.profile().original_payload_format.clear(),
        ],
    ),
    (
        "payload-format",
        &[|p| p.profile().original_payload_format = "Rprof".to_string()],
    ),
    (
        "sample-empty",
        &[|p| {
            for sample in &mut p.profile().samples {
                sample.values.clear();
                sample.timestamps_unix_nano.clear();
            }
        }],
    ),
    ("sample-lengths", &[|p| p.sample().values.push(1)]),
    (
        "sample-combined",
        &[|p| p.sample().attribute_indices = vec![5, 4]],
    ),
    (
        "sample-shape",
        &[
            |p| p.sample().values.clear(),
            |p| p.sample().timestamps_unix_nano.clear(),
        ],
    ),
    (
        "timestamp-range",
        &[
            |p| p.sample().timestamps_unix_nano[0] = 99,
            |p| p.sample().timestamps_unix_nano[1] = 110,
            |p| p.profile().duration_nano = 9,
        ],
    ),
    (
        "key-twice",
        &[
            |p| {
                p.resource.resource.attributes.push(KeyValue {
                    key_strindex: 9,
                    ..pair("a", AnyValue::Empty)
                })
            },
            |p| match &mut p.d.attribute_table[8].value {
                AnyValue::Kvlist(pairs) => pairs[0].key_strindex = 9,
                _ => unreachable!(),
            },
        ],
    ),
    (
        "key-empty",
        &[
            |p| p.scope_pair("", AnyValue::Empty),
            |p| {
                p.d.attribute_table.push(attribute(0, AnyValue::Int(1), 0));
                p.profile().attribute_indices.push(9);
            },
        ],
    ),
    (
        "key-unique",
        &[
            |p| p.resource_pair("service.name", AnyValue::Empty),
            |p| {
                p.scope_pair("a", AnyValue::Int(1));
                p.scope_pair("a", AnyValue::Int(1));
            },
            |p| p.profile_pair("pprof.profile.doc_url", text("a:b")),
            |p| p.d.mapping_table[1].attribute_indices.push(2),
            |p| p.d.location_table[1].attribute_indices.push(3),
            |p| {
                p.d.attribute_table.push(attribute(9, AnyValue::Int(8), 0));
                p.sample().attribute_indices.push(9);
            },
            |p| {
                let twice = vec![pair("a", AnyValue::Int(1)), pair("a", AnyValue::Int(2))];
                p.resource_pair("map", AnyValue::Array(vec![AnyValue::Kvlist(twice)]));
            },
            |p| match &mut p.d.attribute_table[8].value {
                AnyValue::Kvlist(pairs) => pairs[1].key = "a".to_string(),
                _ => unreachable!(),
            },
        ],
    ),
    (
        "unit-ucum",
        &[
            |p| p.d.string_table[10] = "µs".to_string(),
            |p| p.d.string_table[10] = "per second".to_string(),
        ],
    ),
    (
        "scope-attribute",
        &[
            |p| p.profile_pair("pprof.scope.default_sample_type", text("cpu")),
            |p| p.resource_pair("pprof.scope.default_sample_type", text("cpu")),
        ],
    ),
    (
        "attribute-place",
        &[
            |p| p.scope_pair("pprof.profile.drop_frames", text("f")),
            |p| p.sample().attribute_indices.push(2),
            |p| p.profile_pair("pprof.location.is_folded", AnyValue::Bool(true)),
            |p| p.sample().attribute_indices.push(3),
        ],
    ),
    (
        "attribute-type",
        &[
            |p| p.d.attribute_table[1].value = AnyValue::Bytes(vec![1]),
            |p| p.d.attribute_table[2].value = AnyValue::Int(1),
            |p| p.d.attribute_table[3].value = AnyValue::Empty,
            |p| p.d.attribute_table[6].value = AnyValue::StringStrindex(12),
            |p| p.d.attribute_table[7].value = AnyValue::Int(1),
            |p| p.scope_pair("pprof.scope.default_sample_type", AnyValue::Int(1)),
            |p| p.scope().scope.attributes[0].value = AnyValue::Array(vec![text("0")]),
        ],
    ),
    (
        "frame-type",
        &[
            |p| p.d.attribute_table[3].value = text(""),
            |p| p.d.attribute_table[3].value = text("Native"),
        ],
    ),
    (
        "sample-type-order",
        &[
            |p| p.scope().scope.attributes[0].value = AnyValue::Array(Vec::new()),
            |p| p.scope().scope.attributes[0].value = AnyValue::Array(vec![AnyValue::Int(0); 2]),
            |p| drop(p.scope().profiles.pop()),
        ],
    ),
    (
        "comment-form",
        &[|p| p.profile_pair("pprof.profile.comment.0", text("note"))],
    ),
    (
        "doc-url",
        &[|p| p.d.attribute_table[7].value = text("/docs")],
    ),
    (
        "build-id-form",
        &[
            |p| p.d.attribute_table[1].value = text(""),
            |p| p.d.attribute_table[1].value = text("foh3mEXu7BLZjsN9pOwG/kATc"),
            |p| p.resource_pair("process.executable.build_id.htlhash", text("abcd")),
        ],
    ),
];

#[test]
fn a_whole_message_breaks_no_rule() {
    assert_eq!(violations(&whole()), []);
    // A message that does not use the dictionary may omit it.
    let rules: Vec<_> = violations(&Data::default())
        .into_iter()
        .map(|v| v.rule)
        .collect();
    assert_eq!(rules, ["empty-envelope"]);
}

#[test]
fn each_rule_is_noticed_alone() {
    for (rule, breaks) in BREAKS {
        for (i, apply) in breaks.iter().enumerate() {
            let mut data = whole();
            let Data {
                resource_profiles,
                dictionary: d,
            } = &mut data;
            let resource = &mut resource_profiles[0];
            apply(&mut Parts { resource, d });
            let found: Vec<_> = violations(&data);
            let rules: BTreeSet<_> = found.iter().map(|v| v.rule).collect();
            assert_eq!(rules, BTreeSet::from([*rule]), "{rule} {i}: {found:#?}");
        }
    }
    let broken: BTreeSet<_> = BREAKS.iter().map(|b| b.0).collect();
    assert_eq!(broken, RULES.iter().map(|rule| rule.0).collect());
}
