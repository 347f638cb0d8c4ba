//! Random messages that are valid, but irregular: they contain everything that a reader must accept.
//!
//! They break no rule of level "must". Strict messages do not break rules of level "should" either; others sometimes do.

use super::check::{SHOULD, grave, violations};
use super::message::*;
use super::rows::Maker;
use super::wire::object;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const TYPES: [(&str, &str); 6] = [
    ("samples", "count"),
    ("cpu", "nanoseconds"),
    ("alloc_space", "bytes"),
    ("samples", "bytes"),
    ("wall", "ns"),
    ("", ""),
];

/// Creates a message, which depends only on the arguments. In v1.9 the first samples have values and no timestamps: a short
/// message with timestamps would be ambiguous.
pub fn irregular(seed: u64, layout: Layout, strict: bool) -> Value {
    let mut maker = Maker::new(seed, layout, strict);
    let least = u64::from(strict || maker.chance(90));
    let count = maker.pick(&[1, 1, 1, 2, 3]) * least;
    let resources: Vec<_> = (0..count).map(|_| maker.resource()).collect();
    if maker.rarely() {
        maker.orphans();
    }
    if resources.is_empty() && maker.chance(50) {
        maker.d = json!({});
    }
    object(json!({"resourceProfiles": resources, "dictionary": maker.d}))
}

/// The lists that samples have: values, timestamps, or both.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Values,
    Times,
    Both,
}

impl Maker {
    fn resource(&mut self) -> Value {
        let pairs = self.pairs(2);
        let keys: Vec<_> = pairs
            .iter()
            .map(|pair| text(pair, "key").to_owned())
            .collect();
        let mut entities = Vec::new();
        if !keys.is_empty() && self.chance(40) {
            let keys = (&keys[..1], &keys[1..]);
            let entity = json!({
                "schemaUrl": self.schema_url(), "type": "service", "idKeys": keys.0, "descriptionKeys": keys.1,
            });
            entities.push(object(entity));
        }
        let count = self.few();
        let scopes: Value = (0..count).map(|_| self.scope()).collect();
        let resource = json!({
            "attributes": self.shared_pairs(pairs),
            "droppedAttributesCount": self.dropped(),
            "entityRefs": entities,
        });
        object(
            json!({"resource": object(resource), "schemaUrl": self.schema_url(), "scopeProfiles": scopes}),
        )
    }

    fn few(&mut self) -> u64 {
        if self.rarely() {
            0
        } else {
            self.pick(&[1, 1, 2, 3])
        }
    }

    fn shared_pairs(&mut self, pairs: Vec<Value>) -> Vec<Value> {
        pairs
            .into_iter()
            .map(|pair| self.shared_pair(pair))
            .collect()
    }

