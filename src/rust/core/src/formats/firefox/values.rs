//! The values of samples, whose types are known only when the threads are read.

use crate::error::Result;
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::{ValueType, Values};

/// The columns of values.
#[derive(Default)]
pub struct Columns(pub Vec<Values>);

impl Columns {
    /// The column of a sample type, which is added if it is missing.
    pub fn find(&mut self, name: &str, unit: &str) -> Result<usize> {
        let is = |v: &Values| v.type_.name == name && v.type_.unit == unit;
        if let Some(column) = self.0.iter().position(is) {
            return Ok(column);
        }
        self.0.try_push(Values::absent(name, unit, 0)?)?;
        Ok(self.0.len() - 1)
    }

    /// Sets the value of the last sample.
    pub fn set(&mut self, column: usize, row: usize, value: Option<f64>) -> Result<()> {
        let values = &mut self.0[column].column;
        values.try_fill(row, f64::NAN)?;
        values.try_push(value.unwrap_or(f64::NAN))
    }

    pub fn type_of(&self, column: usize) -> Result<ValueType> {
        let Some(values) = self.0.get(column) else {
            return Err(crate::Error::Unsupported(message!("No column {column}.")));
        };
        Ok(ValueType {
            name: owned(&values.type_.name)?,
            unit: owned(&values.type_.unit)?,
        })
    }
}
