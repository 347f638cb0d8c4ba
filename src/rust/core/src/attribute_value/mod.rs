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
pub enum Any {
    #[default]
    Empty,
    String(String),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(Vec<u8>),
    Array(Vec<Any>),
    Kvlist(Vec<(String, Any)>),
}

impl Any {
    pub fn kind(&self) -> ValueKind {
        match self {
            Any::Empty => ValueKind::Empty,
            Any::String(_) => ValueKind::String,
            Any::Bool(_) => ValueKind::Bool,
            Any::Int(_) => ValueKind::Int,
            Any::Double(_) => ValueKind::Double,
            Any::Bytes(_) => ValueKind::Bytes,
            Any::Array(_) => ValueKind::Array,
            Any::Kvlist(_) => ValueKind::Kvlist,
        }
    }
}
