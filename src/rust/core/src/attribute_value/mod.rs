//! The value of an attribute as a tree, as OpenTelemetry has it, and as text.
//!
//! The model keeps a value as a text and its kind, so that tables can hold it. Here is
//! what such a text stands for: what reads and writes messages needs it, and what checks
//! the texts of tables.

mod text;

use crate::model::ValueKind;

/// Trees are no deeper than this, as in other readers of protocol buffers.
pub const DEEPEST: usize = 100;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum AnyValue {
    #[default]
    Empty,
    String(String),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(Vec<u8>),
    Array(Vec<AnyValue>),
    Kvlist(Vec<(String, AnyValue)>),
}

impl AnyValue {
    pub fn kind(&self) -> ValueKind {
        match self {
            AnyValue::Empty => ValueKind::Empty,
            AnyValue::String(_) => ValueKind::String,
            AnyValue::Bool(_) => ValueKind::Bool,
            AnyValue::Int(_) => ValueKind::Int,
            AnyValue::Double(_) => ValueKind::Double,
            AnyValue::Bytes(_) => ValueKind::Bytes,
            AnyValue::Array(_) => ValueKind::Array,
            AnyValue::Kvlist(_) => ValueKind::Kvlist,
        }
    }
}
