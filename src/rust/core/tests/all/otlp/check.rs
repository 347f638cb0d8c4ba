//! Checks a message against the rules of OpenTelemetry, independently of the crate.
//!
//! The rules are from profiles.proto, common.proto and resource.proto; of data-format.md,
//! mappings.md and common/README.md of the specification; of "Empty Telemetry Envelopes" of the
//! protocol; and of the semantic conventions for pprof, profiles and build ids.
//!
//! Not checked, since a message does not contain the information: whether more build ids are known,
//! whether a more precise frame type applies, whether values were scaled up, and whether a unit is
//! defined in UCUM (only its characters are checked).

use super::attributes::Kind;
use super::message::*;
use super::references;
use std::collections::BTreeSet;
use std::fmt::Display;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Must,
    Should,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub level: Level,
    pub place: String,
}

use Level::{Must, Should};

/// The rules, and whether they are a "must" or a "should". A rule that is stated without these words
/// is a "must" if a reader could not interpret the message otherwise.
pub const RULES: [(&str, Level); 36] = [
    // The dictionary, and references to it.
    ("index-range", Must),
    ("null-index", Should),
    ("zero-first", Must),
    ("link-zero", Should),
    ("duplicate", Should),
    ("orphan", Should),
    ("function-named", Must),
    ("line-negative", Should),
    ("link-ids", Must),
    ("address-in-mapping", Should),
    ("mapping-build-id", Must),
    // Envelopes.
    ("empty-envelope", Should),
    ("schema-url", Should),
    ("entity-type", Must),
    ("entity-id", Must),
    ("entity-keys", Must),
    // Profiles and samples.
    ("profile-id", Must),
    ("original-payload", Must),
    ("payload-format", Should),
    ("sample-empty", Must),
    ("sample-lengths", Must),
    ("sample-combined", Should),
    ("sample-shape", Should),
    ("timestamp-range", Should),
    // Attributes.
    ("key-twice", Must),
    ("key-empty", Must),
    ("key-unique", Must),
    ("unit-ucum", Should),
    ("scope-attribute", Must),
    ("attribute-place", Should),
    ("attribute-type", Must),
    ("frame-type", Must),
    ("sample-type-order", Must),
    ("comment-form", Should),
    ("doc-url", Should),
    ("build-id-form", Should),
];

pub struct Checker<'a> {
    pub data: &'a Data,
    pub out: Vec<Violation>,
}

/// Returns the rules that a message breaks. If indices are out of range, only these are reported.
pub fn violations(data: &Data) -> Vec<Violation> {
    let mut checker = Checker {
        data,
        out: Vec::new(),
    };
    let graph = references::graph(data);
    for (place, index) in graph.dangling() {
        checker.report("index-range", format!("{place} is {index}"));
    }
    if checker.out.is_empty() {
        for place in graph.orphans() {
            checker.report("orphan", place);
        }
        let same = checker.tables();
        checker.envelopes(&same);
    }
    checker.out
}

/// Returns only the rules of level "must" that a message breaks.
pub fn grave(data: &Data) -> Vec<Violation> {
    let mut all = violations(data);
    all.retain(|violation| violation.level == Must);
    all
}

