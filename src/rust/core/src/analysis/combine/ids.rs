//! Assigns new ids to the rows of each table and replaces ids in the columns that refer to them.

use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, with_room};
use crate::message;
use crate::schema::{ColumnInfo, FILES, Ids, Key, NA, invalid_column};

const ROWS_PER_CHECK: usize = 1 << 20;

/// The rows of a table of one profile, indexed by their ids, and the new ids.
pub struct Numbered<'a> {
    pub old: &'a [i32],
    pub rows: Ids,
    pub new: NewIds,
}

pub enum NewIds {
    /// Consecutive ids in the order of the rows, after this number of earlier ids.
    After(usize),
    Each(Vec<i32>),
}

impl Numbered<'_> {
    #[inline]
    pub fn new_id(&self, old: i32) -> Option<i32> {
        let row = self.rows.row(old)?;
        Some(match &self.new {
            NewIds::After(before) => (before + row) as i32 + 1,
            NewIds::Each(ids) => ids[row],
        })
    }

    /// Whether all ids are unchanged.
    pub fn is_same(&self) -> bool {
        matches!(
            (&self.rows, &self.new),
            (Ids::Sequence(_), NewIds::After(0))
        )
    }

    /// The greatest new id; 0 if there is none.
    pub fn greatest(&self) -> usize {
        match &self.new {
            NewIds::After(before) => before + self.old.len(),
            NewIds::Each(ids) => ids.iter().max().map_or(0, |&id| id as usize),
        }
    }

    /// The old ids in ascending order.
    pub fn sorted(&self) -> Result<Vec<i32>> {
        let mut ids = copied(self.old)?;
        ids.sort_unstable();
        Ok(ids)
    }

    pub fn all(&self) -> Result<Vec<i32>> {
        match &self.new {
            NewIds::After(before) => (0..self.old.len())
                .map(|row| (before + row) as i32 + 1)
                .try_vec(),
            NewIds::Each(ids) => copied(ids),
        }
    }
}

/// Checks that ids refer to rows of the table of a key.
pub fn check_resolved(
    ids: &[i32],
    numbered: &Numbered,
    table: &'static str,
    column: &'static ColumnInfo,
    key: Key,
) -> Result<()> {
    let resolves = |id: &i32| *id == NA || numbered.rows.row(*id).is_some();
    if ids.iter().all(resolves) {
        Ok(())
    } else {
        Err(unresolved(table, column, key))
    }
}

/// The new ids of rows of the table of a key, to which a column refers.
pub fn renamed(
    ids: &[i32],
    numbered: &Numbered,
    table: &'static str,
    column: &'static ColumnInfo,
    key: Key,
    stop: Stop,
) -> Result<Vec<i32>> {
    let mut new = with_room(ids.len())?;
    let mut by_id: Option<Vec<i32>> = None;
    for (i, &id) in ids.iter().enumerate() {
        if i % ROWS_PER_CHECK == 0 {
            cancel::check(stop)?;
        }
        let id = match numbered.new_id(id) {
            Some(new) => new,
            None if id == NA => NA,
            // A `#File` line precedes a sample. If that sample was removed, the line precedes the next one.
            None if table == FILES && key == Key::Sample => {
                if by_id.is_none() {
                    by_id = Some(numbered.sorted()?);
                }
                let sorted = by_id.as_deref().unwrap_or_default();
                let next = sorted.get(sorted.partition_point(|&other| other <= id));
                next.and_then(|&next| numbered.new_id(next)).unwrap_or(NA)
            }
            None => return Err(unresolved(table, column, key)),
        };
        new.try_push(id)?;
    }
    Ok(new)
}

#[cold]
fn unresolved(table: &'static str, column: &'static ColumnInfo, key: Key) -> Error {
    let rule = message!("refers to a row that table `{}` does not have", key.table());
    invalid_column(table, Some(column.name), rule)
}
