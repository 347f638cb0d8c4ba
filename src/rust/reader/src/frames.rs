//! A stack of R: functions, files and lines.

use crate::record::OnStack;
use crate::spans::SpanIds;
use profile_core::model::StringId;

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub file: StringId,
    pub line: i32,
}

/// A call on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub name: StringId,
    /// The place of the function, if its code has source references.
    pub place: Option<Place>,
}

/// A stack, innermost frame first.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Stack {
    pub frames: Vec<Frame>,
    /// The record of each frame. Builtins called by byte code have no record.
    pub records: Vec<OnStack>,
    /// Where the outermost function was called.
    pub toplevel: Option<Place>,
    /// The span that was active.
    pub span: Option<SpanIds>,
    /// Why outer frames are missing, if they are.
    pub cut: Option<Cut>,
}

/// Why a stack lacks its outer frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It has more calls than are read.
    TooDeep,
    /// It has more calls than can be read at one moment, and inner ones ended before the others were read.
    Late,
    /// Too many different stacks with so many calls were recorded.
    Full,
}
