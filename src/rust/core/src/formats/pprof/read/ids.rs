//! The ids of mappings, functions and locations in a file: any numbers but 0.
//!
//! Most writers count from 1, which needs no lookup. If ids have gaps, a table by id contains their
//! rows. Ids that are too large for a table, such as addresses, are looked up in a map, which takes
//! several times as long.

use crate::limits::memory::{TryGrow, TryPut};
use crate::message;
use crate::model::NativeId;
use crate::protobuf::decode::{Result, error_at};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The maximum size of a table by id, per row.
const PLACES: usize = 8;

pub struct Ids {
    /// What the ids identify, for messages.
    what: &'static str,
    /// The number of ids.
    count: u32,
    rows: Rows,
    /// The greatest id that a table may contain.
    greatest: usize,
}

enum Rows {
    /// The ids are 1, 2, 3, ….
    Numbers,
    /// By id: its row + 1, or 0 if there is none.
    Table(Vec<u32>),
    Map(HashMap<u64, u32, RandomState>),
}

impl Ids {
    /// For a table with this number of rows.
    pub fn new(what: &'static str, rows: usize) -> Ids {
        Ids {
            what,
            count: 0,
            rows: Rows::Numbers,
            greatest: rows.saturating_mul(PLACES),
        }
    }

    /// Adds the id of the next row.
    pub fn add(&mut self, id: u64, at: usize) -> Result<()> {
        if id == 0 {
            return error_at(at, message!("This {} has no id.", self.what));
        }
        if self.row(id).is_some() {
            return error_at(
                at,
                message!(
                    "A second {} has the id {id}. Are these several profiles in one file?",
                    self.what
                ),
            );
        }
        let count = self.count;
        if matches!(self.rows, Rows::Numbers) && id != u64::from(count) + 1 {
            let mut table = Vec::new();
            table.try_extend_from(0..count + 1)?;
            self.rows = Rows::Table(table);
        }
        if let Rows::Table(table) = &self.rows {
            if id > self.greatest as u64 {
                let mut map = HashMap::default();
                for (id, &row) in (0..).zip(table).filter(|(_, row)| **row > 0) {
                    map.try_put(id, row - 1)?;
                }
                self.rows = Rows::Map(map);
            }
        }
        match &mut self.rows {
            Rows::Numbers => {}
            Rows::Table(table) => {
                let place = id as usize;
                table.try_fill(table.len().max(place + 1), 0)?;
                table[place] = count + 1;
            }
            Rows::Map(map) => {
                map.try_put(id, count)?;
            }
        }
        self.count += 1;
        Ok(())
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether the ids are 1, 2, 3, ….
    #[inline]
    pub fn are_row_numbers(&self) -> bool {
        matches!(self.rows, Rows::Numbers)
    }

    /// The row of an id, counted from 0.
    #[inline]
    pub fn row(&self, id: u64) -> Option<u32> {
        match &self.rows {
            Rows::Numbers => {
                let row = u32::try_from(id.checked_sub(1)?).ok()?;
                (row < self.count).then_some(row)
            }
            Rows::Table(table) => table.get(usize::try_from(id).ok()?)?.checked_sub(1),
            Rows::Map(map) => map.get(&id).copied(),
        }
    }

    /// The id, if the model has to keep it: not if all ids are 1, 2, 3, ….
    pub fn native(&self, id: u64) -> Option<NativeId> {
        NativeId::new(id).filter(|_| !self.are_row_numbers())
    }

    /// The row of an id that something at byte `at` refers to.
    #[inline]
    pub fn find(&self, id: u64, at: usize) -> Result<u32> {
        match self.row(id) {
            Some(row) => Ok(row),
            None => error_at(at, message!("There is no {} with the id {id}.", self.what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_ids_are_found() {
        let mut ids = Ids::new("function", 6);
        for id in [1, 2, 3] {
            ids.add(id, 0).unwrap();
        }
        assert_eq!(ids.row(3), Some(2));
        assert_eq!(
            (ids.row(0), ids.row(4), ids.row(u64::MAX)),
            (None, None, None)
        );
        for id in [u64::MAX, 4, 1 << 40] {
            ids.add(id, 0).unwrap();
        }
        assert_eq!((ids.row(2), ids.row(u64::MAX)), (Some(1), Some(3)));
        assert_eq!((ids.row(4), ids.row(1 << 40)), (Some(4), Some(5)));
        assert!(ids.add(0, 0).is_err() && ids.add(4, 0).is_err());
    }

    #[test]
    fn ids_with_gaps_are_found() {
        // The ids are stored in a table, which becomes a map when an id is too large for it.
        let all = [1, 2, 5, 3, 40, 41, 1 << 50];
        let mut ids = Ids::new("function", 6);
        for count in 0..=all.len() {
            for id in 0..50 {
                let row = all[..count].iter().position(|known| *known == id);
                assert_eq!(ids.row(id), row.map(|row| row as u32), "{count} {id}");
            }
            assert_eq!(ids.are_row_numbers(), count <= 2);
            if let Some(&id) = all.get(count) {
                ids.add(id, 0).unwrap();
                assert!(ids.add(id, 0).is_err());
            }
        }
        assert_eq!((ids.row(1 << 50), ids.count()), (Some(6), 7));
    }
}
