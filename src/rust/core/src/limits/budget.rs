//! How much memory a profile may take, in proportion to the size of its file.
//!
//! A few bytes of a file may expand to many: gzip turns one byte into a thousand, and a stack
//! that thousands of samples share is repeated for each of them in R's tables. A small
//! malicious file could exhaust the memory, so what a file needs is counted before it is
//! allocated.

use crate::error::{Error, Result};
use crate::message;

/// Bytes of memory for each byte of the stored file. Real profiles, compressed, take a few
/// hundred at most, and only if they are small.
const A_BYTE: u64 = 64;
/// The least that any file may take: a small file needs this much if it records a program
/// that repeats itself.
const AT_LEAST: u64 = 4 << 30;
/// Bytes of a row of `sample_locations`.
const ROW: u64 = 12;
/// Bytes of a sample without its stack: its rows in `samples` and `sample_values`, and in the model.
const SAMPLE: u64 = 48;

/// An amount, most often bytes of memory, that is used up step by step.
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

    /// Whether there is room for a stack of so many frames, which at least one sample will have.
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
