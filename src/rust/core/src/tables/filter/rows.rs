//! The rows of other tables that belong to the remaining samples.

use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow};
use crate::schema::{Data, FILES, Key, NA, Reading, Type};
use crate::tables::TableList;

/// Tables whose rows are determined together with the samples.
const FILTERED: [&str; 2] = ["samples", "sample_locations"];

/// The remaining rows, counted from 0, of tables with a column `sample_id` from which rows are
/// removed. `stays`: whether each sample is kept. No row of `.files` is removed: its line then
/// precedes the next sample.
pub fn rows_of_samples<'a>(
    list: &TableList<'_, 'a>,
    reading: &Reading,
    stays: &[bool],
    stop: Stop,
) -> Result<Vec<(&'a str, Vec<u32>)>> {
    let has_sample = |id| {
        let row = reading.row_of(Key::Sample, id);
        id == NA || row.is_some_and(|row| stays.get(row) == Some(&true))
    };
    let mut changed = Vec::new();
    for (name, table) in list {
        if *name == FILES || FILTERED.contains(name) {
            continue;
        }
        cancel::check(stop)?;
        // The name of the table is used in errors about text only.
        let ids = match table.column("", Key::Sample.name(), Type::Integer)? {
            Some(Data::Integers(ids)) => ids,
            _ => continue,
        };
        if !ids.iter().all(|&id| has_sample(id)) {
            let rows = (0..).zip(ids).filter(|(_, id)| has_sample(**id));
            changed.try_push((*name, rows.map(|(row, _)| row).try_vec()?))?;
        }
    }
    Ok(changed)
}
