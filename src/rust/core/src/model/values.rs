//! Values: for each sample type one column, as long as the samples.
//!
//! The sources of a profile may have different sample types. If a sample has no value of a type,
//! the column contains NaN, which no format can record as a value.

use super::column::SampleColumn;
use super::known_types::{KnownType, ValueType};
use super::numbers::is_exact;
use crate::error::Result;
use crate::limits::memory::{TryGrow, owned};

#[derive(Debug, Clone)]
pub struct Values {
    pub type_: ValueType,
    pub column: SampleColumn<f64>,
    /// Numbers that a double cannot represent exactly, in the order of rows: (row, number).
    /// The column holds the nearest double.
    pub exact: Vec<(usize, i64)>,
}

impl Values {
    /// A column in which the first `len` samples have no value.
    pub fn absent(name: &str, unit: &str, len: usize) -> Result<Values> {
        let mut column = SampleColumn::default();
        column.try_fill(len, f64::NAN)?;
        Ok(Values {
            type_: ValueType {
                name: owned(name)?,
                unit: owned(unit)?,
            },
            column,
            exact: Vec::new(),
        })
    }

    /// A column of a known type, without values.
    pub fn absent_known(known: &KnownType, len: usize) -> Result<Values> {
        Values::absent(known.name, known.unit, len)
    }

    /// Appends the value of the next sample. Returns whether it was rounded.
    #[inline]
    pub fn push(&mut self, value: i64) -> Result<bool> {
        let rounded = !is_exact(value);
        if rounded {
            let row = self.column.len();
            self.exact.try_push((row, value))?;
        }
        self.column.try_push(value as f64)?;
        Ok(rounded)
    }

    /// The first row with an infinite value.
    pub fn infinite(&self) -> Option<usize> {
        self.column.iter().position(|value| value.is_infinite())
    }

    /// Whether all sums of values are finite, also if they are multiplied by `factor`: whether this is so for the sum of
    /// absolute values.
    pub fn has_finite_sums(&self, factor: f64) -> bool {
        let sizes = self.column.iter().filter(|value| !value.is_nan());
        let sum = sizes.map(|value| value.abs()).sum::<f64>();
        (sum * factor.max(1.0)).is_finite()
    }

    /// The exact value of a row, if the value in the column is rounded.
    pub fn exact(&self, row: usize) -> Option<i64> {
        let at = self.exact.binary_search_by_key(&row, |(row, _)| *row);
        at.ok().and_then(|at| self.exact.get(at)).map(|(_, n)| *n)
    }
}