impl Checker<'_> {
    pub fn report(&mut self, rule: &str, place: impl Display) {
        let (rule, level) = *RULES.iter().find(|known| known.0 == rule).unwrap();
        let place = place.to_string();
        self.out.push(Violation { rule, level, place });
    }

    fn envelopes(&mut self, same: &references::Same) {
        let data = self.data;
        if data.resource_profiles.is_empty() {
            self.report("empty-envelope", "message");
        }
        for (r, given) in data.resource_profiles.iter().enumerate() {
            let place = format!("resourceProfiles[{r}]");
            if given.scope_profiles.is_empty() {
                self.report("empty-envelope", &place);
            }
            self.schema_url(&place, &given.schema_url);
            self.pairs(&place, &given.resource.attributes);
            let attributes = data.dictionary.pairs(&given.resource.attributes);
            self.record(&place, Kind::Resource, &attributes);
            for entity in &given.resource.entity_refs {
                self.entity(
                    &place,
                    entity,
                    &attributes.iter().map(|a| a.key.as_str()).collect(),
                );
            }
            for (s, given) in given.scope_profiles.iter().enumerate() {
                self.scope(&format!("{place}.scopeProfiles[{s}]"), given, same);
            }
        }
    }

    fn scope(&mut self, place: &str, given: &ScopeProfiles, same: &references::Same) {
        if given.profiles.is_empty() {
            self.report("empty-envelope", place);
        }
        self.schema_url(place, &given.schema_url);
        self.pairs(place, &given.scope.attributes);
        let attributes = self.data.dictionary.pairs(&given.scope.attributes);
        self.record(place, Kind::Scope(given.profiles.len()), &attributes);
        for (p, profile) in given.profiles.iter().enumerate() {
            self.profile(&format!("{place}.profiles[{p}]"), profile, same);
        }
    }

    fn schema_url(&mut self, place: &str, url: &str) {
        let rest = url.strip_prefix("http://").or(url.strip_prefix("https://"));
        let full = rest.is_some_and(|rest| {
            rest.split_once('/')
                .is_some_and(|(host, _)| !host.is_empty())
        });
        if !url.is_empty() && !full {
            self.report("schema-url", place);
        }
    }

    fn entity(&mut self, place: &str, entity: &EntityRef, keys: &BTreeSet<&str>) {
        self.schema_url(place, &entity.schema_url);
        if entity.type_.is_empty() {
            self.report("entity-type", place);
        }
        if entity.id_keys.is_empty() {
            self.report("entity-id", place);
        }
        for key in entity.id_keys.iter().chain(&entity.description_keys) {
            if !keys.contains(key.as_str()) {
                self.report("entity-keys", format!("{place}: {key}"));
            }
        }
    }

    fn profile(&mut self, place: &str, profile: &Profile, same: &references::Same) {
        let id = &profile.profile_id;
        if !id.is_empty() && (id.len() != 16 || zeros(id)) {
            self.report("profile-id", place);
        }
        let format = profile.original_payload_format.as_str();
        if format.is_empty() != profile.original_payload.is_empty() {
            self.report("original-payload", place);
        } else if !["", "pprof", "jfr", "linux_perf"].contains(&format) {
            self.report("payload-format", place);
        }
        self.referenced(place, Kind::Profile, &profile.attribute_indices);

        let mut identities = BTreeSet::new();
        let mut shapes = BTreeSet::new();
        for (s, sample) in profile.samples.iter().enumerate() {
            let place = format!("{place}.samples[{s}]");
            self.referenced(&place, Kind::Sample, &sample.attribute_indices);
            self.observations(&place, profile, sample);
            let attributes: BTreeSet<_> = sample
                .attribute_indices
                .iter()
                .map(|i| same.attribute(*i))
                .collect();
            if !identities.insert((
                same.stack(sample.stack_index),
                attributes,
                same.link(sample.link_index),
            )) {
                self.report("sample-combined", &place);
            }
            shapes.insert((
                sample.values.is_empty(),
                sample.timestamps_unix_nano.is_empty(),
            ));
        }
        if shapes.len() > 1 {
            self.report("sample-shape", place);
        }
    }

    fn observations(&mut self, place: &str, profile: &Profile, sample: &Sample) {
        match (sample.values.len(), sample.timestamps_unix_nano.len()) {
            (0, 0) => self.report("sample-empty", place),
            (_, 0) | (0, _) => {}
            (values, times) if values != times => self.report("sample-lengths", place),
            _ => {}
        }
        let from = u128::from(profile.time_unix_nano);
        let range = from..from + u128::from(profile.duration_nano);
        let mut times = sample.timestamps_unix_nano.iter();
        if !times.all(|time| range.contains(&u128::from(*time))) {
            self.report("timestamp-range", place);
        }
    }
}

pub fn zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
