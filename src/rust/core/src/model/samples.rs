//! Samples: one row for each sample as it was recorded, in that order.

use super::column::SampleColumn;
use super::sources::SourceId;
use super::stacks::StackId;
use super::strings::StringId;
use crate::error::Result;
use crate::limits::memory::filled;

#[derive(Debug, Default, Clone)]
pub struct Samples {
    pub source: SampleColumn<SourceId>,
    pub stack: Vec<StackId>,
    /// Where the outermost frame was called from, for the few samples that record it; in the
    /// order of the samples.
    pub toplevel: Vec<Toplevel>,
    /// The spans that samples belong to, for those that record it: (row, span).
    pub links: Vec<(usize, Link)>,
    /// When samples were taken, for those that record it: (row, nanoseconds since 1970).
    pub times: Vec<(usize, i64)>,
}

/// The line of a source file from which the outermost frame of a sample was called. It is not a
/// location, because it is not in a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toplevel {
    /// Row in [`Samples`], counted from 0.
    pub sample: usize,
    pub filename: StringId,
    pub line: i32,
}

/// A span of a trace; both ids are hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    pub trace_id: StringId,
    pub span_id: StringId,
}

impl Samples {
    /// For each of `count` stacks whether a sample has it.
    pub fn used_stacks(&self, count: usize) -> Result<Vec<bool>> {
        let mut used = filled(count, false)?;
        for stack in &self.stack {
            used[stack.row()] = true;
        }
        Ok(used)
    }

    pub fn len(&self) -> usize {
        self.stack.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
}
