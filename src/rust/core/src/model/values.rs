//! Values: for each sample type one column, as long as the samples.
//!
//! A sample that has no value of a type holds NaN there, which no format can
//! record: the sources of a profile need not measure the same things.

use crate::error::Result;
use crate::memory::TryGrow;

/// What a number means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueType {
    pub name: String,
    pub unit: String,
}

#[derive(Debug, Clone)]
pub struct Values {
    pub type_: ValueType,
    pub column: Vec<f64>,
}

impl Values {
    /// A column in which the first `len` samples have no value.
    pub fn absent(name: &str, unit: &str, len: usize) -> Result<Values> {
        let mut column = Vec::new();
        column.try_fill(len, f64::NAN, "sample values")?;
        Ok(Values {
            type_: ValueType {
                name: name.to_owned(),
                unit: unit.to_owned(),
            },
            column,
        })
    }
}

/// The raw memory figures of R's profiler, with the names and units that
/// `summaryRprof(memory = "tseries")` gives them: levels at the time of the
/// sample, but for the last, which counts since the sample before.
pub const LEVELS: [(&str, &str); 4] = [
    ("vsize_small", "bytes"),
    ("vsize_large", "bytes"),
    ("nodes", "bytes"),
    ("duplications", "count"),
];

/// Whether a type is a raw figure, of which a sum would mean nothing.
pub fn is_level(name: &str, unit: &str) -> bool {
    LEVELS.contains(&(name, unit))
}
