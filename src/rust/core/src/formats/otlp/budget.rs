//! How much may become of a file.
//!
//! A few bytes may stand for much: a stack that thousands of samples refer to, a long
//! text that is the name of each profile, a sample type that no other sample has. A
//! small file made of nothing else would fill any memory.

use crate::limits::budget;
use crate::message;
use crate::protobuf::wire::{Result, fault};

/// Rows of stacks in R's tables, or bytes of anything else, for each byte of the file.
const A_BYTE: usize = 256;
const AT_LEAST: usize = 1 << 24;

/// What may still be added for the bytes of a file.
pub struct Budget {
    left: usize,
    size: usize,
    /// What all formats have.
    memory: budget::Budget,
    /// What messages call the file.
    name: String,
}

impl Budget {
    pub fn new(size: usize, memory: budget::Budget, name: String) -> Budget {
        Budget {
            left: match memory.is_set {
                true => usize::MAX,
                false => size.saturating_mul(A_BYTE).max(AT_LEAST),
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
        match self.left.checked_sub(rows) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => fault(
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
