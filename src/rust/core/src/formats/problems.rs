//! What was odd in an input, and how it was read all the same.
//!
//! A file that a killed process left behind, or an editor touched, still holds
//! a profile. Readers take what is there and note here what they did; R turns
//! the notes into one warning and a table.

use crate::error::{Place, Result};
use crate::limits::memory::{TryCollect, TryGrow, TryText, owned, sort_by_key, written};
use crate::message;
use crate::model::integer_for_r;
use crate::schema::ProblemRow;

/// How many problems of a kind are kept with their place; beyond that they are
/// counted only.
const KEPT: usize = 1000;
const WHAT: &str = "problems of the input";
/// How much of the text is quoted.
const QUOTED: usize = 60;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $key:literal $lost:literal $what:literal,)*) => {
        /// A kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProblemKind { $($(#[$doc])* $name,)* }

        impl ProblemKind {
            pub const ALL: &'static [ProblemKind] = &[$(ProblemKind::$name,)*];

            /// A short name, stable between releases.
            pub fn key(self) -> &'static str {
                match self { $(ProblemKind::$name => $key,)* }
            }

            /// Whether something of what was recorded is missing.
            pub fn lost(self) -> bool {
                match self { $(ProblemKind::$name => $lost,)* }
            }

            /// What was found and how it was read.
            pub fn describe(self) -> &'static str {
                match self { $(ProblemKind::$name => $what,)* }
            }
        }
    };
}

kinds! {
    ByteOrderMark "byte_order_mark" false
        "a byte order mark before the first line, skipped",
    CarriageReturns "carriage_returns" false
        "lines that end in CR LF, read as if they ended in LF",
    BlankLine "blank_line" false
        "a blank line, skipped",
    NoHeader "no_header" true
        "no header line: the sampling interval is unknown",
    CutHeader "cut_header" true
        "a header line that breaks off: nothing is known of its run",
    LineFeedInName "line_feed_in_name" false
        "a function name that holds a line feed, joined from its lines",
    NotUtf8 "not_utf8" false
        "a name that is not UTF-8, read as Latin-1",
    NulByte "nul_byte" false
        "a NUL byte, shown as <00>",
    EmptyName "empty_name" false
        "an item without a name, read as <Anonymous>",
    CutName "cut_name" true
        "a name that breaks off inside a character",
    LongName "long_name" true
        "a name of 498 bytes, where R 4.2 and older cut a name",
    LongSample "long_sample" true
        "a sample of 10,000 bytes, where R 4.2 and older leave out the outer frames",
    NoFinalLineFeed "no_final_line_feed" false
        "no line feed after the last line, which is complete",
    TrimmedLine "trimmed_line" false
        "a line without the blank at its end, read as if it were there",
    CutSample "cut_sample" true
        "the file ends inside a sample (was the process killed, or the disk full?): its outer frames are missing",
    CutFileLine "cut_file_line" false
        "the file ends inside a `#File` line, before any sample that needs it",
    TornSample "torn_sample" true
        "a sample that breaks off or does not parse: kept up to that point",
    StrayText "stray_text" true
        "text that is no part of a sample, skipped",
    UnknownFile "unknown_file" true
        "a file number without a `#File` line: its file name is left empty",
    RepeatedFile "repeated_file" false
        "a file number that stands for a second file from here on",
    BadLineNumber "bad_line_number" true
        "a line number that is negative or too large, read as 0 (unknown)",
    NoMemory "no_memory" true
        "a sample without memory figures in a memory profile",
    CutGzip "cut_gzip" true
        "the gzip data end early: read up to that point",
    PaddedGzip "padded_gzip" false
        "zero bytes after the gzip data, skipped",
    NulRun "nul_run" true
        "a run of NUL bytes, as a crash of the machine or emptying a file that is being written leaves them: skipped",
    OverlongLine "overlong_line" true
        "a line of more than 64 MiB, skipped",
    NativeUnmatched "native_unmatched" true
        "a sample whose native stack does not fit R's: kept as R's stack alone",
    NativeCut "native_cut" true
        "a native stack that could not be followed to its end: its outer native frames are missing",
    NativeFull "native_full" true
        "a sample after the memory for native stacks was used up: kept as R's stack alone",
    SilentTick "silent_tick" true
        "a tick for which R wrote no sample, as when a stack is too deep for its buffer or the disk is full",
    ImpreciseValue "imprecise_value" false
        "a value beyond 2^53, which R's numbers hold only nearly; a column that ends in `_exact` has it",
    OddTime "odd_time" true
        "a time of 2^63 nanoseconds or more, left out",
    ZeroEntry "zero_entry" false
        "a first entry of a table that says something, though it should stand for none: read as any other",
    EmptySample "empty_sample" true
        "a sample with neither a value nor a time, left out",
    AmbiguousLayout "ambiguous_layout" false
        "a message that could be of another version of the format as well, read as the likelier one",
    OddLineNumber "odd_line_number" false
        "a line number that is negative or beyond R's integers, read as 0 (unknown); a column that ends in `_exact` has it",
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub kind: ProblemKind,
    pub place: Place,
    /// The start of the text it is about.
    pub text: String,
}

