//! R's contexts: a list of records (`RCNTXT` in `Defn.h`), one for each call of a closure, and, while R's
//! own profiler runs, one for each call of a builtin.
//!
//! `R_GlobalContext` points to the innermost record. Most records are on the C stack, where outer calls have higher
//! addresses. Two kinds of records are on the node stack of the byte code interpreter: loops and, from R 4.4 on, calls
//! of byte-compiled functions by byte-compiled functions. The outermost record, which belongs to no call, is a variable
//! of R.
//!
//! The first fields have not changed since R 3. They are followed by a buffer of `sigsetjmp()`, whose size depends on
//! the processor and the C library.

use crate::processor::JUMP_BUFFER as BUFFER;
use std::ops::Range;

/// The address of the next outer record, 0 for the outermost one.
pub const NEXT: u64 = 0;
/// The kind of call, 4 bytes.
pub const CALLFLAG: u64 = 8;

/// Values of `callflag`: a call of a closure, a call of a builtin.
pub const CLOSURE: u32 = 4;
pub const BUILTIN: u32 = 64;
/// The flags have 8 bits.
pub const FLAGS: u32 = 256;

/// The closure that was called.
pub const CALLFUN: u64 = BUFFER + 32;
/// The environment that the closure was called from.
pub const SYSPARENT: u64 = BUFFER + 40;
/// The call, a `LANGSXP`.
pub const CALL: u64 = BUFFER + 48;
/// The environment of the call. Each call of a closure has a new one. It follows [`CALL`].
pub const CLOENV: u64 = BUFFER + 56;
/// The state of the byte code interpreter when the call was made: its code (`BCODESXP`), and the address of its
/// variable that points to the next instruction.
pub const BCBODY: u64 = BUFFER + 112;
pub const BCPC: u64 = BUFFER + 120;

/// More than the size of a record in any version.
pub const RECORD: usize = BUFFER as usize + 200;

/// The fields whose position depends on the version of R.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The promises that are being evaluated (`RPRSTACK`).
    pub promises: u64,
    /// The top of the node stack when the call was made.
    pub node_stack: u64,
    /// Where the call was made: a `srcref`, `R_NilValue`, or the marker `R_InBCInterpreter`, which stands for a
    /// position in byte code.
    pub srcref: u64,
    /// The position in byte code, as a number of instructions.
    pub relative_pc: Option<u64>,
}

impl Layout {
    /// R 4.2 and 4.3.
    pub const R_4_2: Layout = Layout {
        promises: BUFFER + 144,
        node_stack: BUFFER + 152,
        srcref: BUFFER + 168,
        relative_pc: None,
    };
    /// R 4.4 to 4.6.
    pub const R_4_4: Layout = Layout {
        promises: BUFFER + 152,
        node_stack: BUFFER + 160,
        srcref: BUFFER + 184,
        relative_pc: Some(BUFFER + 128),
    };
    pub const ALL: [Layout; 2] = [Layout::R_4_2, Layout::R_4_4];
}

/// The address of the next promise in `RPRSTACK`.
pub const NEXT_PROMISE: u64 = 8;

/// An entry of the node stack (`R_bcstack_t`): a tag of 4 bytes, and 8 bytes later a value. With this tag, the value is
/// the number of the following entries, of 4 bytes, that are raw memory, such as a record of a call. The value of an entry
/// refers to an object if its tag is 0, or larger than a byte.
pub const NODE: usize = 16;
pub const NODE_VALUE: usize = 8;
pub const RAW_NODES: u32 = 254;
pub const NODE_TAGS: u32 = 256;

/// The plausible sizes of R's node stack, which takes 3 to 5 MB; a range of any other size is not the node stack.
pub const NODE_STACK_BYTES: Range<u64> = 1 << 20..64 << 20;
/// More records than fit on any stack: a longer list must be circular.
pub const MOST_RECORDS: usize = 1_000_000;
