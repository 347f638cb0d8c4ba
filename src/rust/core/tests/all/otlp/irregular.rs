//! Random messages that are valid, but irregular: they contain everything that a reader must accept.
//!
//! They break no rule of level "must". Strict messages do not break rules of level "should" either;
//! others sometimes do.

use super::check::{Level, RULES, grave, violations};
use super::json::{from_json, to_json};
use super::message::*;
use super::rows::Maker;
use super::wire::{Form, decode, encode_as};
use std::collections::BTreeSet;

const TYPES: [(&str, &str); 6] = [
    ("samples", "count"),
    ("cpu", "nanoseconds"),
    ("alloc_space", "bytes"),
    ("samples", "bytes"),
    ("wall", "ns"),
    ("", ""),
];

/// Creates a message, which depends only on the arguments. In the layouts before v1.11 the first
/// samples have values and no timestamps: a short message with timestamps would be ambiguous.
pub fn irregular(seed: u64, layout: Layout, strict: bool) -> Data {
    let mut maker = Maker::new(seed, layout, strict);
    let least = u64::from(strict || maker.chance(90));
    let count = maker.pick(&[1, 1, 1, 2, 3]) * least;
    let resource_profiles: Vec<_> = (0..count).map(|_| maker.resource()).collect();
    if maker.rarely() {
        maker.orphans();
    }
    if resource_profiles.is_empty() && maker.chance(50) {
        maker.dictionary = Dictionary::default();
    }
    Data {
        resource_profiles,
        dictionary: maker.dictionary,
    }
}

/// The lists that samples have: values, timestamps, or both.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Values,
    Times,
    Both,
}

impl Maker {
    fn resource(&mut self) -> ResourceProfiles {
        let (attributes, keys) = self.pairs_and_keys();
        let mut entity_refs = Vec::new();
        if !keys.is_empty() && self.chance(40) {
            entity_refs.push(EntityRef {
                schema_url: self.schema_url(),
                type_: "service".to_string(),
                id_keys: keys[..1].to_vec(),
                description_keys: keys[1..].to_vec(),
            });
        }
        let resource = Resource {
            attributes,
            dropped_attributes_count: self.dropped(),
            entity_refs,
        };
        let count = if self.rarely() {
            0
        } else {
            self.pick(&[1, 1, 2, 3])
        };
        ResourceProfiles {
            resource,
            schema_url: self.schema_url(),
            scope_profiles: (0..count).map(|_| self.scope()).collect(),
        }
    }

    fn pairs_and_keys(&mut self) -> (Vec<KeyValue>, Vec<String>) {
        let pairs = self.pairs(2);
        let keys = pairs.iter().map(|pair| pair.key.clone()).collect();
        (
            pairs
                .into_iter()
                .map(|pair| self.shared_pair(pair))
                .collect(),
            keys,
        )
    }

    fn schema_url(&mut self) -> String {
        let invalid = if self.rarely() { "not a url" } else { "" };
        let url = self.pick(&[invalid, "", "https://opentelemetry.io/schemas/1.37.0"]);
        url.to_string()
    }

    fn dropped(&mut self) -> u32 {
        self.pick(&[0, 0, 0, 3, u32::MAX])
    }

    fn scope(&mut self) -> ScopeProfiles {
        let together = self.chance(50);
        let count = if self.rarely() {
            0
        } else {
            self.pick(&[1, 1, 2, 3])
        };
        let profiles = if together {
            self.aligned(count)
        } else {
            (0..count).flat_map(|_| self.aligned(1)).collect()
        };
        let (mut attributes, _) = self.pairs_and_keys();
        if count > 0 && self.chance(50) {
            attributes.push(self.order(count));
        }
        if self.chance(30) {
            attributes.push(KeyValue {
                key: "pprof.scope.default_sample_type".to_string(),
                value: AnyValue::String(self.pick(&TYPES).0.to_string()),
                key_strindex: 0,
            });
        }
        let scope = InstrumentationScope {
            name: self.text().to_string(),
            version: self.pick(&["", "1.2.3"]).to_string(),
            attributes,
            dropped_attributes_count: self.dropped(),
        };
        ScopeProfiles {
            scope,
            profiles,
            schema_url: self.schema_url(),
        }
    }

