//! Checks a message against the rules of OpenTelemetry, independently of the crate.
//!
//! The rules are from profiles.proto, common.proto and resource.proto; of data-format.md, mappings.md and
//! common/README.md of the specification; of "Empty Telemetry Envelopes" of the protocol; and of the semantic
//! conventions for pprof, profiles and build ids.
//!
//! Not checked, since a message does not contain the information: whether more build ids are known, whether a more precise
//! frame type applies, whether values were scaled up, and whether a unit is defined in UCUM (only its characters are
//! checked).

use super::content::{comment_texts, resolved};
use super::message::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub place: String,
}

/// The rules that are a "must". A rule that is stated without "must" and "should" is here if a reader could not interpret
/// the message otherwise.
#[rustfmt::skip]
pub const MUST: [&str; 19] = [
    "index-range", "zero-first", "function-named", "link-ids", "mapping-build-id", "entity-type", "entity-id",
    "entity-keys", "profile-id", "original-payload", "sample-empty", "sample-lengths", "key-twice",
    "key-empty", "key-unique", "scope-attribute", "attribute-type", "frame-type", "sample-type-order",
];

/// The rules that are a "should".
#[rustfmt::skip]
pub const SHOULD: [&str; 17] = [
    "null-index", "link-zero", "duplicate", "orphan", "line-negative", "address-in-mapping", "empty-envelope",
    "schema-url", "payload-format", "sample-combined", "sample-shape", "timestamp-range", "unit-ucum",
    "attribute-place", "comment-form", "doc-url", "build-id-form",
];

/// Attributes whose type is fixed by the semantic conventions.
const TYPES: [(&str, &[&str]); 4] = [
    (
        "boolValue",
        &[
            "pprof.mapping.has_functions",
            "pprof.mapping.has_filenames",
            "pprof.mapping.has_line_numbers",
            "pprof.mapping.has_inline_frames",
            "pprof.location.is_folded",
        ],
    ),
    (
        "stringValue",
        &[
            "pprof.profile.drop_frames",
            "pprof.profile.keep_frames",
            "pprof.profile.doc_url",
            "pprof.scope.default_sample_type",
            "profile.frame.type",
            "process.executable.build_id.gnu",
            "process.executable.build_id.go",
            "process.executable.build_id.htlhash",
        ],
    ),
    ("stringValue[]", &["pprof.profile.comment"]),
    ("intValue[]", &["pprof.scope.sample_type_order"]),
];

/// The kinds of records to which attributes belong that start so.
const PLACES: [(&str, &str); 4] = [
    ("pprof.profile.", "profile"),
    ("pprof.mapping.", "mapping"),
    ("pprof.location.", "location"),
    ("profile.frame.", "location"),
];

const FRAME_TYPES: &str = "beam cpython dotnet go jvm kernel luajit native perl php ruby rust v8js";
const BUILD_ID: &str = "process.executable.build_id.";

struct Checker<'a> {
    data: &'a Value,
    d: &'a Value,
    /// The rows of each table with their content, as text.
    rows: BTreeMap<&'static str, Vec<String>>,
    out: Vec<Violation>,
}

/// Returns the rules that a message breaks. If indices are out of range, only these are reported.
pub fn violations(data: &Value) -> Vec<Violation> {
    let mut checker = Checker {
        data,
        d: &data["dictionary"],
        rows: BTreeMap::new(),
        out: Vec::new(),
    };
    let (dangling, orphans) = references(data);
    for place in &dangling {
        checker.report("index-range", place);
    }
    if dangling.is_empty() {
        orphans
            .iter()
            .for_each(|place| checker.report("orphan", place));
        checker.keys(data, "");
        checker.tables();
        checker.envelopes();
    }
    checker.out
}

/// Returns only the rules of level "must" that a message breaks.
pub fn grave(data: &Value) -> Vec<Violation> {
    let mut all = violations(data);
    all.retain(|violation| MUST.contains(&violation.rule));
    all
}

