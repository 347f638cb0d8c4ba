//! The rules of the specification about tables and attributes; see `check.rs`.

use super::check::{Checker, zeros};
use super::content::*;
use super::message::*;
use super::references::{Same, same};

/// The kind of the record that has the attributes. For a scope, the number of its profiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Resource,
    Scope(usize),
    Profile,
    Sample,
    Mapping,
    Location,
}

/// Attributes whose type is fixed by the semantic conventions.
const TYPES: [(&str, &str); 15] = [
    ("pprof.mapping.has_functions", "boolean"),
    ("pprof.mapping.has_filenames", "boolean"),
    ("pprof.mapping.has_line_numbers", "boolean"),
    ("pprof.mapping.has_inline_frames", "boolean"),
    ("pprof.location.is_folded", "boolean"),
    ("pprof.profile.comment", "string[]"),
    ("pprof.profile.drop_frames", "string"),
    ("pprof.profile.keep_frames", "string"),
    ("pprof.profile.doc_url", "string"),
    ("pprof.scope.default_sample_type", "string"),
    ("pprof.scope.sample_type_order", "int[]"),
    ("profile.frame.type", "string"),
    ("process.executable.build_id.gnu", "string"),
    ("process.executable.build_id.go", "string"),
    ("process.executable.build_id.htlhash", "string"),
];

const FRAME_TYPES: [&str; 13] = [
    "beam", "cpython", "dotnet", "go", "jvm", "kernel", "luajit", "native", "perl", "php", "ruby",
    "rust", "v8js",
];

const BUILD_ID: &str = "process.executable.build_id.";

fn has_type(value: &Resolved, type_: &str) -> bool {
    match (value, type_) {
        (Resolved::Bool(_), "boolean") | (Resolved::String(_), "string") => true,
        (Resolved::Array(v), "string[]") => v.iter().all(|v| matches!(v, Resolved::String(_))),
        (Resolved::Array(v), "int[]") => v.iter().all(|v| matches!(v, Resolved::Int(_))),
        _ => false,
    }
}

