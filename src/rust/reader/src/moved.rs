//! What changed while a stack was copied, so that it may not be a stack (`chain.rs`).

use crate::calls::is_call;
use crate::memory::half_at;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::CALLFLAG;
use std::mem;

/// What did not exist the whole time.
#[derive(Debug, Default)]
pub struct Moved {
    /// The addresses of the records of calls, innermost first.
    pub records: Vec<u64>,
    /// Whether the position of a function that has called another one differs.
    pub has_position: bool,
    /// Whether the last record was that of a loop, and has changed. The next outer call may be another one then.
    is_after_loop: bool,
}

impl Moved {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && !self.has_position
    }

    pub fn clear(&mut self) {
        self.records.clear();
        (self.has_position, self.is_after_loop) = (false, false);
    }

    /// Adds what a record contains, and whether it has changed.
    pub fn note(&mut self, address: u64, record: &[u8], has_changed: bool) -> Result<()> {
        let has_moved = mem::take(&mut self.is_after_loop) || has_changed;
        if !is_call(half_at(record, CALLFLAG as usize)) {
            self.is_after_loop = has_moved;
            return Ok(());
        }
        match has_moved {
            true => self.records.try_push(address),
            false => Ok(()),
        }
    }
}
