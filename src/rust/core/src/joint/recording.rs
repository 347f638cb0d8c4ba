//! A recording: the data that the sampler writes at each tick.
//!
//! The sampler writes words into one block of memory, from a signal handler, so the
//! layout is simple. A tick is
//!
//! ```text
//! 0            number of frames | number of contexts << 32
//! 1            flags: [`WHOLE_STACK`], [`WHOLE_CONTEXTS`]
//! 2, 3         size of R's file before and after R wrote its line
//! frames × 2   program counter | module << 48, stack pointer | EXACT
//! contexts × 2 address | call flag << 48, address of the promise
//! ```
//!
//! with both lists innermost first. User addresses have 47 bits on the machines
//! that this runs on, so the upper 16 are free. A *context* is R's record of a call
//! (`RCNTXT` in its sources); `Rprof()` prints an item for each of these.

use std::ops::Range;

/// The words before the frames of a tick.
pub const HEADER: usize = 4;
/// The words of a frame, and of a context.
pub const PAIR: usize = 2;

/// Flag of a tick: the native stack was followed to its end.
pub const WHOLE_STACK: u64 = 1;
/// Flag of a tick: R's contexts were followed to their end.
pub const WHOLE_CONTEXTS: u64 = 2;
/// In the word of the stack pointer: the program counter is that of the next
/// instruction to run, not the address that a call returns to.
pub const EXACT: u64 = 1;
/// The module of a frame in no known one.
pub const NO_MODULE: u64 = 0xffff;

const ADDRESS: u64 = (1 << 48) - 1;

/// Contexts of closures and of builtins: `Rprof()` prints these.
const PRINTED: u16 = 4 | 64;

/// All ticks of a run, and what is needed to understand them.
#[derive(Debug, Clone)]
pub struct Recording<'a> {
    pub words: &'a [u64],
    pub modules: Vec<Module>,
    pub evaluator: Evaluator,
    /// The highest address of R's C stack.
    pub stack_top: u64,
    /// Whether the sizes of R's file show where each tick's line ends: R >= 4.3
    /// writes lines as it makes them, older ones collect them.
    pub lines_written_at_once: bool,
    /// Ticks after the memory for recording was used up.
    pub lost: u64,
    /// When it began, in nanoseconds since 1970.
    pub start: i64,
    /// How long it took, in nanoseconds.
    pub duration: i64,
}

/// Code of R's evaluator, in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evaluator {
    /// `Rf_eval()`, by which code in C has R evaluate something.
    pub eval: Range<u64>,
    /// The interpreter of byte code; empty where it is not known.
    pub interpreter: Range<u64>,
    /// How many frames are between the two when `Rf_eval()` is given byte code.
    pub between: usize,
    /// Functions that call closures: their frames hold the records of these calls.
    pub closures: Vec<Range<u64>>,
}

/// A file of code in memory: a library, or the program itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    /// As the loader calls it, most often a path.
    pub path: String,
    pub role: Role,
    /// What loading added to the addresses of the file.
    pub bias: u64,
    /// Where its code is in memory.
    pub code: Range<u64>,
    /// Where in the file that code begins.
    pub offset: u64,
    pub build_id: Vec<u8>,
}

/// What the frames of a module mean in a profile of R.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// R itself: its frames are represented by R's own names.
    Evaluator,
    /// The program that was started, where that is not R itself.
    Program,
    #[default]
    Library,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Inside the instruction that runs, or inside the call.
    pub address: u64,
    /// Row in [`Recording::modules`].
    pub module: Option<usize>,
    /// The frame lies between this and the stack pointer of the next frame outwards.
    pub stack_pointer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub address: u64,
    /// Where on the C stack the innermost promise of those is that were pending when
    /// it began; 0 for none, and where that is not needed.
    pub promise: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Tick<'a> {
    flags: u64,
    /// What R's file grew by at this tick.
    pub grown: (u64, u64),
    frames: &'a [u64],
    contexts: &'a [u64],
}

impl Recording<'_> {
    /// The ticks in the order of time. Words that are no tick end them.
    pub fn ticks(&self) -> impl Iterator<Item = Tick<'_>> + Clone {
        let mut rest = self.words;
        std::iter::from_fn(move || {
            let (tick, behind) = Tick::split(rest)?;
            rest = behind;
            Some(tick)
        })
    }
}

impl<'a> Tick<'a> {
    fn split(words: &'a [u64]) -> Option<(Tick<'a>, &'a [u64])> {
        let (header, rest) = words.split_at_checked(HEADER)?;
        let frames = (header[0] & 0xffff_ffff) as usize;
        let contexts = (header[0] >> 32) as usize;
        let (frames, rest) = rest.split_at_checked(frames * PAIR)?;
        let (contexts, rest) = rest.split_at_checked(contexts * PAIR)?;
        let tick = Tick {
            flags: header[1],
            grown: (header[2], header[3]),
            frames,
            contexts,
        };
        Some((tick, rest))
    }

    pub fn has_whole_stack(&self) -> bool {
        self.flags & WHOLE_STACK != 0
    }

    pub fn has_whole_contexts(&self) -> bool {
        self.flags & WHOLE_CONTEXTS != 0
    }

    /// Innermost first.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = Frame> + ExactSizeIterator + 'a {
        self.frames.chunks_exact(PAIR).map(|pair| {
            let counter = pair[0] & ADDRESS;
            let exact = pair[1] & EXACT != 0;
            let module = pair[0] >> 48;
            Frame {
                // A call that never returns may be the last of its function.
                address: if exact {
                    counter
                } else {
                    counter.saturating_sub(1)
                },
                module: (module != NO_MODULE).then_some(module as usize),
                stack_pointer: pair[1] & !EXACT,
            }
        })
    }

    /// Those of R's contexts that `Rprof()` prints, innermost first.
    pub fn contexts(&self) -> impl Iterator<Item = Context> + Clone + 'a {
        self.contexts
            .chunks_exact(PAIR)
            .filter(|pair| (pair[0] >> 48) as u16 & PRINTED != 0)
            .map(|pair| Context {
                address: pair[0] & ADDRESS,
                promise: pair[1],
            })
    }

    /// What distinguishes the stacks of two ticks.
    pub fn stack_words(&self) -> (&'a [u64], &'a [u64]) {
        (self.frames, self.contexts)
    }
}
