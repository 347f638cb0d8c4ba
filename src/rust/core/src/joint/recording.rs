//! A recording: the data that the sampler writes at each tick.
//!
//! The sampler writes words to a block of memory in a signal handler, so the layout is
//! simple. A tick consists of
//!
//! ```text
//! 0            number of frames | number of contexts << 32
//! 1            flags: [`WHOLE_STACK`], [`WHOLE_CONTEXTS`] | number of words of titles << 32
//! 2, 3         size of R's file before and after R wrote its line
//! frames × 2   program counter | module << 48, stack pointer | EXACT
//! contexts × 2 address | call flags << 48, address of the promise
//! contexts × 2 a [`Position`] for each context, if [`WITH_POSITIONS`] is set
//! titles       for each: number of the context | length in bytes << 32, and the bytes in whole words
//! ```
//!
//! with all lists innermost first. User addresses have at most 48 bits on the supported processors, so the
//! upper 16 bits are free. A *context* is R's record of a call (`RCNTXT` in its sources);
//! `Rprof()` prints an item for each of these.

use super::positions::{ADDRESS, Position};
use crate::model::titled::LONGEST_TITLE;
use std::ops::Range;
use std::path::PathBuf;

/// The number of words before the frames of a tick.
pub const HEADER: usize = 4;
/// The number of words of a frame, and of a context.
pub const PAIR: usize = 2;

/// Flag of a tick: the native stack was followed to its end.
pub const WHOLE_STACK: u64 = 1;
/// Flag of a tick: R's contexts were followed to their end.
pub const WHOLE_CONTEXTS: u64 = 2;
/// Flag of a tick: it has positions in byte code.
pub const WITH_POSITIONS: u64 = 4;
/// Flag in the word of the stack pointer: the program counter is the address of the next instruction to run, not a
/// return address.
pub const EXACT: u64 = 1;
/// The words for an item of R's stack without a context: a builtin inside the next outer call. Only samples of other
/// processes have such items.
pub const NO_CONTEXT: [u64; PAIR] = [0; PAIR];
/// The module number of a frame outside all known modules.
pub const NO_MODULE: u64 = 0xffff;

/// The bytes of a word.
const WORD: usize = 8;

/// All ticks of a run, and the information needed to interpret them.
#[derive(Debug, Clone)]
pub struct Recording<'a> {
    pub words: &'a [u64],
    pub modules: Vec<Module>,
    pub evaluator: Evaluator,
    /// Whether native stacks were recorded, and not only the titles of calls.
    pub is_native: bool,
    /// The highest address of R's C stack.
    pub stack_top: u64,
    /// Whether R writes each line immediately (R >= 4.3), so that the sizes of its file show which line belongs to a
    /// tick. Older versions buffer lines.
    pub lines_written_at_once: bool,
    /// The number of ticks that were lost after the memory for recording was used up.
    pub lost: u64,
    /// The start of the run, in nanoseconds since 1970.
    pub start: i64,
    /// The duration of the run in nanoseconds.
    pub duration: i64,
}

/// The addresses of functions of R's evaluator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evaluator {
    /// `Rf_eval()`, by which C code makes R evaluate an expression.
    pub eval: Range<u64>,
    /// The interpreter of byte code; empty if it is unknown.
    pub interpreter: Range<u64>,
    /// The number of frames between the two when `Rf_eval()` is called with byte code.
    pub between: usize,
    /// Functions that call closures: their frames contain the records of these calls.
    pub closures: Vec<Range<u64>>,
    /// Functions that copy objects, and those that allocate memory for them.
    pub copying: Vec<Range<u64>>,
    pub allocating: Vec<Range<u64>>,
    /// Functions of this package that R calls in the place of others, to record allocations.
    pub hooks: Vec<Range<u64>>,
}

/// A loaded file with code: a library, or the program itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    /// The name that the loader reports, usually a path.
    pub path: String,
    pub role: Role,
    /// The difference between addresses in memory and those in the file.
    pub bias: u64,
    /// The addresses of its code in memory.
    pub code: Range<u64>,
    /// The offset of that code in the file.
    pub offset: u64,
    pub build_id: Vec<u8>,
    /// The path at which the file can be read, if not at `path`: a file of another process may be visible only to
    /// that process.
    pub file: Option<PathBuf>,
}

/// The bytes of a title, as they are in the words of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Title {
    bytes: [u8; LONGEST_TITLE],
    length: usize,
}

impl Title {
    /// The title of this text, if it is not too long.
    pub fn new(text: &[u8]) -> Option<Title> {
        let mut bytes = [0; LONGEST_TITLE];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Title {
            bytes,
            length: text.len(),
        })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Writes the title of the context with this number. Returns the number of words, or `None` if they do not fit.
    pub fn write(&self, number: usize, room: &mut [u64]) -> Option<usize> {
        let count = 1 + self.length.div_ceil(WORD);
        let (head, text) = room.get_mut(..count)?.split_first_mut()?;
        *head = number as u64 | (self.length as u64) << 32;
        for (word, bytes) in text.iter_mut().zip(self.bytes.chunks_exact(WORD)) {
            *word = bytes
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        }
        Some(count)
    }

    /// The number of the context, its title, and the rest of the words.
    fn split(words: &[u64]) -> Option<(usize, Title, &[u64])> {
        let (head, rest) = words.split_first()?;
        let length = (head >> 32) as usize;
        let (text, rest) = rest.split_at_checked(length.div_ceil(WORD))?;
        let mut bytes = [0; LONGEST_TITLE];
        bytes.get(..length)?;
        for (bytes, word) in bytes.chunks_exact_mut(WORD).zip(text) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let number = (head & 0xffff_ffff) as usize;
        Some((number, Title { bytes, length }, rest))
    }
}

