//! Samples: one row for each sample as it was recorded, in that order.

use super::sources::SourceId;
use super::stacks::StackId;
use super::strings::StringId;

#[derive(Debug, Default, Clone)]
pub struct Samples {
    pub source: Vec<SourceId>,
    pub stack: Vec<StackId>,
    /// Where the outermost frame was called from, for the few samples that say
    /// so; in the order of the samples.
    pub toplevel: Vec<Toplevel>,
}

/// The place in a file from which the outermost frame was called. It belongs to
/// no function, so it is no location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toplevel {
    /// Row in [`Samples`], counted from 0.
    pub sample: usize,
    pub filename: StringId,
    pub line: i32,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
}
