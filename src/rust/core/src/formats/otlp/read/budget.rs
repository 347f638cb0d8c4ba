//! How much may become of a file.
//!
//! A few bytes may stand for much: a stack that thousands of samples refer to, a long
//! text that is the name of each profile, a sample type that no other sample has. A
//! small file made of nothing else would fill any memory.

use crate::limits::budget;
use crate::message;
use crate::protobuf::decode::{Result, error_at};

/// Rows of stacks in R's tables, or bytes of anything else, for each byte of the file.
const A_BYTE: u64 = 256;
const AT_LEAST: u64 = 1 << 24;

/// What may still be added for the bytes of a file.
pub struct Budget {
    /// Rows and bytes.
    content: budget::Budget,
    size: usize,
    /// What all formats have.
    memory: budget::Budget,
    /// What messages call the file.
    name: String,
}

impl Budget {
    pub fn new(size: usize, memory: budget::Budget, name: String) -> Budget {
        Budget {
            content: match memory.is_set {
                true => budget::Budget::by_size(0, 0, u64::MAX),
                false => budget::Budget::by_size(size as u64, A_BYTE, AT_LEAST),
            },
            size,
            memory,
            name,
        }
    }

    /// Takes samples with so many frames each.
    #[inline]
    pub fn samples(&mut self, count: usize, frames: usize) -> Result<()> {
        Ok(self.memory.samples(count, frames, &self.name)?)
    }

    /// Takes rows of stacks, or bytes, for what stands at byte `at`.
    #[inline]
    pub fn take(&mut self, rows: usize, at: usize) -> Result<()> {
        match self.content.try_take(rows as u64) {
            true => Ok(()),
            false => error_at(
                at,
                message!(
                    "Up to here there are too many frames, attributes, texts and sources for a \
                     file of {} bytes.",
                    self.size
                ),
            ),
        }
    }
}