/// The role of a module in an R profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// R itself: its frames are represented by R's own names.
    Evaluator,
    /// The program that was started, if it is not R itself.
    Program,
    #[default]
    Library,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// An address inside the current instruction, or inside the call instruction.
    pub address: u64,
    /// Row in [`Recording::modules`].
    pub module: Option<usize>,
    /// The start of the frame on the stack. It ends at the stack pointer of the next outer frame.
    pub stack_pointer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub address: u64,
    /// What was called, as R's own flags say.
    pub flags: u16,
    /// The address on the C stack of the innermost promise that was pending when the call began; 0
    /// if there is none, or it is not needed.
    pub promise: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Tick<'a> {
    flags: u64,
    /// The sizes of R's file before and after this tick.
    pub file_size: (u64, u64),
    frames: &'a [u64],
    contexts: &'a [u64],
    positions: &'a [u64],
    titles: &'a [u64],
}

impl Recording<'_> {
    /// The ticks in chronological order, see [`ticks()`].
    pub fn ticks(&self) -> impl Iterator<Item = Tick<'_>> + Clone {
        ticks(self.words)
    }
}

/// The ticks of words in chronological order, up to the first words that are not a valid tick.
pub fn ticks(mut words: &[u64]) -> impl Iterator<Item = Tick<'_>> + Clone {
    std::iter::from_fn(move || {
        let (tick, rest) = Tick::split(words)?;
        words = rest;
        Some(tick)
    })
}

impl<'a> Recording<'a> {
    /// The tick that begins at this word.
    pub fn tick_at(&self, start: usize) -> Option<Tick<'a>> {
        Some(Tick::split(self.words.get(start..)?)?.0)
    }
}

impl<'a> Tick<'a> {
    fn split(words: &'a [u64]) -> Option<(Tick<'a>, &'a [u64])> {
        let (header, rest) = words.split_at_checked(HEADER)?;
        let frames = (header[0] & 0xffff_ffff) as usize;
        let contexts = (header[0] >> 32) as usize;
        let (frames, rest) = rest.split_at_checked(frames * PAIR)?;
        let (contexts, rest) = rest.split_at_checked(contexts * PAIR)?;
        let with_positions = header[1] & WITH_POSITIONS != 0;
        let positions = if with_positions { contexts.len() } else { 0 };
        let (positions, rest) = rest.split_at_checked(positions)?;
        let (titles, rest) = rest.split_at_checked((header[1] >> 32) as usize)?;
        let tick = Tick {
            flags: header[1],
            file_size: (header[2], header[3]),
            frames,
            contexts,
            positions,
            titles,
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
                // The return address may belong to the next function, if a call that never returns is the last
                // instruction of its function.
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

    /// The contexts that `Rprof()` prints, innermost first.
    pub fn contexts(&self) -> impl Iterator<Item = Context> + Clone + 'a {
        self.contexts
            .chunks_exact(PAIR)
            .filter(|pair| *pair != NO_CONTEXT)
            .map(|pair| Context {
                address: pair[0] & ADDRESS,
                flags: (pair[0] >> 48) as u16,
                promise: pair[1],
            })
    }

    /// Where the function of each context runs, innermost first; empty if that was not recorded.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = Option<Position>> + Clone + 'a {
        self.positions.chunks_exact(PAIR).map(Position::of_words)
    }

    /// The titles of calls, see [`crate::model::titled`]: the number of the context, counted from the innermost one, and
    /// the bytes of the text.
    pub fn titles(&self) -> impl Iterator<Item = (usize, Title)> + 'a {
        let mut words = self.titles;
        std::iter::from_fn(move || {
            let (number, title, rest) = Title::split(words)?;
            words = rest;
            Some((number, title))
        })
    }

    /// For each item of R's stack, innermost first, whether it has a context.
    pub fn items(&self) -> impl Iterator<Item = bool> + 'a {
        self.contexts
            .chunks_exact(PAIR)
            .map(|pair| *pair != NO_CONTEXT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_come_back_from_their_words() {
        let texts = ["dplyr", "R.methodsS3", "a", &"x".repeat(LONGEST_TITLE)];
        let mut words = [0; 100];
        let mut used = HEADER + 2 * PAIR;
        words[0] = 2 << 32;
        for (number, text) in texts.iter().enumerate() {
            let title = Title::new(text.as_bytes()).unwrap();
            used += title.write(number, &mut words[used..]).unwrap();
        }
        words[1] = WHOLE_CONTEXTS | ((used - HEADER - 2 * PAIR) as u64) << 32;
        let tick = ticks(&words[..used]).next().unwrap();
        let found: Vec<_> = tick.titles().map(|(_, title)| title).collect();
        let found: Vec<_> = found.iter().map(Title::bytes).collect();
        assert_eq!(found, texts.map(str::as_bytes));
        assert!(tick.titles().map(|(number, _)| number).eq(0..4));
        assert!(tick.has_whole_contexts() && !tick.has_whole_stack());
        // Words that are missing, and a length beyond the limit.
        assert_eq!(ticks(&words[..used - 1]).count(), 0);
        words[HEADER + 2 * PAIR] = 1000 << 32;
        assert_eq!(ticks(&words[..used]).next().unwrap().titles().count(), 0);
        assert_eq!(Title::new(&[0; LONGEST_TITLE + 1]), None);
        assert_eq!(Title::new(b"dplyr").unwrap().write(0, &mut [0; 1]), None);
    }
}