    fn order(&mut self, count: u64) -> KeyValue {
        let (first, step) = (self.below(count), self.pick(&[1, count - 1]));
        let order = (0..count).map(|i| AnyValue::Int(((first + i * step) % count) as i64));
        self.shared_pair(KeyValue {
            key: "pprof.scope.sample_type_order".to_string(),
            value: AnyValue::Array(if count < 2 {
                vec![AnyValue::Int(0)]
            } else {
                order.collect()
            }),
            key_strindex: 0,
        })
    }

    /// Profiles whose samples differ only in their values, like the profiles of one pprof file.
    /// Sometimes the last sample is missing.
    fn aligned(&mut self, count: u64) -> Vec<Profile> {
        let first = self.layout != Layout::V11 && self.dictionary.stack_table.len() == 1;
        let mut shape = self.pick(&[Shape::Values, Shape::Values, Shape::Times, Shape::Both]);
        let mut samples = self.samples();
        if first {
            shape = Shape::Values;
        }
        let frame = self.frame();
        self.observe(&mut samples, shape, &frame);
        let profiles = (0..count).map(|i| {
            let mut profile = frame.clone();
            profile.dropped_attributes_count = self.dropped();
            profile.samples = samples.clone();
            if i > 0 && self.chance(15) {
                profile.samples.pop();
            }
            for value in profile
                .samples
                .iter_mut()
                .flat_map(|sample| &mut sample.values)
            {
                *value = self.extreme();
            }
            self.facts(&mut profile);
            profile
        });
        profiles.collect()
    }

    /// Samples with unique identities, without observations.
    fn samples(&mut self) -> Vec<Sample> {
        let mut samples: Vec<Sample> = Vec::new();
        let mut identities = BTreeSet::new();
        for _ in 0..self.pick(&[0, 1, 2, 3, 5, 8]) {
            let mut sample = Sample {
                stack_index: self.stack(),
                attribute_indices: self.attributes(),
                link_index: if self.chance(20) { self.link() } else { 0 },
                ..Sample::default()
            };
            if self.rarely() {
                let value = AnyValue::String("r".to_string());
                let attribute = self.attribute("profile.frame.type", value, "");
                sample.attribute_indices.push(attribute);
            }
            let attributes: BTreeSet<_> = sample.attribute_indices.iter().copied().collect();
            let new = identities.insert((sample.stack_index, attributes, sample.link_index));
            if new || self.rarely() {
                samples.push(sample);
            }
        }
        samples
    }

    /// A profile with a time and a duration, whose end is before 2^63.
    fn frame(&mut self) -> Profile {
        let time = self.pick(&[0, 1, 1_700_000_000_123_456_789, (1 << 63) - 2]);
        let duration = self.pick(&[1, 1_000_000_000, (1 << 53) + 1, 1 << 62]);
        Profile {
            time_unix_nano: time,
            duration_nano: duration.min((1 << 63) - 1 - time),
            ..Profile::default()
        }
    }

    fn observe(&mut self, samples: &mut [Sample], shape: Shape, frame: &Profile) {
        for sample in samples {
            let mixed = self.layout == Layout::V11 && self.rarely();
            let shape = if mixed { Shape::Both } else { shape };
            let count = self.pick(&[1, 1, 1, 2, 4]) as usize;
            if shape != Shape::Times {
                sample.values = vec![0; count];
            }
            if shape != Shape::Values {
                let outside = self.rarely();
                let times = (0..count).map(|_| {
                    if outside {
                        self.below(1 << 63)
                    } else {
                        frame.time_unix_nano + self.below(frame.duration_nano)
                    }
                });
                sample.timestamps_unix_nano = times.collect();
            }
        }
    }