/// The indices that are out of range, and the rows that no profile uses, directly or indirectly. Index 0 means "none", even
/// if the table is empty.
fn references(data: &Value) -> (Vec<String>, Vec<String>) {
    let mut copy = data.clone();
    let (mut dangling, mut uses, mut next) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut note =
        |message: &mut Value, type_: &str, place: &str, uses: &mut Vec<(&'static str, usize)>| {
            each_index(message, type_, place, &mut |table, place, index| {
                let index = number(index);
                match usize::try_from(index) {
                    Ok(0) => {}
                    Ok(index) if index < list(&data["dictionary"], table).len() => {
                        uses.push((table, index))
                    }
                    _ => dangling.push(format!("{place} is {index}")),
                }
            });
        };
    let resources = copy["resourceProfiles"].as_array_mut();
    for (i, resource) in resources.into_iter().flatten().enumerate() {
        note(
            resource,
            "ResourceProfiles",
            &format!("resourceProfiles[{i}]"),
            &mut next,
        );
    }
    for table in fields("Dictionary") {
        let rows = copy["dictionary"][table.name].as_array_mut();
        for (i, row) in rows.into_iter().flatten().enumerate() {
            let mut used = Vec::new();
            if table.is_message() {
                note(
                    row,
                    table.kind,
                    &format!("dictionary.{}[{i}]", table.name),
                    &mut used,
                );
            }
            uses.insert((table.name, i), used);
        }
    }
    let mut seen = BTreeSet::new();
    while let Some(row) = next.pop() {
        if seen.insert(row) {
            next.extend(&uses[&row]);
        }
    }
    let orphans = uses.keys().filter(|row| row.1 > 0 && !seen.contains(*row));
    (
        dangling,
        orphans
            .map(|(table, row)| format!("dictionary.{table}[{row}]"))
            .collect(),
    )
}

