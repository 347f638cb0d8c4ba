//! Attributes: keys and values that something may have, beyond what each profile says.
//!
//! OpenTelemetry gives them to resources, scopes, profiles, samples, mappings and
//! locations. A value may be a text, a number, or a tree of values; here it is one
//! text and its kind, so that tables can hold it.

use super::strings::StringId;

/// What kind of value a text stands for, by the names that the format has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    String,
    Bool,
    Int,
    Double,
    Bytes,
    Array,
    Kvlist,
    /// No value at all, which is allowed.
    Empty,
}

impl ValueKind {
    pub const ALL: [ValueKind; 8] = [
        ValueKind::String,
        ValueKind::Bool,
        ValueKind::Int,
        ValueKind::Double,
        ValueKind::Bytes,
        ValueKind::Array,
        ValueKind::Kvlist,
        ValueKind::Empty,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ValueKind::String => "string",
            ValueKind::Bool => "bool",
            ValueKind::Int => "int",
            ValueKind::Double => "double",
            ValueKind::Bytes => "bytes",
            ValueKind::Array => "array",
            ValueKind::Kvlist => "kvlist",
            ValueKind::Empty => "empty",
        }
    }

    pub fn of_name(name: &str) -> Option<ValueKind> {
        ValueKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A value, written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttributeValue {
    pub kind: ValueKind,
    pub text: StringId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attribute {
    pub key: StringId,
    pub value: AttributeValue,
    pub unit: Option<StringId>,
}
