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
    /// The spans that samples belong to, for those that say so.
    pub links: Vec<(usize, Link)>,
    /// When samples were taken, in nanoseconds since 1970, for those that say so.
    pub times: Vec<(usize, i64)>,
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

/// A span of a trace, in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    pub trace_id: StringId,
    pub span_id: StringId,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }
}
