//! A stack of R: functions, files and lines.

use crate::stack::spans::Span;
use profile_core::model::StringId;
use profile_runtime::byte_code::Code;

/// Deeper stacks are cut: their outermost calls are left out. R's own limit is 5,000 calls by default.
pub const MOST_CALLS: usize = 100_000;

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub file: StringId,
    pub line: i32,
}

/// A position in byte code that has no source references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeAt {
    /// The address of the code.
    pub address: u64,
    pub code: Code,
    /// The number of words of the instructions before it.
    pub words: u32,
}

/// Where a function is: the place in a file, or the position in byte code, if that is to be read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Where {
    pub place: Option<Place>,
    pub code: Option<CodeAt>,
}

/// The package of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Package {
    #[default]
    Unknown,
    /// It belongs to none: the user has defined it.
    None,
    Named(StringId),
}

/// A call on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub name: StringId,
    /// What the call says, which is the name in recordings of `Rprof()`. It differs if the name is that of the definition.
    pub called: StringId,
    /// The place of the function, if its code has source references.
    pub place: Option<Place>,
    /// Its position in byte code otherwise, until the code has a name, see [`crate::stack::codes`].
    pub code: Option<CodeAt>,
    pub package: Package,
}

/// Where R has stored the record of a call. This determines the place of the call among native frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnStack {
    /// The address of the record; 0 if there is none.
    pub address: u64,
    /// What was called, see [`profile_runtime::contexts`].
    pub flags: u16,
    /// The list of promises that were pending.
    pub promises: u64,
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
    pub span: Option<Span>,
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
