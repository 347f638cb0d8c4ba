//! Limits the memory of a profile, depending on the size of its file.
//!
//! A few bytes of a file may expand to many: gzip expands one byte to up to a thousand, and a stack
//! that thousands of samples share is repeated for each of them in R's tables. Thus a small
//! malicious file could exhaust the memory. Therefore the memory is counted before it is
//! allocated.

use crate::error::{Error, Result};
use crate::message;

/// Bytes of memory for each byte of the stored file. Real profiles, compressed, take a few
/// hundred at most, and only if they are small.
const PER_BYTE: u64 = 64;
/// The memory that any file may take. A small file needs this much if it records a program that
/// repeats the same stacks.
const MINIMUM: u64 = 4 << 30;
/// Bytes of a row of `sample_locations`.
const ROW: u64 = 12;
/// Bytes of a sample without its stack: its rows in `samples` and `sample_values`, and in the model.
const SAMPLE: u64 = 48;

/// An amount, most often bytes of memory, that is used up step by step.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: u64,
    /// Whether the user has set the limit, so that no other limit applies.
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
            None => Budget::by_size(stored, PER_BYTE, MINIMUM),
        }
    }

    /// A budget of `per_byte` for each byte of a file of this size, but at least `minimum`.
    pub fn by_size(size: u64, per_byte: u64, minimum: u64) -> Budget {
        Budget {
            limit: size.saturating_mul(per_byte).max(minimum),
            used: 0,
            is_set: false,
        }
    }

    /// Takes an amount if enough is left. Returns whether it was taken.
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

    /// Takes bytes of memory, which are about to be allocated for `input`.
    #[inline]
    pub fn take(&mut self, bytes: u64, input: &str) -> Result<()> {
        if self.try_take(bytes) {
            Ok(())
        } else {
            Err(self.exceeded(self.used.saturating_add(bytes), input))
        }
    }

    /// Takes the memory of `count` samples with `frames` frames each.
    #[inline]
    pub fn samples(&mut self, count: usize, frames: usize, input: &str) -> Result<()> {
        let each = SAMPLE + ROW.saturating_mul(frames as u64);
        self.take(each.saturating_mul(count as u64), input)
    }

    /// Checks that enough memory is left for one sample with `frames` frames.
    #[inline]
    pub fn check(&self, frames: usize, input: &str) -> Result<()> {
        let bytes = ROW.saturating_mul(frames as u64);
        if self.has(bytes) {
            Ok(())
        } else {
            Err(self.exceeded(self.used.saturating_add(bytes), input))
        }
    }

    #[cold]
    fn exceeded(&self, needed: u64, input: &str) -> Error {
        Error::Budget {
            input: message!("{input}"),
            needed,
            allowed: self.limit,
        }
    }
}
