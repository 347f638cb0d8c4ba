//! The messages of OTLP profiles, as opentelemetry-proto defines them.
//!
//! Tests have a message as OTLP/JSON without the fields that have the default value. Nothing here comes from the crate
//! under test, so that the tests are independent of it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The versions of the wire format that can be read: v1.9, and v1.10, which is the same as v1.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    V9,
    V11,
}

pub const LAYOUTS: [Layout; 2] = [Layout::V9, Layout::V11];

/// A message on each line; of each field the number, the name in JSON and the type, with a star if it is repeated. Two
/// numbers are those of v1.9 and v1.11; 0 if there is no such field.
const SCHEMA: &str = "\
Data: 1 resourceProfiles ResourceProfiles*, 2 dictionary Dictionary
ResourceProfiles: 1 resource Resource, 2 scopeProfiles ScopeProfiles*, 3 schemaUrl string
Resource: 1 attributes KeyValue*, 2 droppedAttributesCount uint32, 3 entityRefs EntityRef*
EntityRef: 1 schemaUrl string, 2 type string, 3 idKeys string*, 4 descriptionKeys string*
ScopeProfiles: 1 scope Scope, 2 profiles Profile*, 3 schemaUrl string
Scope: 1 name string, 2 version string, 3 attributes KeyValue*, 4 droppedAttributesCount uint32
Profile: 1 sampleType ValueType, 2 samples Sample*, 3 timeUnixNano fixed64, 4 durationNano uint64, 5 periodType ValueType, \
6 period int64, 7 profileId id, 8 droppedAttributesCount uint32, 9 originalPayloadFormat string, 10 originalPayload bytes, \
11 attributeIndices int32*
ValueType: 1 typeStrindex int32, 2 unitStrindex int32
Sample: 1 stackIndex int32, 3/2 attributeIndices int32*, 4/3 linkIndex int32, 2/4 values int64*, 5 timestampsUnixNano fixed64*
Dictionary: 1 mappingTable Mapping*, 2 locationTable Location*, 3 functionTable Function*, 4 linkTable Link*, \
5 stringTable string*, 6 attributeTable KeyValueAndUnit*, 7 stackTable Stack*
Mapping: 1 memoryStart uint64, 2 memoryLimit uint64, 3 fileOffset uint64, 4 filenameStrindex int32, 5 attributeIndices int32*
Location: 1 mappingIndex int32, 2 address uint64, 3 lines Line*, 4 attributeIndices int32*
Line: 1 functionIndex int32, 2 line int64, 3 column int64
Function: 1 nameStrindex int32, 2 systemNameStrindex int32, 3 filenameStrindex int32, 4 startLine int64
Link: 1 traceId id, 2 spanId id
Stack: 1 locationIndices int32*
KeyValueAndUnit: 1 keyStrindex int32, 2 value AnyValue, 3 unitStrindex int32
KeyValue: 1 key string, 2 value AnyValue, 0/3 keyStrindex int32
AnyValue: 1 stringValue string, 2 boolValue bool, 3 intValue int64, 4 doubleValue double, 5 arrayValue Array, \
6 kvlistValue KeyValueList, 7 bytesValue bytes, 0/8 stringValueStrindex int32
Array: 1 values AnyValue*
KeyValueList: 1 values KeyValue*";

#[derive(Debug)]
pub struct Field {
    numbers: [u64; 2],
    pub name: &'static str,
    /// `id` is `bytes`, too, but hexadecimal in JSON.
    pub kind: &'static str,
    pub repeated: bool,
}

impl Field {
    pub fn number(&self, layout: Layout) -> u64 {
        self.numbers[layout as usize]
    }

    pub fn is_message(&self) -> bool {
        self.kind.starts_with(|c: char| c.is_ascii_uppercase())
    }

    /// The wire type of a single value.
    pub fn wire(&self) -> u64 {
        match self.kind {
            "int32" | "int64" | "uint32" | "uint64" | "bool" => 0,
            "fixed64" | "double" => 1,
            _ => 2,
        }
    }

    /// Whether values may be packed.
    pub fn is_packable(&self) -> bool {
        self.repeated && self.wire() != 2
    }

    /// The table that the field refers to.
    pub fn table(&self) -> Option<&'static str> {
        table(self.name)
    }
}

static MESSAGES: LazyLock<BTreeMap<&str, Vec<Field>>> = LazyLock::new(|| {
    let lines = SCHEMA.lines().map(|line| line.split_once(": ").unwrap());
    let all = lines.map(|(name, fields)| (name, fields.split(", ").map(field).collect()));
    all.collect()
});

fn field(text: &'static str) -> Field {
    let words: Vec<_> = text.split(' ').collect();
    let (old, new) = words[0].split_once('/').unwrap_or((words[0], words[0]));
    Field {
        numbers: [old, new].map(|number| number.parse().unwrap()),
        name: words[1],
        kind: words[2].trim_end_matches('*'),
        repeated: words[2].ends_with('*'),
    }
}

pub fn fields(message: &str) -> &'static [Field] {
    &MESSAGES[message]
}

/// The table that a field with this name refers to.
pub fn table(name: &str) -> Option<&'static str> {
    match name {
        "mappingIndex" => Some("mappingTable"),
        "locationIndices" => Some("locationTable"),
        "functionIndex" => Some("functionTable"),
        "linkIndex" => Some("linkTable"),
        "attributeIndices" => Some("attributeTable"),
        "stackIndex" => Some("stackTable"),
        _ if name.ends_with("Strindex") => Some("stringTable"),
        _ => None,
    }
}

pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A number, which may be written as a string; 0 if there is none.
pub fn number(value: &Value) -> i128 {
    match value {
        Value::Null => 0,
        Value::String(text) => text.parse().unwrap(),
        value => value.as_number().unwrap().as_i128().unwrap(),
    }
}

/// Visits every field that is not a message, also those without a value, which are then null.
pub fn walk(
    value: &mut Value,
    type_: &str,
    place: &str,
    visit: &mut dyn FnMut(&str, &Field, &mut Value),
) {
    for field in fields(type_) {
        // Of the fields of a value there is one.
        if type_ == "AnyValue" && value[field.name].is_null() {
            continue;
        }
        let inner = &mut value[field.name];
        let place = format!("{place}.{}", field.name);
        match inner {
            Value::Array(items) if field.is_message() => {
                for (i, item) in items.iter_mut().enumerate() {
                    walk(item, field.kind, &format!("{place}[{i}]"), visit);
                }
            }
            _ if field.is_message() && field.repeated => {}
            inner if field.is_message() => walk(inner, field.kind, &place, visit),
            inner => visit(&place, field, inner),
        }
    }
}

/// Visits every index: its table, its path, and the index.
pub fn each_index(
    value: &mut Value,
    type_: &str,
    place: &str,
    visit: &mut dyn FnMut(&'static str, &str, &mut Value),
) {
    walk(
        value,
        type_,
        place,
        &mut |place, field, value| match (field.table(), value) {
            (None, _) => {}
            (Some(table), Value::Array(indices)) => {
                for (i, index) in indices.iter_mut().enumerate() {
                    visit(table, &format!("{place}[{i}]"), index);
                }
            }
            (Some(_), Value::Null) if field.repeated => {}
            (Some(table), index) => visit(table, place, index),
        },
    );
}
