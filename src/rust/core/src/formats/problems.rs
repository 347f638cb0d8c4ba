//! Irregularities of an input, and how they were read.
//!
//! A file that was truncated because a process was killed, or that was changed by an editor, still
//! contains a profile. Readers read as much as possible and record irregularities here; R code
//! converts the records to one warning and a table.

use crate::error::{Position, Result};
use crate::limits::memory::{TryCollect, TryGrow, TryText, owned, sort_by_key, written};
use crate::message;
use crate::model::integer_for_r;
use crate::schema::ProblemRow;
use crate::text::{self, Was};
use std::borrow::Cow;

/// The number of problems of a kind that are kept with their position; further ones are only counted.
const KEPT: usize = 1000;
/// The maximum length of a quoted text in bytes.
const QUOTED: usize = 60;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $key:literal $lost:literal $what:literal,)*) => {
        /// A kind of problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProblemKind { $($(#[$doc])* $name,)* }

        impl ProblemKind {
            /// A short name, stable between releases.
            pub fn key(self) -> &'static str {
                match self { $(ProblemKind::$name => $key,)* }
            }

            /// Whether data were lost.
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
        "a truncated header line: options and interval of its run are unknown",
    LineFeedInName "line_feed_in_name" false
        "a function name with a line feed, joined from its lines",
    NotUtf8 "not_utf8" false
        "a name that is not UTF-8, read as Latin-1",
    NulByte "nul_byte" false
        "a NUL byte, shown as <00>",
    EmptyName "empty_name" false
        "an item without a name, read as <Anonymous>",
    CutName "cut_name" true
        "a name that is truncated inside a character",
    LongName "long_name" true
        "a name of 498 bytes, the length at which R 4.2 and older truncate names",
    LongSample "long_sample" true
        "a sample of 10,000 bytes, the length at which R 4.2 and older omit the outer frames",
    NoFinalLineFeed "no_final_line_feed" false
        "no line feed after the last line, which is complete",
    TrimmedLine "trimmed_line" false
        "a line without its trailing blank, read as if it had one",
    CutSample "cut_sample" true
        "the file ends inside a sample (was the process killed, or the disk full?): its outer frames are missing",
    CutFileLine "cut_file_line" false
        "the file ends inside a `#File` line, which no sample refers to",
    TornSample "torn_sample" true
        "a sample that is truncated or cannot be parsed: kept up to that point",
    StrayText "stray_text" true
        "text that is not part of a sample, skipped",
    UnknownFile "unknown_file" true
        "a file number without a `#File` line: its file name is left empty",
    RepeatedFile "repeated_file" false
        "a file number that is assigned to another file from here on",
    BadLineNumber "bad_line_number" true
        "a line number that is negative or too large, read as 0 (unknown)",
    NoMemory "no_memory" true
        "a sample without memory figures in a memory profile",
    CutGzip "cut_gzip" true
        "the gzip data end early: read up to that point",
    PaddedGzip "padded_gzip" false
        "zero bytes after the gzip data, skipped",
    NulRun "nul_run" true
        "a run of NUL bytes, left by a system crash or by emptying the file while it was written: skipped",
    OverlongLine "overlong_line" true
        "a line of more than 64 MiB, skipped",
    NativeUnmatched "native_unmatched" true
        "a sample whose native stack does not match R's: only R's stack is kept",
    NativeCut "native_cut" true
        "a native stack that could not be unwound to its end: its outer native frames are missing",
    NativeFull "native_full" true
        "a sample after the memory for native stacks was used up: only R's stack is kept",
    DeepStack "deep_stack" true
        "a stack of more than 100,000 calls: its outer calls are missing",
    UnreadSample "unread_sample" true
        "a sample that could not be read, so that it is missing",
    UnknownContexts "unknown_contexts" true
        "a version of R whose contexts have an unknown layout: only innermost functions may have lines",
    UnreadCalls "unread_calls" true
        "a deep stack whose inner calls ended before its outer calls were read: they are missing",
    StacksFull "stacks_full" true
        "a stack of more than 1,000 calls after the memory for such stacks was used up: its outer calls are missing",
    SilentTick "silent_tick" true
        "a tick for which R wrote no sample, for example because the stack was too deep for its buffer or the disk was full",
    ImpreciseValue "imprecise_value" false
        "a value beyond 2^53, which a double only approximates; a column that ends in `_exact` has the exact value",
    OddTime "odd_time" true
        "a time of 2^63 nanoseconds or more, omitted",
    ZeroEntry "zero_entry" false
        "a reserved first entry of a table that is not empty: read like any other entry",
    EmptySample "empty_sample" true
        "a sample with neither a value nor a time, omitted",
    AmbiguousLayout "ambiguous_layout" false
        "a message that may be of more than one version of the format, read as the most likely one",
    CutJson "cut_json" true
        "the file ends inside an object or array: read up to that point",
    HalfCharacter "half_character" true
        "an escape sequence of half a character, read as U+FFFD",
    UnequalLengths "unequal_lengths" true
        "columns of samples of different lengths: rows beyond the shortest are omitted",
    TimeBackwards "time_backwards" false
        "a time before the previous one",
    UnbalancedEvent "unbalanced_event" true
        "an event that closes a frame which is not the innermost open one",
    MissingNode "missing_node" true
        "a reference to a call that the file does not contain (is a chunk of a trace lost?), shown as an unknown function",
    OpenFrame "open_frame" false
        "a frame that is not closed, read as open until the end of its profile",
    UnknownEnd "unknown_end" true
        "a frame that is not closed in a profile without a later end: its time since the last event is unknown",
    ZeroTime "zero_time" false
        "a profile in which every frame lasts 0, so it has no samples",
    TwoCounts "two_counts" false
        "lines with two counts, as in a difference: the first is `samples_before`, the second `samples`",
    CutLine "cut_line" true
        "an incomplete line, skipped",
    TraceError "trace_error" true
        "an error of perf while it decoded a trace of instructions: samples are missing there",
    LostRecords "lost_records" true
        "records that perf lost while it recorded: samples may be missing there",
    NoCallChain "no_call_chain" true
        "a sample whose deferred call chain is missing from the file: its outer frames, of user code, are unknown",
    OddLineNumber "odd_line_number" false
        "a line number that is negative or beyond R's integers, read as 0 (unknown); a column that ends in `_exact` has the number",
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub kind: ProblemKind,
    pub position: Position,
    /// The start of the text that it concerns.
    pub text: String,
}

