//! Maps indices of the tables of a dictionary to rows of the model.

use crate::collections::{Lists, next_row};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::LocationId;
use crate::protobuf::decode::{Field, Message, Result, error_at};

/// The highest field number that any entry of a table has.
const LAST_FIELD: u32 = 5;

pub fn entry<'t, T>(table: &'t [T], index: u64, what: &str, at: usize) -> Result<&'t T> {
    match usize::try_from(index).ok().and_then(|row| table.get(row)) {
        Some(entry) => Ok(entry),
        None => out_of_range(what, index, table.len(), at),
    }
}

#[cold]
fn out_of_range<T>(what: &str, index: u64, count: usize, at: usize) -> Result<T> {
    let index = index as i64;
    error_at(
        at,
        message!("{what} index {index} is out of range (table size: {count})."),
    )
}

/// Maps the entries of a table of the dictionary to rows of a table of the model.
#[derive(Clone, Copy)]
pub struct Rows {
    /// The name of the table in errors.
    what: &'static str,
    before: u32,
    entries: u64,
    /// 1 if the first entry is empty and has no row, else 0.
    pub skipped: u64,
}

impl Rows {
    /// `before`: the number of rows that other messages have added.
    pub fn new(what: &'static str, before: usize, list: &[Message]) -> Result<Rows> {
        Ok(Rows {
            what,
            before: next_row(before, "rows")?,
            entries: list.len().max(1) as u64,
            skipped: u64::from(list.first().is_none_or(is_empty)),
        })
    }

    /// The entries that have a row.
    pub fn entries<'l, 'a>(
        self,
        list: &'l [Message<'a>],
    ) -> impl Iterator<Item = Message<'a>> + 'l {
        list.iter().skip(self.skipped as usize).copied()
    }

    /// The row of an entry, `None` for the empty one.
    #[inline]
    pub fn row(self, index: u64, at: usize) -> Result<Option<u32>> {
        if index >= self.entries {
            return out_of_range(self.what, index, self.entries as usize, at);
        }
        Ok(index
            .checked_sub(self.skipped)
            .map(|row| self.before + row as u32))
    }
}

/// The locations of a message. Each is a run of rows, one for each inlined call, innermost
/// first.
pub struct Runs {
    pub rows: Rows,
    pub frames: Lists<LocationId>,
    /// Whether each entry has exactly one row, in the order of entries.
    pub one_row_each: bool,
}

impl Runs {
    pub fn run(&self, index: u64, at: usize) -> Result<&[LocationId]> {
        let count = self.frames.len();
        match usize::try_from(index).ok().filter(|row| *row < count) {
            Some(row) => Ok(self.frames.get(row)),
            None => out_of_range(self.rows.what, index, count, at),
        }
    }
}

/// Whether all fields have their default values.
pub fn is_empty(message: &Message) -> bool {
    let mut message = *message;
    loop {
        match message.field() {
            Ok(None) => return true,
            Ok(Some(found)) if found.is_zero() || found.number > LAST_FIELD => {}
            _ => return false,
        }
    }
}

/// The numbers of a short repeated field, each with the offset of the field.
pub fn indices(found: &Field) -> Result<Vec<(u64, usize)>> {
    let mut indices = Vec::new();
    let at = found.at;
    found.each(|index| indices.try_push((index, at)))?;
    Ok(indices)
}
