//! Columns of tables: arrays of numbers, of which some may be missing.

use crate::error::Result;
use crate::formats::json_file::{JsonKind, Reader};
use crate::json::Number;
use crate::limits::memory::{TryGrow, owned, written};
use crate::message;

/// Numbers; NaN for `null`. All that are used here are small enough to be exact.
pub type Column = Vec<f64>;

/// Reads an array, which is the next value. If it is something else, it is skipped, and the column stays empty.
pub fn read(json: &mut Reader, column: &mut Column) -> Result<()> {
    if json.peek()? != JsonKind::Array {
        return json.skip();
    }
    json.begin_array()?;
    while json.element()? {
        let number = match json.peek()? {
            JsonKind::Number => json.number()?.real(),
            JsonKind::Word => {
                json.skip()?;
                f64::NAN
            }
            _ => return Err(json.expected("a number or `null`")),
        };
        json.take(2 * size_of::<f64>())?;
        column.try_push(number)?;
    }
    Ok(())
}

/// A cell, if it exists and is not `null`.
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

/// A cell with the row of another table; `None` for `null` and -1. Any other number that is not a row is an error.
pub fn index(column: &[f64], row: u32, json: &Reader) -> Result<Option<u32>> {
    natural(column, row, json)
}

/// A cell with an address; `None` for `null` and -1.
pub fn address(column: &[f64], row: u32, json: &Reader) -> Result<Option<u64>> {
    natural(column, row, json)
}

fn natural<N: TryFrom<i64>>(column: &[f64], row: u32, json: &Reader) -> Result<Option<N>> {
    let Some(number) = get(column, row).filter(|&number| number != -1.0) else {
        return Ok(None);
    };
    let natural = crate::model::whole(number).and_then(|number| N::try_from(number).ok());
    match natural {
        Some(natural) => Ok(Some(natural)),
        None => Err(json.error(message!(
            "{number} is neither a row of a table nor an address."
        ))),
    }
}

/// The row of another table to which a cell refers, as for [`index()`]. A row beyond the end of that table is an error.
pub fn refer<'t, T>(
    column: &[f64],
    row: u32,
    table: &'t [T],
    json: &Reader,
) -> Result<Option<&'t T>> {
    let Some(index) = index(column, row, json)? else {
        return Ok(None);
    };
    match table.get(index as usize) {
        Some(found) => Ok(Some(found)),
        // A truncated file may not have it.
        None if json.is_truncated() => Ok(None),
        None => Err(json.error(message!(
            "Row {index} of a table of {} rows does not exist.",
            table.len()
        ))),
    }
}

/// A cell of the column in this row, which must exist if the table has the column.
pub fn row_of(column: &[f64], row: u32, other: &[f64], json: &Reader) -> Result<Option<u32>> {
    if !other.is_empty() {
        refer(column, row, other, json)?;
    }
    index(column, row, json)
}

/// A text, or a number as text.
pub fn text(json: &mut Reader) -> Result<Option<String>> {
    match json.peek()? {
        JsonKind::Number => match json.number()? {
            Number::Whole(number) => written(format_args!("{number}")).map(Some),
            Number::Real(number) => written(format_args!("{number}")).map(Some),
        },
        _ => {
            let text = json.text_if_any()?;
            text.map(owned).transpose()
        }
    }
}
