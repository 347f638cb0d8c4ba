//! The content of a message, independent of its encoding, to compare messages.
//!
//! - All indices are resolved, so the order of tables, duplicates and unused rows do not matter, nor
//!   whether strings are in the table.
//! - Attributes and maps are sorted.
//! - A sample with n values becomes n observations. In a sample that has only timestamps, each
//!   observation has the value 1.
//! - Comments are recognized in both forms: the attribute of the semantic conventions, and the
//!   attributes of the Go collector.
//! - Envelopes without profiles are omitted, since receivers may ignore them.
//!
//! Panics if an index is out of range.

use super::message::*;
use std::rc::Rc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub resources: Vec<ResourceContent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceContent {
    pub facts: ResourceFacts,
    pub scopes: Vec<ScopeContent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceFacts {
    pub attributes: Vec<Attribute>,
    pub dropped_attributes_count: u32,
    pub entity_refs: Vec<EntityRef>,
    pub schema_url: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeContent {
    pub facts: ScopeFacts,
    pub profiles: Vec<ProfileContent>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeFacts {
    pub name: String,
    pub version: String,
    pub attributes: Vec<Attribute>,
    pub dropped_attributes_count: u32,
    pub schema_url: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileContent {
    pub facts: ProfileFacts,
    pub observations: Vec<Observation>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFacts {
    /// The type and the unit.
    pub sample_type: (String, String),
    pub period_type: (String, String),
    pub period: i64,
    pub time_unix_nano: u64,
    pub duration_nano: u64,
    pub profile_id: Vec<u8>,
    pub dropped_attributes_count: u32,
    pub original_payload_format: String,
    pub original_payload: Vec<u8>,
    pub comments: Vec<String>,
    pub attributes: Vec<Attribute>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Observation {
    pub stack: Rc<Vec<Frame>>,
    pub attributes: Vec<Attribute>,
    /// The trace id and the span id.
    pub link: Option<(Vec<u8>, Vec<u8>)>,
    pub value: i64,
    pub timestamp: Option<u64>,
}

/// A location. A single line without content is treated as no line.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    pub mapping: Option<Module>,
    pub address: u64,
    pub lines: Vec<Call>,
    pub attributes: Vec<Attribute>,
}

/// A line of a location, and its function.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    pub function: Code,
    pub line: i64,
    pub column: i64,
}

/// A function.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code {
    pub name: String,
    pub system_name: String,
    pub filename: String,
    pub start_line: i64,
}

/// A mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Module {
    pub memory_start: u64,
    pub memory_limit: u64,
    pub file_offset: u64,
    pub filename: String,
    pub attributes: Vec<Attribute>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute {
    pub key: String,
    pub value: Resolved,
    pub unit: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolved {
    #[default]
    Empty,
    String(String),
    Bool(bool),
    Int(i64),
    Double(Double),
    Array(Vec<Resolved>),
    Map(Vec<(String, Resolved)>),
    Bytes(Vec<u8>),
}

impl Content {
    /// Sorts the observations of each profile.
    pub fn sorted(mut self) -> Content {
        for resource in &mut self.resources {
            for scope in &mut resource.scopes {
                for profile in &mut scope.profiles {
                    profile.observations.sort();
                }
            }
        }
        self
    }
}

/// Returns the row with an index, or `None` for index 0.
fn at<T>(table: &[T], index: i32) -> Option<&T> {
    match index {
        0 => None,
        _ => match table.get(index as usize) {
            None => panic!("nothing at {index} of {}", std::any::type_name::<T>()),
            some => some,
        },
    }
}

impl Dictionary {
    pub fn string(&self, index: i32) -> String {
        at(&self.string_table, index).cloned().unwrap_or_default()
    }

    pub fn value(&self, value: &AnyValue) -> Resolved {
        match value {
            AnyValue::Empty => Resolved::Empty,
            AnyValue::String(v) => Resolved::String(v.clone()),
            AnyValue::StringStrindex(v) => Resolved::String(self.string(*v)),
            AnyValue::Bool(v) => Resolved::Bool(*v),
            AnyValue::Int(v) => Resolved::Int(*v),
            AnyValue::Double(v) => Resolved::Double(*v),
            AnyValue::Bytes(v) => Resolved::Bytes(v.clone()),
            AnyValue::Array(v) => Resolved::Array(v.iter().map(|v| self.value(v)).collect()),
            AnyValue::Kvlist(v) => {
                let mut map: Vec<_> = v
                    .iter()
                    .map(|v| (self.key(v), self.value(&v.value)))
                    .collect();
                map.sort();
                Resolved::Map(map)
            }
        }
    }

    pub fn key(&self, pair: &KeyValue) -> String {
        match pair.key_strindex {
            0 => pair.key.clone(),
            index => self.string(index),
        }
    }

    pub fn pairs(&self, pairs: &[KeyValue]) -> Vec<Attribute> {
        let resolved = pairs.iter().map(|pair| Attribute {
            key: self.key(pair),
            value: self.value(&pair.value),
            unit: String::new(),
        });
        sorted(resolved)
    }

    pub fn attribute(&self, attribute: &KeyValueAndUnit) -> Attribute {
        Attribute {
            key: self.string(attribute.key_strindex),
            value: self.value(&attribute.value),
            unit: self.string(attribute.unit_strindex),
        }
    }

    /// Resolves attributes; index 0 means "no attribute".
    pub fn attributes(&self, indices: &[i32]) -> Vec<Attribute> {
        let given = indices.iter().filter_map(|i| at(&self.attribute_table, *i));
        sorted(given.map(|attribute| self.attribute(attribute)))
    }

    pub fn mapping(&self, mapping: &Mapping) -> Module {
        Module {
            memory_start: mapping.memory_start,
            memory_limit: mapping.memory_limit,
            file_offset: mapping.file_offset,
            filename: self.string(mapping.filename_strindex),
            attributes: self.attributes(&mapping.attribute_indices),
        }
    }

    pub fn function(&self, function: &Function) -> Code {
        Code {
            name: self.string(function.name_strindex),
            system_name: self.string(function.system_name_strindex),
            filename: self.string(function.filename_strindex),
            start_line: function.start_line,
        }
    }

    pub fn location(&self, location: &Location) -> Frame {
        let mapping = at(&self.mapping_table, location.mapping_index).map(|m| self.mapping(m));
        let lines = location.lines.iter().map(|line| Call {
            function: at(&self.function_table, line.function_index)
                .map(|function| self.function(function))
                .unwrap_or_default(),
            line: line.line,
            column: line.column,
        });
        let lines: Vec<_> = lines.collect();
        Frame {
            mapping: mapping.filter(|mapping| *mapping != Module::default()),
            address: location.address,
            lines: if lines == [Call::default()] {
                Vec::new()
            } else {
                lines
            },
            attributes: self.attributes(&location.attribute_indices),
        }
    }

    pub fn stack(&self, stack: &Stack) -> Vec<Frame> {
        let locations = stack
            .location_indices
            .iter()
            .map(|i| at(&self.location_table, *i));
        locations
            .map(|l| l.map(|l| self.location(l)).unwrap_or_default())
            .collect()
    }

    /// Returns the ids of a link, or `None` if they are empty or all zeros.
    pub fn link(&self, link: &Link) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut bytes = link.trace_id.iter().chain(&link.span_id);
        let known = bytes.any(|byte| *byte != 0);
        known.then(|| (link.trace_id.clone(), link.span_id.clone()))
    }

    fn value_type(&self, type_: &ValueType) -> (String, String) {
        (
            self.string(type_.type_strindex),
            self.string(type_.unit_strindex),
        )
    }
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<_> = items.collect();
    items.sort();
    items
}

pub fn content(data: &Data) -> Content {
    let dictionary = &data.dictionary;
    let stacks: Vec<_> = dictionary
        .stack_table
        .iter()
        .map(|s| Rc::new(dictionary.stack(s)))
        .collect();
    let resources = data.resource_profiles.iter().map(|given| ResourceContent {
        facts: ResourceFacts {
            attributes: dictionary.pairs(&given.resource.attributes),
            dropped_attributes_count: given.resource.dropped_attributes_count,
            entity_refs: given.resource.entity_refs.clone(),
            schema_url: given.schema_url.clone(),
        },
        scopes: given
            .scope_profiles
            .iter()
            .map(|given| scope_content(dictionary, &stacks, given))
            .filter(|scope| !scope.profiles.is_empty())
            .collect(),
    });
    Content {
        resources: resources.filter(|r| !r.scopes.is_empty()).collect(),
    }
}

fn scope_content(
    dictionary: &Dictionary,
    stacks: &[Rc<Vec<Frame>>],
    given: &ScopeProfiles,
) -> ScopeContent {
    ScopeContent {
        facts: ScopeFacts {
            name: given.scope.name.clone(),
            version: given.scope.version.clone(),
            attributes: dictionary.pairs(&given.scope.attributes),
            dropped_attributes_count: given.scope.dropped_attributes_count,
            schema_url: given.schema_url.clone(),
        },
        profiles: given
            .profiles
            .iter()
            .map(|profile| ProfileContent {
                facts: profile_facts(dictionary, profile),
                observations: observations(dictionary, stacks, profile),
            })
            .collect(),
    }
}

fn profile_facts(dictionary: &Dictionary, profile: &Profile) -> ProfileFacts {
    let mut comments = Vec::new();
    let mut numbered = Vec::new();
    let mut attributes = dictionary.attributes(&profile.attribute_indices);
    attributes.retain(|attribute| {
        match comment_texts(attribute) {
            Some((None, texts)) => comments.extend(texts),
            Some((Some(number), texts)) => numbered.push((number, texts)),
            None => return true,
        }
        false
    });
    numbered.sort();
    comments.extend(numbered.into_iter().flat_map(|(_, texts)| texts));
    ProfileFacts {
        sample_type: dictionary.value_type(&profile.sample_type),
        period_type: dictionary.value_type(&profile.period_type),
        period: profile.period,
        time_unix_nano: profile.time_unix_nano,
        duration_nano: profile.duration_nano,
        profile_id: profile.profile_id.clone(),
        dropped_attributes_count: profile.dropped_attributes_count,
        original_payload_format: profile.original_payload_format.clone(),
        original_payload: profile.original_payload.clone(),
        comments,
        attributes,
    }
}

/// Returns the comments in an attribute, if it contains comments, and the number in its key if it
/// has the form of the Go collector.
pub fn comment_texts(attribute: &Attribute) -> Option<(Option<u32>, Vec<String>)> {
    let rest = attribute.key.strip_prefix("pprof.profile.comment")?;
    if !attribute.unit.is_empty() {
        return None;
    }
    match (rest, &attribute.value) {
        ("", Resolved::Array(values)) => {
            let texts = values.iter().map(|value| match value {
                Resolved::String(text) => Some(text.clone()),
                _ => None,
            });
            Some((None, texts.collect::<Option<_>>()?))
        }
        (rest, Resolved::String(text)) => {
            let number = rest.strip_prefix('.')?.parse().ok()?;
            Some((Some(number), vec![text.clone()]))
        }
        _ => None,
    }
}

fn observations(
    dictionary: &Dictionary,
    stacks: &[Rc<Vec<Frame>>],
    profile: &Profile,
) -> Vec<Observation> {
    let mut out = Vec::new();
    for sample in &profile.samples {
        let stack = at(stacks, sample.stack_index).cloned().unwrap_or_default();
        let attributes = dictionary.attributes(&sample.attribute_indices);
        let link = at(&dictionary.link_table, sample.link_index);
        let link = link.and_then(|link| dictionary.link(link));
        for i in 0..sample.values.len().max(sample.timestamps_unix_nano.len()) {
            out.push(Observation {
                stack: stack.clone(),
                attributes: attributes.clone(),
                link: link.clone(),
                value: sample.values.get(i).copied().unwrap_or(1),
                timestamp: sample.timestamps_unix_nano.get(i).copied(),
            });
        }
    }
    out
}
