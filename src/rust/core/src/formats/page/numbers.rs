//! Columns of numbers, and references between them.

use crate::error::Result;
use crate::formats::json_file::Reader;
use crate::limits::memory::TryGrow;
use crate::message;

/// The next value, an array of numbers.
pub fn column(json: &mut Reader) -> Result<Vec<f64>> {
    let mut column = Vec::new();
    json.begin_array()?;
    while json.element()? {
        json.take(2 * size_of::<f64>())?;
        column.try_push(json.number()?.real())?;
    }
    Ok(column)
}

/// The next value, an array of differences to the previous number.
pub fn deltas(json: &mut Reader) -> Result<Vec<f64>> {
    let mut column = column(json)?;
    let mut sum = 0.0;
    for number in &mut column {
        sum += *number;
        *number = sum;
    }
    Ok(column)
}

/// A number as the row of a table with `rows` rows.
pub fn row(number: f64, rows: usize, json: &Reader) -> Result<usize> {
    let is_row = number >= 0.0 && number < rows as f64 && number.fract() == 0.0;
    if is_row {
        Ok(number as usize)
    } else {
        Err(json.error(message!(
            "The data of the page refer to row {number} of {rows} rows."
        )))
    }
}

/// What a number refers to.
pub fn refer<'t, T>(table: &'t [T], number: f64, json: &Reader) -> Result<&'t T> {
    let row = row(number, table.len(), json)?;
    Ok(&table[row])
}

/// Checks that columns of a table have the same length.
pub fn same_length(columns: &[&[f64]], json: &Reader) -> Result<usize> {
    let length = columns.first().map_or(0, |column| column.len());
    if columns.iter().all(|column| column.len() == length) {
        Ok(length)
    } else {
        Err(json.error(message!(
            "Columns of a table in the data of the page differ in length."
        )))
    }
}