#[derive(Debug, Default, Clone)]
pub struct Problems {
    kept: Vec<Problem>,
    counts: Vec<(ProblemKind, u64)>,
}

impl Problems {
    pub fn note(&mut self, kind: ProblemKind, position: Position, text: &[u8]) {
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
            // If memory runs out, the problem is only counted. Reading will fail at the next
            // allocation.
            let _ = self.keep(kind, position, text);
        }
    }

    fn keep(&mut self, kind: ProblemKind, position: Position, text: &[u8]) -> Result<()> {
        let text = quote(text)?;
        self.kept.try_push(Problem {
            kind,
            position,
            text,
        })
    }

    /// Decodes a name, and records irregularities.
    pub fn decode<'b>(&mut self, bytes: &'b [u8], position: Position) -> Result<Cow<'b, str>> {
        let decoded = text::decode(bytes)?;
        let kind = match decoded.was {
            Was::Utf8 => return Ok(decoded.text),
            Was::Latin1 => ProblemKind::NotUtf8,
            Was::CutUtf8 => ProblemKind::CutName,
            Was::Nul => ProblemKind::NulByte,
        };
        self.note(kind, position, bytes);
        Ok(decoded.text)
    }

    /// Records zero bytes after gzip data, which end at `position`.
    pub fn padding(&mut self, zeros: u64, position: Position) {
        if zeros > 0 {
            let text = message!("{zeros} zero bytes");
            self.note(ProblemKind::PaddedGzip, position, text.as_bytes());
        }
    }

    /// Records a number that a double only approximates.
    pub fn nearly(&mut self, value: i64, at: usize) {
        let position = Position::Byte(at as u64);
        let text = message!("{value}");
        self.note(ProblemKind::ImpreciseValue, position, text.as_bytes());
    }

    /// The number of a line, or of a column in it, recorded if R's integers cannot
    /// represent it.
    pub fn line_number(&mut self, line: i64, at: usize) -> i64 {
        if i64::from(integer_for_r(line)) != line {
            let position = Position::Byte(at as u64);
            let text = message!("{line}");
            self.note(ProblemKind::OddLineNumber, position, text.as_bytes());
        }
        line
    }

    /// A time or a duration in nanoseconds, recorded if it is out of range.
    pub fn time(&mut self, nanoseconds: u64, at: usize) -> Option<i64> {
        let time = i64::try_from(nanoseconds).ok();
        if time.is_none() {
            let position = Position::Byte(at as u64);
            let text = message!("{nanoseconds}");
            self.note(ProblemKind::OddTime, position, text.as_bytes());
        }
        time
    }

    /// Replaces byte offsets by fields, from the problem `first` on. `fields` converts offsets
    /// in ascending order to fields.
    pub fn offsets_to_fields(
        &mut self,
        first: usize,
        fields: impl Fn(&[u64]) -> Result<Vec<String>>,
    ) -> Result<()> {
        let mut moved: Vec<(u64, &mut Position)> = Vec::new();
        for problem in self.kept.iter_mut().skip(first) {
            if let Position::Byte(byte) = problem.position {
                moved.try_push((byte, &mut problem.position))?;
            }
        }
        sort_by_key(&mut moved, |(byte, _)| *byte)?;
        let bytes = moved.iter().map(|(byte, _)| *byte).try_vec()?;
        for ((_, position), field) in moved.into_iter().zip(fields(&bytes)?) {
            *position = Position::Field(field);
        }
        Ok(())
    }

    /// The number of problems of each kind, in the order of first occurrence.
    pub fn counts(&self) -> &[(ProblemKind, u64)] {
        &self.counts
    }

    /// The first thousand of each kind, in the order of the input.
    pub fn kept(&self) -> &[Problem] {
        &self.kept
    }

    /// The problems as rows of their table; `source` is the row of the first source of the
    /// input, if the table has that column.
    pub fn rows(&self, source: Option<Option<usize>>) -> Result<Vec<ProblemRow>> {
        let row = |problem: &Problem| {
            let (line, byte) = match problem.position {
                Position::Line(line) => (Some(line as f64), None),
                Position::Byte(byte) => (None, Some(byte as f64)),
                // A field of JSON has neither a line nor a byte offset.
                Position::Sample(_) | Position::Field(_) => (None, None),
            };
            let text = match &problem.position {
                Position::Field(path) if problem.text.is_empty() => owned(path)?,
                Position::Field(path) => written(format_args!("{path}: {}", problem.text))?,
                _ => owned(&problem.text)?,
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
        self.kept.iter().map(row).try_vec_of()
    }

    pub fn has(&self, kind: ProblemKind) -> bool {
        self.counts.iter().any(|(k, _)| *k == kind)
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// The start of a text, on one line and printable.
fn quote(text: &[u8]) -> Result<String> {
    let cut = &text[..text.len().min(QUOTED)];
    let mut out = String::new();
    for chunk in cut.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                out.try_write(format_args!("{}", c.escape_default()))?;
            } else {
                out.try_push_char(c)?;
            }
        }
        if !chunk.invalid().is_empty() {
            out.try_push_char(char::REPLACEMENT_CHARACTER)?;
        }
    }
    if text.len() > QUOTED {
        out.try_push_char('…')?;
    }
    Ok(out)
}
