//! How much memory a file may take, for its size.
//!
//! A few bytes may stand for much: gzip makes a thousand of one, a stack that thousands of
//! samples refer to is written out for each of them in R's tables. A small file made for it
//! would fill any memory, so what a file becomes is counted before it is there.

use crate::error::{Error, Result};
use crate::message;

/// Bytes for each byte of the file as it is stored. Real profiles, compressed, take some
/// hundred at most, and only where they are small.
const A_BYTE: u64 = 64;
/// No file may take less, which is what a small one of a program that always does the same
/// can need.
const AT_LEAST: u64 = 4 << 30;
/// A row of `sample_locations`.
const ROW: u64 = 12;
/// A sample beside its stack: its rows in `samples` and `sample_values`, and in the model.
const SAMPLE: u64 = 48;

/// An amount that is used up bit by bit: most often of memory, in bytes.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: u64,
    /// Whether the user set the limit, so that no other one applies.
    pub is_set: bool,
}

impl Budget {
    /// The memory that a file of `stored` bytes may take, unless the user set a limit.
    pub fn new(stored: u64, max_memory: Option<u64>) -> Budget {
        match max_memory {
            Some(limit) => Budget {
                limit,
                used: 0,
                is_set: true,
            },
            None => Budget::by_size(stored, A_BYTE, AT_LEAST),
        }
    }

    /// `each` for each byte of a file of this size, and at least `at_least`.
    pub fn by_size(size: u64, each: u64, at_least: u64) -> Budget {
        Budget {
            limit: size.saturating_mul(each).max(at_least),
            used: 0,
            is_set: false,
        }
    }

    /// Uses up an amount; returns whether there was as much left. If not, nothing is
    /// used up.
    #[inline]
    pub fn try_take(&mut self, amount: u64) -> bool {
        let is_left = self.has(amount);
        if is_left {
            self.used += amount;
        }
        is_left
    }

    #[inline]
    pub fn has(&self, amount: u64) -> bool {
        amount <= self.limit - self.used
    }

    /// Uses up bytes of memory that `input` is about to take.
    #[inline]
    pub fn take(&mut self, bytes: u64, input: &str) -> Result<()> {
        match self.try_take(bytes) {
            true => Ok(()),
            false => Err(self.passed(self.used.saturating_add(bytes), input)),
        }
    }

    /// Counts samples with so many frames each.
    #[inline]
    pub fn samples(&mut self, count: usize, frames: usize, input: &str) -> Result<()> {
        let each = SAMPLE + ROW.saturating_mul(frames as u64);
        self.take(each.saturating_mul(count as u64), input)
    }

    /// Whether there is room for a stack of so many frames, of which some sample will be.
    #[inline]
    pub fn check(&self, frames: usize, input: &str) -> Result<()> {
        let bytes = ROW.saturating_mul(frames as u64);
        match self.has(bytes) {
            true => Ok(()),
            false => Err(self.passed(self.used.saturating_add(bytes), input)),
        }
    }

    #[cold]
    fn passed(&self, needed: u64, input: &str) -> Error {
        Error::Budget {
            input: message!("{input}"),
            needed,
            allowed: self.limit,
        }
    }
}
