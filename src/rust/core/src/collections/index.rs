//! A hash index of the rows of a table.
//!
//! The table stores the rows; the index stores only pairs (hash, row number), so that no row
//! is stored twice. The seed of the hash is random in each process, so that an attacker cannot
//! prepare a file whose rows collide. Row numbers do not depend on the hash.

use crate::error::{Error, Result};
use crate::message;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};

#[derive(Debug, Default, Clone)]
pub struct Index {
    rows: HashTable<(u64, u32)>,
    state: RandomState,
}

impl Index {
    #[inline]
    pub fn hash(&self, row: impl Hash) -> u64 {
        self.state.hash_one(row)
    }

    /// The row with this hash for which `equal` holds.
    #[inline]
    pub fn find(&self, hash: u64, equal: impl Fn(u32) -> bool) -> Option<u32> {
        self.rows
            .find(hash, |&(h, row)| h == hash && equal(row))
            .map(|&(_, row)| row)
    }

    /// Adds a row that `find()` did not find.
    pub fn insert(&mut self, hash: u64, row: u32) -> Result<()> {
        self.rows.try_reserve(1, |&(h, _)| h)?;
        #[expect(clippy::disallowed_methods, reason = "there is room for it")]
        self.rows.insert_unique(hash, (hash, row), |&(h, _)| h);
        Ok(())
    }
}

/// The number of the next row of a table with `len` rows. It is an error if its id is too large for R.
pub fn next_row(len: usize, table: &'static str) -> Result<u32> {
    // R's ids are 32-bit integers counted from 1.
    if len < i32::MAX as usize {
        Ok(len as u32)
    } else {
        Err(Error::Unsupported(message!(
            "More than {} distinct {table} are not supported: R's integer ids end there.",
            i32::MAX
        )))
    }
}