impl Checker<'_> {
    /// Checks the dictionary, except references. An unused table may be empty.
    pub fn tables(&mut self) -> Same {
        let d = &self.data.dictionary;
        let mut scopes = self
            .data
            .resource_profiles
            .iter()
            .flat_map(|r| &r.scope_profiles);
        if *d != Dictionary::default() || scopes.any(|scope| !scope.profiles.is_empty()) {
            self.zeros_first();
        }
        for (i, mapping) in d.mapping_table.iter().enumerate().skip(1) {
            let place = format!("dictionary.mappingTable[{i}]");
            self.referenced(&place, Kind::Mapping, &mapping.attribute_indices);
            let attributes = d.attributes(&mapping.attribute_indices);
            if !attributes
                .iter()
                .any(|attribute| is_build_id(&attribute.key))
            {
                self.report("mapping-build-id", &place);
            }
        }
        for (i, location) in d.location_table.iter().enumerate().skip(1) {
            self.location(&format!("dictionary.locationTable[{i}]"), location);
        }
        for (i, function) in d.function_table.iter().enumerate().skip(1) {
            let place = format!("dictionary.functionTable[{i}]");
            let code = d.function(function);
            if [code.name, code.system_name, code.filename]
                .iter()
                .all(String::is_empty)
            {
                self.report("function-named", &place);
            }
            if function.start_line < 0 {
                self.report("line-negative", &place);
            }
        }
        for (i, link) in d.link_table.iter().enumerate().skip(1) {
            let ids = (link.trace_id.len(), link.span_id.len());
            if ids != (16, 8) || zeros(&link.trace_id) || zeros(&link.span_id) {
                self.report("link-ids", format!("dictionary.linkTable[{i}]"));
            }
        }
        for (i, stack) in d.stack_table.iter().enumerate() {
            if stack.location_indices.contains(&0) {
                self.report("null-index", format!("dictionary.stackTable[{i}]"));
            }
        }
        for (i, attribute) in d.attribute_table.iter().enumerate().skip(1) {
            let place = format!("dictionary.attributeTable[{i}]");
            self.both_keys(&place, &attribute.value);
            let attribute = d.attribute(attribute);
            if attribute.key.is_empty() {
                self.report("key-empty", &place);
            }
            self.maps(&place, &attribute.value);
            // Units of UCUM consist of printable ASCII characters without spaces.
            if !attribute.unit.bytes().all(|b| (33..127).contains(&b)) {
                self.report("unit-ucum", &place);
            }
        }
        self.duplicates()
    }

    fn zeros_first(&mut self) {
        let d = &self.data.dictionary;
        let tables = [
            (
                "mapping",
                d.mapping_table.first() == Some(&Mapping::default()),
            ),
            (
                "location",
                d.location_table.first() == Some(&Location::default()),
            ),
            (
                "function",
                d.function_table.first() == Some(&Function::default()),
            ),
            ("string", d.string_table.first() == Some(&String::new())),
            (
                "attribute",
                d.attribute_table.first() == Some(&KeyValueAndUnit::default()),
            ),
            ("stack", d.stack_table.first() == Some(&Stack::default())),
        ];
        for (name, _) in tables.iter().filter(|table| !table.1) {
            self.report("zero-first", format!("dictionary.{name}Table"));
        }
        let place = "dictionary.linkTable";
        match d.link_table.first() {
            Some(link) if *link == Link::default() => self.report("link-zero", place),
            Some(link) if link.trace_id == [0; 16] && link.span_id == [0; 8] => {}
            _ => self.report("zero-first", place),
        }
    }

    fn duplicates(&mut self) -> Same {
        let d = &self.data.dictionary;
        let attributes = same(d.attribute_table.iter().map(|a| d.attribute(a)));
        let links = same(d.link_table.iter().map(|l| d.link(l)));
        let stacks = same(d.stack_table.iter().map(|s| d.stack(s)));
        for (name, same) in [
            ("string", &same(d.string_table.iter())),
            ("attribute", &attributes),
            (
                "mapping",
                &same(d.mapping_table.iter().map(|m| d.mapping(m))),
            ),
            (
                "function",
                &same(d.function_table.iter().map(|f| d.function(f))),
            ),
            (
                "location",
                &same(d.location_table.iter().map(|l| d.location(l))),
            ),
            ("link", &links),
            ("stack", &stacks),
        ] {
            for (i, first) in same.iter().enumerate().filter(|(i, first)| i != *first) {
                self.report(
                    "duplicate",
                    format!("dictionary.{name}Table[{i}] is [{first}]"),
                );
            }
        }
        Same {
            attributes,
            links,
            stacks,
        }
    }

    fn location(&mut self, place: &str, location: &Location) {
        let d = &self.data.dictionary;
        self.referenced(place, Kind::Location, &location.attribute_indices);
        if location
            .lines
            .iter()
            .any(|line| line.line < 0 || line.column < 0)
        {
            self.report("line-negative", place);
        }
        // An address of 0 is unset, and so is a mapping from 0 to 0.
        if location.mapping_index != 0 && location.address != 0 {
            let mapping = &d.mapping_table[location.mapping_index as usize];
            let range = mapping.memory_start..=mapping.memory_limit;
            if range != (0..=0) && !range.contains(&location.address) {
                self.report("address-in-mapping", place);
            }
        }
    }

    /// Checks attributes that are stored inline.
    pub fn pairs(&mut self, place: &str, pairs: &[KeyValue]) {
        for pair in pairs {
            self.both_keys(place, &AnyValue::Kvlist(vec![pair.clone()]));
        }
        for attribute in self.data.dictionary.pairs(pairs) {
            if attribute.key.is_empty() {
                self.report("key-empty", place);
            }
            self.maps(place, &attribute.value);
        }
    }

    /// Checks attributes that are stored as indices.
    pub fn referenced(&mut self, place: &str, kind: Kind, indices: &[i32]) {
        if indices.contains(&0) {
            self.report("null-index", place);
        }
        let attributes = self.data.dictionary.attributes(indices);
        self.record(place, kind, &attributes);
    }

    fn both_keys(&mut self, place: &str, value: &AnyValue) {
        match value {
            AnyValue::Array(values) => values.iter().for_each(|v| self.both_keys(place, v)),
            AnyValue::Kvlist(pairs) => {
                for pair in pairs {
                    if !pair.key.is_empty() && pair.key_strindex != 0 {
                        self.report("key-twice", place);
                    }
                    self.both_keys(place, &pair.value);
                }
            }
            _ => {}
        }
    }

    fn maps(&mut self, place: &str, value: &Resolved) {
        match value {
            Resolved::Array(values) => values.iter().for_each(|v| self.maps(place, v)),
            Resolved::Map(pairs) => {
                if pairs.windows(2).any(|two| two[0].0 == two[1].0) {
                    self.report("key-unique", place);
                }
                pairs.iter().for_each(|(_, v)| self.maps(place, v));
            }
            _ => {}
        }
    }

    /// Checks the attributes of a record, which are sorted.
    pub fn record(&mut self, place: &str, kind: Kind, attributes: &[Attribute]) {
        if attributes.windows(2).any(|two| two[0].key == two[1].key) {
            self.report("key-unique", place);
        }
        for attribute in attributes {
            let place = format!("{place}: {}", attribute.key);
            self.known(&place, kind, attribute);
        }
    }

    fn known(&mut self, place: &str, kind: Kind, attribute: &Attribute) {
        let key = attribute.key.as_str();
        let belongs = |prefix: &str, to: bool| !key.starts_with(prefix) || to;
        if !belongs("pprof.scope.", matches!(kind, Kind::Scope(_))) {
            self.report("scope-attribute", place);
        }
        if !belongs("pprof.profile.", kind == Kind::Profile)
            || !belongs("pprof.mapping.", kind == Kind::Mapping)
            || !belongs("pprof.location.", kind == Kind::Location)
            || !belongs("profile.frame.", kind == Kind::Location)
        {
            self.report("attribute-place", place);
        }
        let type_ = TYPES.iter().find(|known| known.0 == key);
        if type_.is_some_and(|(_, type_)| !has_type(&attribute.value, type_)) {
            return self.report("attribute-type", place);
        }
        match (key, &attribute.value, kind) {
            ("profile.frame.type", Resolved::String(text), _) => {
                let misspelt = |known: &&str| known.eq_ignore_ascii_case(text) && *known != text;
                if text.is_empty() || FRAME_TYPES.iter().any(misspelt) {
                    self.report("frame-type", place);
                }
            }
            ("pprof.scope.sample_type_order", Resolved::Array(values), Kind::Scope(profiles)) => {
                let mut order = values.clone();
                order.sort();
                if order != (0..profiles as i64).map(Resolved::Int).collect::<Vec<_>>() {
                    self.report("sample-type-order", place);
                }
            }
            ("pprof.profile.doc_url", Resolved::String(url), _) if !is_absolute(url) => {
                self.report("doc-url", place);
            }
            (_, Resolved::String(id), _) if is_build_id(key) && !build_id_form(key, id) => {
                self.report("build-id-form", place);
            }
            _ if matches!(comment_texts(attribute), Some((Some(_), _))) => {
                self.report("comment-form", place)
            }
            _ => {}
        }
    }
}

fn is_build_id(key: &str) -> bool {
    ["gnu", "go", "htlhash"]
        .iter()
        .any(|kind| key.strip_prefix(BUILD_ID) == Some(*kind))
}

/// Whether a build id has the form that its key requires: GNU ids are hexadecimal, and so are
/// hashes, of 16 bytes.
fn build_id_form(key: &str, id: &str) -> bool {
    let hex = id.len() % 2 == 0 && id.bytes().all(|b| b.is_ascii_hexdigit());
    !id.is_empty()
        && (key.ends_with(".go") || hex)
        && (!key.ends_with(".htlhash") || id.len() == 32)
}

fn is_absolute(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            && !rest.is_empty()
    })
}
