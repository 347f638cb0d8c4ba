//! The ids of mappings, functions and locations in a file: any numbers but 0.
//!
//! Most writers count from 1, which needs no lookup. Other ids may be far larger than the
//! number of rows, so they are looked up in a map.

use crate::limits::memory::TryPut;
use crate::message;
use crate::model::NativeId;
use crate::protobuf::decode::{Result, error_at};
use foldhash::fast::RandomState;
use std::collections::HashMap;

const WHAT: &str = "the ids of a profile";

pub struct Ids {
    /// What the ids identify, for messages.
    what: &'static str,
    /// The number of ids. While `others` is empty, they are 1, 2, 3, ….
    count: u32,
    others: HashMap<u64, u32, RandomState>,
}

impl Ids {
    pub fn new(what: &'static str) -> Ids {
        Ids {
            what,
            count: 0,
            others: HashMap::default(),
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
        if !self.others.is_empty() || id != u64::from(self.count) + 1 {
            let missing = if self.others.is_empty() {
                self.count
            } else {
                0
            };
            for row in 0..missing {
                self.others.try_put(u64::from(row) + 1, row, WHAT)?;
            }
            self.others.try_put(id, self.count, WHAT)?;
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
        self.others.is_empty()
    }

    /// The row of an id, counted from 0.
    #[inline]
    pub fn row(&self, id: u64) -> Option<u32> {
        if self.others.is_empty() {
            let row = u32::try_from(id.checked_sub(1)?).ok()?;
            (row < self.count).then_some(row)
        } else {
            self.others.get(&id).copied()
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
        let mut ids = Ids::new("function");
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
}