    fn schema_url(&mut self) -> &'static str {
        let invalid = if self.rarely() { "not a url" } else { "" };
        self.pick(&[invalid, "", "https://opentelemetry.io/schemas/1.37.0"])
    }

    fn dropped(&mut self) -> u32 {
        self.pick(&[0, 0, 0, 3, u32::MAX])
    }

    fn scope(&mut self) -> Value {
        let together = self.chance(50);
        let count = self.few();
        let profiles: Vec<_> = if together {
            self.aligned(count)
        } else {
            (0..count).flat_map(|_| self.aligned(1)).collect()
        };
        let pairs = self.pairs(2);
        let mut attributes = self.shared_pairs(pairs);
        if count > 0 && self.chance(50) {
            let (first, step) = (self.below(count), self.pick(&[1, count - 1]));
            let order: Value = (0..count)
                .map(|i| json!({"intValue": ((first + i * step) % count).to_string()}))
                .collect();
            let order = json!({"arrayValue": {"values": order}});
            attributes.push(
                self.shared_pair(json!({"key": "pprof.scope.sample_type_order", "value": order})),
            );
        }
        if self.chance(30) {
            let value = json!({"stringValue": self.pick(&TYPES).0});
            attributes.push(json!({"key": "pprof.scope.default_sample_type", "value": value}));
        }
        let scope = json!({
            "name": self.text(),
            "version": self.pick(&["", "1.2.3"]),
            "attributes": attributes,
            "droppedAttributesCount": self.dropped(),
        });
        object(
            json!({"scope": object(scope), "profiles": profiles, "schemaUrl": self.schema_url()}),
        )
    }

    /// Profiles whose samples differ only in their values, like the profiles of one pprof file. Sometimes the last sample is
    /// missing.
    fn aligned(&mut self, count: u64) -> Vec<Value> {
        let first = self.layout != Layout::V11 && list(&self.d, "stackTable").len() == 1;
        let mut shape = self.pick(&[Shape::Values, Shape::Values, Shape::Times, Shape::Both]);
        let samples = self.samples();
        if first {
            shape = Shape::Values;
        }
        // The end is before 2^63.
        let time = self.pick(&[0, 1, 1_700_000_000_123_456_789, (1 << 63) - 2]);
        let duration = self
            .pick(&[1, 1_000_000_000, (1 << 53) + 1, 1 << 62])
            .min((1 << 63) - 1 - time);
        let samples: Vec<_> = samples
            .into_iter()
            .map(|sample| self.observed(sample, shape, time, duration))
            .collect();
        let profiles = (0..count).map(|i| {
            let mut samples = samples.clone();
            if i > 0 && self.chance(15) {
                samples.pop();
            }
            for value in samples
                .iter_mut()
                .filter_map(|sample| sample["values"].as_array_mut())
                .flatten()
            {
                *value = json!(self.extreme().to_string());
            }
            let samples: Vec<_> = samples.into_iter().map(object).collect();
            self.profile(samples, time, duration)
        });
        profiles.collect()
    }

    /// Samples with unique identities, without observations.
    fn samples(&mut self) -> Vec<Value> {
        let (mut samples, mut identities) = (Vec::new(), BTreeSet::new());
        for _ in 0..self.pick(&[0, 1, 2, 3, 5, 8]) {
            let (stack, mut attributes) = (self.stack(), self.attributes());
            let link = if self.chance(20) { self.link() } else { 0 };
            if self.rarely() {
                attributes.push(self.attribute(
                    "profile.frame.type",
                    json!({"stringValue": "r"}),
                    "",
                ));
            }
            let all: BTreeSet<_> = attributes.iter().copied().collect();
            let new = identities.insert((stack, all, link));
            if new || self.rarely() {
                samples.push(
                    json!({"stackIndex": stack, "attributeIndices": attributes, "linkIndex": link}),
                );
            }
        }
        samples
    }

    fn observed(&mut self, mut sample: Value, shape: Shape, time: u64, duration: u64) -> Value {
        let mixed = self.layout == Layout::V11 && self.rarely();
        let shape = if mixed { Shape::Both } else { shape };
        let count = self.pick(&[1, 1, 1, 2, 4]);
        if shape != Shape::Times {
            sample["values"] = json!(vec!["0"; count]);
        }
        if shape != Shape::Values {
            let outside = self.rarely();
            let times = (0..count).map(|_| {
                if outside {
                    self.below(1 << 63)
                } else {
                    time + self.below(duration)
                }
            });
            sample["timestampsUnixNano"] = times.map(|time| json!(time.to_string())).collect();
        }
        sample
    }

    fn profile(&mut self, samples: Vec<Value>, time: u64, duration: u64) -> Value {
        let untimed = samples
            .iter()
            .all(|sample| sample["timestampsUnixNano"].is_null());
        let mut profile = json!({"droppedAttributesCount": self.dropped(), "samples": samples});
        profile["sampleType"] = self.value_type();
        if self.chance(60) {
            profile["periodType"] = self.value_type();
            profile["period"] = json!(self.extreme().to_string());
        }
        if !(untimed && self.chance(20)) {
            profile["timeUnixNano"] = json!(time.to_string());
            profile["durationNano"] = json!(duration.to_string());
        }
        if self.chance(30) {
            profile["profileId"] = json!(self.hex(16));
        }
        if self.chance(15) {
            let other = if self.rarely() { "custom" } else { "pprof" };
            profile["originalPayloadFormat"] = json!(self.pick(&["jfr", other]));
            profile["originalPayload"] = json!(self.base64(5));
        }
        let mut attributes = self.attributes();
        self.comments(&mut attributes);
        for (name, text) in [
            ("drop_frames", "^f.*"),
            ("keep_frames", ""),
            ("doc_url", "http://a.test/b"),
        ] {
            if self.chance(15) {
                let text = if self.rarely() { "?" } else { text };
                attributes.push(self.attribute(
                    &format!("pprof.profile.{name}"),
                    json!({"stringValue": text}),
                    "",
                ));
            }
        }
        profile["attributeIndices"] = json!(attributes);
        object(profile)
    }

    fn value_type(&mut self) -> Value {
        let (type_, unit) = self.pick(&TYPES);
        object(json!({"typeStrindex": self.string(type_), "unitStrindex": self.string(unit)}))
    }

    /// Adds comments in one of the two forms. The form of the Go collector breaks a rule.
    fn comments(&mut self, attributes: &mut Vec<i64>) {
        if self.chance(70) {
            return;
        }
        let count = self.below(3);
        let texts: Vec<_> = (0..count)
            .map(|_| json!({"stringValue": self.text()}))
            .collect();
        if !self.strict && self.chance(40) {
            // In reverse order, since the number in the key determines the order.
            for (i, text) in texts.into_iter().enumerate().rev() {
                attributes.push(self.attribute(&format!("pprof.profile.comment.{i}"), text, ""));
            }
        } else {
            let value = json!({"arrayValue": object(json!({"values": texts}))});
            attributes.push(self.attribute("pprof.profile.comment", value, ""));
        }
    }
}

/// Between them, the messages break each rule of level "should", and no other.
#[test]
fn irregular_messages_are_valid() {
    let mut broken = BTreeSet::new();
    for layout in LAYOUTS {
        for seed in 0..80 {
            assert_eq!(
                violations(&irregular(seed, layout, true)),
                [],
                "{seed} {layout:?}"
            );
            let data = irregular(seed, layout, false);
            assert_eq!(grave(&data), [], "{seed} {layout:?}");
            broken.extend(violations(&data).into_iter().map(|v| v.rule));
        }
    }
    assert_eq!(broken, SHOULD.into_iter().collect());
}
