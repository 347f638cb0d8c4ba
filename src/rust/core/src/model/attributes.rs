//! Attributes: keys and values that describe a row of another table.
//!
//! In OpenTelemetry resources, scopes, profiles, samples, mappings and locations have attributes.
//! A value may be a text, a number, or a tree of values; in the model it is one text and its
//! type, so that it can be stored in tables.

use super::strings::StringId;

/// The type of a value, with the names that OpenTelemetry uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    String,
    Bool,
    Int,
    Double,
    Bytes,
    Array,
    Kvlist,
    /// No value, which OpenTelemetry allows.
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

    pub fn from_name(name: &str) -> Option<ValueKind> {
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

impl Attribute {
    /// An attribute whose value has no unit.
    pub fn new(key: StringId, value: AttributeValue) -> Attribute {
        Attribute {
            key,
            value,
            unit: None,
        }
    }
}