#[derive(Debug, Default, Clone)]
pub struct Problems {
    kept: Vec<Problem>,
    counts: Vec<(ProblemKind, u64)>,
}

impl Problems {
    pub fn note(&mut self, kind: ProblemKind, place: Place, text: &[u8]) {
        let seen = match self.counts.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                #[expect(clippy::disallowed_methods, reason = "one for each kind")]
                self.counts.push((kind, 1));
                1
            }
        };
        if seen <= KEPT as u64 {
            // Without memory for it a problem is counted only. Whoever reads on fails.
            let _ = self.keep(kind, place, text);
        }
    }

    fn keep(&mut self, kind: ProblemKind, place: Place, text: &[u8]) -> Result<()> {
        let text = quote(text)?;
        self.kept.try_push(Problem { kind, place, text }, WHAT)
    }

    /// Notes zero bytes behind gzip data, which end at `place`.
    pub fn padding(&mut self, zeros: u64, place: Place) {
        if zeros > 0 {
            let text = message!("{zeros} zero bytes");
            self.note(ProblemKind::PaddedGzip, place, text.as_bytes());
        }
    }

    /// Notes a number that R holds nearly only.
    pub fn nearly(&mut self, value: i64, at: usize) {
        let place = Place::Byte(at as u64);
        let text = message!("{value}");
        self.note(ProblemKind::ImpreciseValue, place, text.as_bytes());
    }

    /// The number of a line, or of a column in it, with a note where R's integers cannot
    /// hold it.
    pub fn line_number(&mut self, line: i64, at: usize) -> i64 {
        if i64::from(integer_for_r(line)) != line {
            let place = Place::Byte(at as u64);
            let text = message!("{line}");
            self.note(ProblemKind::OddLineNumber, place, text.as_bytes());
        }
        line
    }

    /// A time or a duration in nanoseconds, with a note where it is beyond all reason.
    pub fn time(&mut self, nanoseconds: u64, at: usize) -> Option<i64> {
        let time = i64::try_from(nanoseconds).ok();
        if time.is_none() {
            let place = Place::Byte(at as u64);
            let text = message!("{nanoseconds}");
            self.note(ProblemKind::OddTime, place, text.as_bytes());
        }
        time
    }

    /// Puts other places in the place of bytes, from the problem `first` on. `places`:
    /// those of bytes in rising order.
    pub fn move_places(
        &mut self,
        first: usize,
        places: impl Fn(&[u64]) -> Result<Vec<String>>,
    ) -> Result<()> {
        let mut moved: Vec<(u64, &mut Place)> = Vec::new();
        for problem in self.kept.iter_mut().skip(first) {
            if let Place::Byte(byte) = problem.place {
                moved.try_push((byte, &mut problem.place), WHAT)?;
            }
        }
        sort_by_key(&mut moved, |(byte, _)| *byte, WHAT)?;
        let bytes = moved.iter().map(|(byte, _)| *byte).try_vec(WHAT)?;
        for ((_, place), field) in moved.into_iter().zip(places(&bytes)?) {
            *place = Place::Field(field);
        }
        Ok(())
    }

    /// Each kind that was seen and how often, in the order of first sight.
    pub fn counts(&self) -> &[(ProblemKind, u64)] {
        &self.counts
    }

    /// The first thousand of each kind, in the order of the input.
    pub fn kept(&self) -> &[Problem] {
        &self.kept
    }

    /// The problems as rows of their table: `source` is the row of the first source of the
    /// input, where the table says so.
    pub fn rows(&self, source: Option<Option<usize>>) -> Result<Vec<ProblemRow>> {
        let row = |problem: &Problem| {
            let (line, byte) = match problem.place {
                Place::Line(line) => (Some(line as f64), None),
                Place::Byte(byte) => (None, Some(byte as f64)),
                // A field of JSON has neither.
                Place::Sample(_) | Place::Field(_) => (None, None),
            };
            let text = match &problem.place {
                Place::Field(path) if problem.text.is_empty() => owned(path, WHAT)?,
                Place::Field(path) => written(format_args!("{path}: {}", problem.text), WHAT)?,
                _ => owned(&problem.text, WHAT)?,
            };
            Ok(ProblemRow {
                source,
                line,
                byte,
                problem: problem.kind.key(),
                lost: problem.kind.lost(),
                description: problem.kind.describe(),
                text,
            })
        };
        self.kept.iter().map(row).try_vec_of(WHAT)
    }

    pub fn has(&self, kind: ProblemKind) -> bool {
        self.counts.iter().any(|(k, _)| *k == kind)
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// The start of a text on one line, as it can be printed.
fn quote(text: &[u8]) -> Result<String> {
    let cut = &text[..text.len().min(QUOTED)];
    let mut out = String::new();
    for chunk in cut.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                out.try_write(format_args!("{}", c.escape_default()), WHAT)?;
            } else {
                out.try_push_char(c, WHAT)?;
            }
        }
        if !chunk.invalid().is_empty() {
            out.try_push_char(char::REPLACEMENT_CHARACTER, WHAT)?;
        }
    }
    if text.len() > QUOTED {
        out.try_push_char('…', WHAT)?;
    }
    Ok(out)
}