impl Checker<'_> {
    fn report(&mut self, rule: &'static str, place: impl Display) {
        assert!(MUST.contains(&rule) || SHOULD.contains(&rule), "{rule}");
        self.out.push(Violation {
            rule,
            place: place.to_string(),
        });
    }

    fn report_if(&mut self, wrong: bool, rule: &'static str, place: impl Display) {
        if wrong {
            self.report(rule, place);
        }
    }

    /// Checks that no pair has its key in two ways.
    fn keys(&mut self, value: &Value, place: &str) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.keys(item, place)),
            Value::Object(fields) => {
                let twice = fields.contains_key("key") && fields.contains_key("keyStrindex");
                self.report_if(twice, "key-twice", place);
                fields
                    .iter()
                    .for_each(|(name, value)| self.keys(value, &format!("{place}.{name}")));
            }
            _ => {}
        }
    }

    fn envelopes(&mut self) {
        let resources = list(self.data, "resourceProfiles");
        self.report_if(resources.is_empty(), "empty-envelope", "message");
        for (r, given) in resources.iter().enumerate() {
            let place = format!("resourceProfiles[{r}]");
            let scopes = list(given, "scopeProfiles");
            self.report_if(scopes.is_empty(), "empty-envelope", &place);
            self.schema_url(&place, given);
            let attributes = self.pairs(&place, "resource", &given["resource"], 0);
            let keys: BTreeSet<_> = attributes
                .iter()
                .map(|attribute| text(attribute, "key"))
                .collect();
            for entity in list(&given["resource"], "entityRefs") {
                self.schema_url(&place, entity);
                self.report_if(text(entity, "type").is_empty(), "entity-type", &place);
                self.report_if(list(entity, "idKeys").is_empty(), "entity-id", &place);
                for key in list(entity, "idKeys")
                    .iter()
                    .chain(list(entity, "descriptionKeys"))
                {
                    self.report_if(!keys.contains(key.as_str().unwrap()), "entity-keys", &place);
                }
            }
            for (s, given) in scopes.iter().enumerate() {
                let place = format!("{place}.scopeProfiles[{s}]");
                let profiles = list(given, "profiles");
                self.report_if(profiles.is_empty(), "empty-envelope", &place);
                self.schema_url(&place, given);
                self.pairs(&place, "scope", &given["scope"], profiles.len());
                for (p, profile) in profiles.iter().enumerate() {
                    self.profile(&format!("{place}.profiles[{p}]"), profile);
                }
            }
        }
    }

    fn schema_url(&mut self, place: &str, given: &Value) {
        let url = text(given, "schemaUrl");
        let rest = url.strip_prefix("http://").or(url.strip_prefix("https://"));
        let full = rest
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(host, _)| !host.is_empty());
        self.report_if(!url.is_empty() && !full, "schema-url", place);
    }

    fn profile(&mut self, place: &str, profile: &Value) {
        let id = text(profile, "profileId");
        self.report_if(!id.is_empty() && !is_id(id, 32), "profile-id", place);
        let format = text(profile, "originalPayloadFormat");
        if format.is_empty() != text(profile, "originalPayload").is_empty() {
            self.report("original-payload", place);
        } else {
            let known = ["", "pprof", "jfr", "linux_perf"].contains(&format);
            self.report_if(!known, "payload-format", place);
        }
        self.referenced(place, "profile", profile);
        let (mut identities, mut shapes) = (BTreeSet::new(), BTreeSet::new());
        let start = number(&profile["timeUnixNano"]);
        let range = start..start + number(&profile["durationNano"]);
        for (s, sample) in list(profile, "samples").iter().enumerate() {
            let place = format!("{place}.samples[{s}]");
            self.referenced(&place, "sample", sample);
            let (values, times) = (list(sample, "values"), list(sample, "timestampsUnixNano"));
            let lengths = (values.len(), times.len());
            self.report_if(lengths == (0, 0), "sample-empty", &place);
            let differ = lengths.0 != lengths.1 && lengths.0 != 0 && lengths.1 != 0;
            self.report_if(differ, "sample-lengths", &place);
            let outside = times.iter().any(|time| !range.contains(&number(time)));
            self.report_if(outside, "timestamp-range", &place);
            let row = |table: &str, index: &Value| {
                self.rows[table]
                    .get(number(index) as usize)
                    .map_or("{}", String::as_str)
            };
            let attributes = list(sample, "attributeIndices").iter();
            let attributes: BTreeSet<_> = attributes
                .map(|index| row("attributeTable", index).to_owned())
                .collect();
            let stack = row("stackTable", &sample["stackIndex"]).to_owned();
            let link = row("linkTable", &sample["linkIndex"]).to_owned();
            self.report_if(
                !identities.insert((stack, attributes, link)),
                "sample-combined",
                &place,
            );
            shapes.insert((values.is_empty(), times.is_empty()));
        }
        self.report_if(shapes.len() > 1, "sample-shape", place);
    }

    /// Checks the dictionary, except references. An unused table may be empty.
    fn tables(&mut self) {
        let d = self.d;
        let scopes = list(self.data, "resourceProfiles")
            .iter()
            .flat_map(|resource| list(resource, "scopeProfiles"));
        let is_used = scopes
            .into_iter()
            .any(|scope| !list(scope, "profiles").is_empty());
        for table in fields("Dictionary") {
            let place = |row: usize| format!("dictionary.{}[{row}]", table.name);
            let rows = list(d, table.name);
            if is_used || d.as_object().is_some_and(|tables| !tables.is_empty()) {
                let zeros = json!({"traceId": "0".repeat(32), "spanId": "0".repeat(16)});
                match rows.first() {
                    Some(row) if table.kind == "Link" && *row == json!({}) => {
                        self.report("link-zero", place(0))
                    }
                    Some(row) if table.kind == "Link" && *row == zeros => {}
                    Some(row)
                        if table.kind != "Link" && (*row == json!({}) || *row == json!("")) => {}
                    _ => self.report("zero-first", place(0)),
                }
            }
            let content: Vec<_> = rows.iter().map(|row| resolved(d, row)).collect();
            let texts: Vec<_> = content.iter().map(Value::to_string).collect();
            let mut seen = BTreeMap::new();
            for (i, text) in texts.iter().enumerate() {
                // Links of zeros are equal to none.
                let zeros = table.kind == "Link"
                    && !text.contains(|c| ('1'..='9').contains(&c) || ('a'..='f').contains(&c));
                let text = if zeros { "{}" } else { text };
                self.report_if(*seen.entry(text).or_insert(i) != i, "duplicate", place(i));
            }
            for (i, (raw, row)) in rows.iter().zip(&content).enumerate() {
                let absent = list(raw, "locationIndices").contains(&json!(0));
                self.report_if(absent, "null-index", place(i));
                if i > 0 {
                    self.row(table.kind, raw, row, &place(i));
                }
            }
            self.rows.insert(table.name, texts);
        }
    }

    fn row(&mut self, kind: &str, raw: &Value, row: &Value, place: &str) {
        let negative = |value: &Value, name: &str| number(&value[name]) < 0;
        match kind {
            "Mapping" => {
                self.referenced(place, "mapping", raw);
                let known = list(row, "attribute")
                    .iter()
                    .any(|attribute| is_build_id(text(attribute, "key")));
                self.report_if(!known, "mapping-build-id", place);
            }
            "Location" => {
                self.referenced(place, "location", raw);
                let mut lines = list(raw, "lines").iter();
                let wrong = lines.any(|line| negative(line, "line") || negative(line, "column"));
                self.report_if(wrong, "line-negative", place);
                // An address of 0 is unset, and so is a mapping from 0 to 0.
                let [start, limit] =
                    ["memoryStart", "memoryLimit"].map(|name| number(&row["mapping"][name]));
                let address = number(&raw["address"]);
                let outside =
                    address != 0 && (start, limit) != (0, 0) && !(start..=limit).contains(&address);
                self.report_if(outside, "address-in-mapping", place);
            }
            "Function" => {
                let names = ["name", "systemName", "filename"].map(|name| text(row, name));
                self.report_if(names.concat().is_empty(), "function-named", place);
                self.report_if(negative(raw, "startLine"), "line-negative", place);
            }
            "Link" => {
                let right = is_id(text(raw, "traceId"), 32) && is_id(text(raw, "spanId"), 16);
                self.report_if(!right, "link-ids", place);
            }
            "KeyValueAndUnit" => {
                self.report_if(text(row, "key").is_empty(), "key-empty", place);
                self.maps(place, &row["value"]);
                // Units of UCUM consist of printable ASCII characters without spaces.
                let is_ucum = text(row, "unit").bytes().all(|b| (33..127).contains(&b));
                self.report_if(!is_ucum, "unit-ucum", place);
            }
            _ => {}
        }
    }

    /// Checks attributes that are stored inline, and returns them.
    fn pairs(&mut self, place: &str, kind: &str, given: &Value, profiles: usize) -> Vec<Value> {
        let given = resolved(self.d, given);
        let attributes = list(&given, "attributes");
        for attribute in attributes {
            self.report_if(text(attribute, "key").is_empty(), "key-empty", place);
            self.maps(place, &attribute["value"]);
        }
        self.record(place, kind, attributes, profiles);
        attributes.to_vec()
    }

    /// Checks attributes that are stored as indices.
    fn referenced(&mut self, place: &str, kind: &str, given: &Value) {
        let indices = &given["attributeIndices"];
        let absent = list(given, "attributeIndices").contains(&json!(0));
        self.report_if(absent, "null-index", place);
        let attributes = resolved(self.d, &json!({"attributeIndices": indices}));
        self.record(place, kind, list(&attributes, "attribute"), 0);
    }

    fn maps(&mut self, place: &str, value: &Value) {
        for value in list(&value["arrayValue"], "values") {
            self.maps(place, value);
        }
        let pairs = list(&value["kvlistValue"], "values");
        self.report_if(has_equal_keys(pairs), "key-unique", place);
        pairs
            .iter()
            .for_each(|pair| self.maps(place, &pair["value"]));
    }

    /// Checks the attributes of a record, which are sorted.
    fn record(&mut self, place: &str, kind: &str, attributes: &[Value], profiles: usize) {
        self.report_if(has_equal_keys(attributes), "key-unique", place);
        for attribute in attributes {
            let key = text(attribute, "key");
            let place = format!("{place}: {key}");
            let misplaced = key.starts_with("pprof.scope.") && kind != "scope";
            self.report_if(misplaced, "scope-attribute", &place);
            let misplaced = PLACES
                .iter()
                .any(|(start, only)| key.starts_with(start) && kind != *only);
            self.report_if(misplaced, "attribute-place", &place);
            let value = &attribute["value"];
            let type_ = TYPES.iter().find(|(_, keys)| keys.contains(&key));
            if type_.is_some_and(|(type_, _)| !has_type(value, type_)) {
                self.report("attribute-type", &place);
                continue;
            }
            let known = text(value, "stringValue");
            if key == "profile.frame.type" {
                let misspelt = |name: &str| name.eq_ignore_ascii_case(known) && name != known;
                let wrong = known.is_empty() || FRAME_TYPES.split(' ').any(misspelt);
                self.report_if(wrong, "frame-type", &place);
            } else if key == "pprof.scope.sample_type_order" && kind == "scope" {
                let order = list(&value["arrayValue"], "values").iter();
                let mut order: Vec<_> = order.map(|place| number(&place["intValue"])).collect();
                order.sort_unstable();
                self.report_if(
                    !order.into_iter().eq(0..profiles as i128),
                    "sample-type-order",
                    &place,
                );
            } else if key == "pprof.profile.doc_url" {
                self.report_if(!is_absolute(known), "doc-url", &place);
            } else if is_build_id(key) {
                self.report_if(!build_id_form(key, known), "build-id-form", &place);
            } else if matches!(comment_texts(attribute), Some((Some(_), _))) {
                self.report("comment-form", &place);
            }
        }
    }
}

