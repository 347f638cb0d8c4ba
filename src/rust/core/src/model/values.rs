//! Values: for each sample type one column, as long as the samples.
//!
//! A sample that has no value of a type holds NaN there, which no format can
//! record: the sources of a profile need not measure the same things.

use super::numbers::is_exact;
use crate::error::Result;
use crate::limits::memory::{TryGrow, owned};

/// What a number means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ValueType {
    pub name: String,
    pub unit: String,
}

#[derive(Debug, Clone)]
pub struct Values {
    pub type_: ValueType,
    pub column: Vec<f64>,
    /// Where the column holds a number only nearly: its row and itself, in the
    /// order of rows.
    pub exact: Vec<(usize, i64)>,
}

impl Values {
    /// A column in which the first `len` samples have no value.
    pub fn absent(name: &str, unit: &str, len: usize) -> Result<Values> {
        let mut column = Vec::new();
        column.try_fill(len, f64::NAN, "sample values")?;
        Ok(Values {
            type_: ValueType {
                name: owned(name, "sample types")?,
                unit: owned(unit, "sample types")?,
            },
            column,
            exact: Vec::new(),
        })
    }

    /// Appends the value of the next sample; says whether R holds it nearly only.
    #[inline]
    pub fn push(&mut self, value: i64) -> Result<bool> {
        let nearly = !is_exact(value);
        if nearly {
            let row = self.column.len();
            self.exact.try_push((row, value), "sample values")?;
        }
        self.column.try_push(value as f64, "sample values")?;
        Ok(nearly)
    }

    /// The value of a row where the column holds it only nearly.
    pub fn exact(&self, row: usize) -> Option<i64> {
        let at = self.exact.binary_search_by_key(&row, |(row, _)| *row);
        at.ok().and_then(|at| self.exact.get(at)).map(|(_, n)| *n)
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

/// Whether a sum over samples means something: not of the memory that was in use at each
/// of them. Duplications are counted since the sample before.
pub fn is_summable(name: &str, unit: &str) -> bool {
    !LEVELS[..3].contains(&(name, unit))
}
