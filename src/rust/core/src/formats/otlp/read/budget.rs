//! Limits how much content a file may expand to, depending on its size.
//!
//! A few bytes may expand to many: a stack that thousands of samples refer to, a long string that
//! is the name of each profile, or a sample type that adds a column for all samples. Without a
//! limit, a small malicious file could exhaust the memory.

use crate::limits::budget;
use crate::message;
use crate::protobuf::decode::{Result, error_at};

/// Rows of stacks in R's tables, or bytes of anything else, for each byte of the file.
const PER_BYTE: u64 = 256;
/// The rows and bytes that any file may expand to, however small.
const MINIMUM: u64 = 1 << 24;

/// The remaining amounts that the content of a file may take.
pub struct Budget {
    /// Rows of stacks, and bytes of other content. Unlimited if the user set a limit of memory.
    content: budget::Budget,
    size: usize,
    /// The memory limit that all formats have.
    memory: budget::Budget,
    /// The name of the file in messages.
    name: String,
}

impl Budget {
    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn new(size: usize, memory: budget::Budget, name: String) -> Budget {
        Budget {
            content: if memory.is_set {
                budget::Budget::by_size(0, 0, u64::MAX)
            } else {
                budget::Budget::by_size(size as u64, PER_BYTE, MINIMUM)
            },
            size,
            memory,
            name,
        }
    }

    /// Takes the memory of `count` samples with `frames` frames each.
    #[inline]
    pub fn samples(&mut self, count: usize, frames: usize) -> Result<()> {
        Ok(self.memory.samples(count, frames, &self.name)?)
    }

    /// Takes rows of stacks, or bytes, for the content at byte offset `at`.
    #[inline]
    pub fn take(&mut self, rows: usize, at: usize) -> Result<()> {
        if self.content.try_take(rows as u64) {
            return Ok(());
        }
        error_at(
            at,
            message!(
                "The content up to here has too many frames, attributes, texts and sources for a \
                 file of {} bytes.",
                self.size
            ),
        )
    }
}