/// Whether an id has so many digits and is not zero.
fn is_id(hex: &str, digits: usize) -> bool {
    hex.len() == digits && !hex.trim_matches('0').is_empty()
}

fn has_equal_keys(pairs: &[Value]) -> bool {
    pairs
        .windows(2)
        .any(|two| text(&two[0], "key") == text(&two[1], "key"))
}

fn has_type(value: &Value, type_: &str) -> bool {
    match type_.strip_suffix("[]") {
        None => value.get(type_).is_some(),
        Some(type_) => value.get("arrayValue").is_some_and(|value| {
            let mut values = list(value, "values").iter();
            values.all(|value| value.get(type_).is_some())
        }),
    }
}

fn is_build_id(key: &str) -> bool {
    key.strip_prefix(BUILD_ID)
        .is_some_and(|kind| ["gnu", "go", "htlhash"].contains(&kind))
}

/// Whether a build id has the form that its key requires: GNU ids are hexadecimal, and so are hashes, of 16 bytes.
fn build_id_form(key: &str, id: &str) -> bool {
    let hex = id.len() % 2 == 0 && id.bytes().all(|b| b.is_ascii_hexdigit());
    !id.is_empty()
        && (key.ends_with(".go") || hex)
        && (!key.ends_with(".htlhash") || id.len() == 32)
}

fn is_absolute(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, rest)| {
        let known = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(known)
            && !rest.is_empty()
    })
}