    /// Sets all fields except samples and times.
    fn facts(&mut self, profile: &mut Profile) {
        profile.sample_type = self.value_type();
        if self.chance(60) {
            profile.period_type = self.value_type();
            profile.period = self.extreme();
        }
        if profile
            .samples
            .iter()
            .all(|s| s.timestamps_unix_nano.is_empty())
            && self.chance(20)
        {
            profile.time_unix_nano = 0;
            profile.duration_nano = 0;
        }
        if self.chance(30) {
            profile.profile_id = self.bytes(16);
        }
        if self.chance(15) {
            let other = if self.rarely() { "custom" } else { "pprof" };
            profile.original_payload_format = self.pick(&["jfr", other]).to_string();
            profile.original_payload = self.bytes(5);
        }
        profile.attribute_indices = self.attributes();
        self.comments(profile);
        for (name, text) in [
            ("drop_frames", "^f.*"),
            ("keep_frames", ""),
            ("doc_url", "http://a.test/b"),
        ] {
            if self.chance(15) {
                let text = if self.rarely() { "?" } else { text };
                let value = AnyValue::String(text.to_string());
                let attribute = self.attribute(&format!("pprof.profile.{name}"), value, "");
                profile.attribute_indices.push(attribute);
            }
        }
    }

    fn value_type(&mut self) -> ValueType {
        let (type_, unit) = self.pick(&TYPES);
        ValueType {
            type_strindex: self.string(type_),
            unit_strindex: self.string(unit),
        }
    }

    /// Adds comments in one of the two forms. The form of the Go collector breaks a rule.
    fn comments(&mut self, profile: &mut Profile) {
        if self.chance(70) {
            return;
        }
        let texts: Vec<_> = (0..self.below(3)).map(|_| self.text()).collect();
        if !self.strict && self.chance(40) {
            // In reverse order, since the number in the key determines the order.
            for (i, text) in texts.iter().enumerate().rev() {
                let value = AnyValue::String(text.to_string());
                let key = format!("pprof.profile.comment.{i}");
                let attribute = self.attribute(&key, value, "");
                profile.attribute_indices.push(attribute);
            }
        } else {
            let texts = texts.iter().map(|text| AnyValue::String(text.to_string()));
            let value = AnyValue::Array(texts.collect());
            let attribute = self.attribute("pprof.profile.comment", value, "");
            profile.attribute_indices.push(attribute);
        }
    }
}

#[test]
fn bytes_go_round_in_every_form() {
    go_round_in_every_form(20);
}

#[test]
#[ignore = "thorough"]
fn bytes_of_many_messages_go_round_in_every_form() {
    go_round_in_every_form(500);
}

fn go_round_in_every_form(seeds: u64) {
    for layout in LAYOUTS {
        for seed in 0..seeds {
            let data = irregular(seed, layout, false);
            for form in Form::all(layout) {
                let again = decode(&encode_as(&data, form), layout);
                assert_eq!(again.as_ref(), Ok(&data), "{seed} {form:?}");
            }
        }
    }
}

#[test]
fn json_goes_round() {
    for seed in 0..100 {
        let data = irregular(seed, Layout::V11, seed % 2 == 0);
        let text = to_json(&data).to_string();
        let again = from_json(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(again, data, "{seed}");
    }
}

#[test]
fn strict_messages_break_nothing() {
    break_nothing(200);
}

#[test]
#[ignore = "thorough"]
fn many_strict_messages_break_nothing() {
    break_nothing(5000);
}

fn break_nothing(seeds: u64) {
    for layout in LAYOUTS {
        for seed in 0..seeds {
            assert_eq!(
                violations(&irregular(seed, layout, true)),
                [],
                "{seed} {layout:?}"
            );
        }
    }
}

#[test]
fn irregular_messages_break_no_must() {
    break_no_must(200);
}

#[test]
#[ignore = "thorough"]
fn many_irregular_messages_break_no_must() {
    break_no_must(5000);
}

/// Between them, the messages break each rule of level "should".
fn break_no_must(seeds: u64) {
    let mut broken = BTreeSet::new();
    for layout in LAYOUTS {
        for seed in 0..seeds {
            let data = irregular(seed, layout, false);
            assert_eq!(grave(&data), [], "{seed} {layout:?}");
            broken.extend(violations(&data).into_iter().map(|v| v.rule));
        }
    }
    let all = RULES.iter().filter(|rule| rule.1 == Level::Should);
    assert_eq!(broken, all.map(|rule| rule.0).collect());
}
