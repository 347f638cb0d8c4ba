//! Labels: one row for each key-value pair that a sample carries.
//!
//! pprof has texts and numbers only; other values come from OpenTelemetry.

use super::attributes::AttributeValue;
use super::strings::StringId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label {
    /// Row in the samples, counted from 0.
    pub sample: usize,
    pub key: StringId,
    pub str: Option<StringId>,
    pub num: Option<i64>,
    pub unit: Option<StringId>,
    /// What is neither text nor number.
    pub other: Option<AttributeValue>,
}
