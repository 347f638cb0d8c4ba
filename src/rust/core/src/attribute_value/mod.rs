//! Values of attributes as trees, as OpenTelemetry defines them.
//!
//! The model stores a value as text together with its kind, so that it fits in a table. This module
//! converts between the two. The readers and writers of messages use it, and the code that checks
//! the texts in tables.

mod text;

use crate::model::ValueKind;

/// The maximum depth of a value, which is also the limit of other readers of protocol buffers.
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
