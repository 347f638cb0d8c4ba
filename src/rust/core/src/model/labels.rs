//! Labels: one row for each label of a sample, a pair of key and value.
//!
//! In pprof, values are texts or numbers; other values are from OpenTelemetry.

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
    /// A value that is neither text nor integer.
    pub other: Option<AttributeValue>,
}

impl Label {
    /// A label whose value is not known yet.
    pub fn new(sample: usize, key: StringId) -> Label {
        Label {
            sample,
            key,
            str: None,
            num: None,
            unit: None,
            other: None,
        }
    }
}
