//! A stack of R: functions, files and lines.

use crate::calls::OnStack;
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
    /// Whether outer frames were left out, because the stack is too deep.
    pub is_cut: bool,
}
