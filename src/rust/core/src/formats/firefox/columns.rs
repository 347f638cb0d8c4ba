//! Columns of tables: arrays of numbers, of which some may be missing.

use crate::error::Result;
use crate::json::{Kind, Reader};
use crate::limits::memory::TryGrow;

const WHAT: &str = "a column";

/// Numbers; NaN for `null`. All that are used here are small enough to be exact.
pub type Column = Vec<f64>;

/// Reads an array, which is the next value. If it is something else, it is skipped, and the column stays empty.
pub fn read(json: &mut Reader, column: &mut Column) -> Result<()> {
    if json.peek()? != Kind::Array {
        return json.skip();
    }
    json.begin_array()?;
    while json.element()? {
        let number = match json.peek()? {
            Kind::Number => json.number()?.real(),
            _ => {
                json.skip()?;
                f64::NAN
            }
        };
        json.take(2 * size_of::<f64>())?;
        column.try_push(number, WHAT)?;
    }
    Ok(())
}

/// A cell, if it is there and not `null`.
pub fn get(column: &[f64], row: u32) -> Option<f64> {
    column
        .get(row as usize)
        .copied()
        .filter(|number| !number.is_nan())
}

/// A cell with a whole number.
pub fn whole(column: &[f64], row: u32) -> Option<i64> {
    crate::model::whole(get(column, row)?)
}

/// A cell with the row of another table; `None` for `null` and -1.
pub fn index(column: &[f64], row: u32) -> Option<u32> {
    u32::try_from(whole(column, row)?).ok()
}
