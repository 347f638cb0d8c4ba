//! Reads text formats. A [`Grammar`] interprets the lines of one format, and a [`File`] contains the state that all
//! text formats share, such as the line number and the profile. For example, the grammar of collapsed stacks only
//! splits a line such as `main;fit;qr 12` into frames and a count.
//!
//! Byte order marks, lines that end in CR LF, holes (runs of NUL bytes) and empty files are handled here for all
//! formats.

use super::format::{Format, Look, Opened};
use super::lines::{self, LIMITS, Reader};
use super::problems::{ProblemKind, Problems};
use super::samples::add_sample;
use crate::error::{Error, Foreign, Position, Result};
use crate::io::input::Origin;
use crate::limits::budget::Budget;
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::{Profile, SampleType, Source, SourceId, SourceKind, StackId, ValueType, Values};
use std::borrow::Cow;

/// Interprets the lines of a format.
pub trait Grammar {
    /// Whether a file without any line is a profile without samples.
    const EMPTY_IS_VALID: bool = false;
    /// Describes a file of an unknown format, as in "its first line is not a sample".
    const OTHERWISE: &'static str;

    /// Whether a line is a comment, which does not show whether the file is of the format.
    fn is_comment(_line: &[u8]) -> bool {
        false
    }
    /// Interprets a line without its line feed; `rest` is the piece from the start of this line to its end. Until
    /// [`File::is_known`] is set, this decides whether the file is of the format.
    fn line(&mut self, line: &[u8], rest: &[u8], file: &mut File) -> Result<()>;
    /// Called with the rest of the piece after a line, see [`Reader::lines()`]. A grammar that processes lines here
    /// counts them with [`File::count_lines()`].
    fn lines(&mut self, _text: &[u8], _file: &mut File) -> Result<usize> {
        Ok(0)
    }
    /// Interprets a line that may be truncated, because the end of the file or a hole follows instead of a line feed.
    fn cut_line(&mut self, line: &[u8], file: &mut File) -> Result<()>;
    /// Called where lines are missing: at a hole, at the end of the file, or after a line that was omitted. The next
    /// line does not continue the previous one.
    fn gap(&mut self, file: &mut File) -> Result<()>;
    /// Completes the profile.
    fn finish(self, file: &mut File) -> Result<()>;
}

/// A file while it is read.
pub struct File {
    pub profile: Profile,
    pub problems: Problems,
    pub source: SourceId,
    /// Whether the file looks like this format, or content was read that only this format has.
    pub is_known: bool,
    pub has_comments: bool,
    /// The number of the current line, from 1.
    number: u64,
    carriage_returns: bool,
    origin: Origin,
    format: &'static Format,
    look: Look,
    budget: Budget,
}

impl File {
    pub fn note(&mut self, kind: ProblemKind, text: &[u8]) {
        self.problems.note(kind, self.position(), text);
    }

    fn position(&self) -> Position {
        Position::Line(self.number)
    }

    /// Counts lines that were processed at once.
    pub fn count_lines(&mut self, lines: usize) {
        self.number += lines as u64;
    }

    /// Decodes a name, and records irregularities.
    pub fn decode<'b>(&mut self, bytes: &'b [u8]) -> Result<Cow<'b, str>> {
        let position = self.position();
        self.problems.decode(bytes, position)
    }

    /// Decodes the name of a function. A function without a name is anonymous; `empty` is the text for it in the file.
    pub fn name<'b>(&mut self, bytes: &'b [u8], empty: &[u8]) -> Result<Cow<'b, str>> {
        let name = self.decode(bytes)?;
        if !name.is_empty() {
            return Ok(name);
        }
        self.note(ProblemKind::EmptyName, empty);
        Ok(Cow::Borrowed("<Anonymous>"))
    }

    /// Keeps the text of a comment.
    pub fn add_comment(&mut self, text: &[u8]) -> Result<()> {
        self.has_comments = true;
        self.take_memory(text.len())?;
        let text = self.decode(text)?;
        let comment = self.profile.strings.intern(&text)?;
        self.source().comments.try_push(comment)
    }

    /// Appends a sample without values. `frames` is the length of its stack.
    #[inline]
    pub fn add_sample(&mut self, stack: StackId, frames: usize) -> Result<()> {
        let (profile, budget, name) = (&mut self.profile, &mut self.budget, &self.origin.name);
        add_sample(profile, budget, name, self.source, stack, frames)
    }

    /// Takes memory from the budget for data that are not samples.
    pub fn take_memory(&mut self, bytes: usize) -> Result<()> {
        self.budget.take(bytes as u64, &self.origin.name)
    }

    /// Checks that enough memory is left for a sample with this many frames.
    pub fn check_frames(&self, frames: usize) -> Result<()> {
        self.budget.check(frames, &self.origin.name)
    }

    /// Appends a value, and records whether the column holds it rounded.
    pub fn push_value(&mut self, values: &mut Values, value: i64) -> Result<()> {
        if values.push(value)? {
            let text = message!("{value}");
            self.note(ProblemKind::ImpreciseValue, text.as_bytes());
        }
        Ok(())
    }

    /// Adds a column of values as a type of the source. It gets as many rows as there are samples.
    pub fn add_values(&mut self, mut values: Values) -> Result<()> {
        let samples = self.profile.samples.len();
        values.column.try_fill(samples, f64::NAN)?;
        let ValueType { name, unit } = &values.type_;
        let type_ = SampleType {
            type_: ValueType {
                name: owned(name)?,
                unit: owned(unit)?,
            },
            recorded: owned(name)?,
        };
        self.source().types.try_push(type_)?;
        self.profile.values.try_push(values)
    }

    pub fn source(&mut self) -> &mut Source {
        &mut self.profile.sources[self.source.row()]
    }

    /// The error for a feature that is not supported.
    pub fn unsupported(&self, what: &str) -> Error {
        Error::Unsupported(message!("{}: {what}", self.origin.name))
    }
}

struct TextFile<G> {
    grammar: G,
    file: File,
}

/// Reads a file by its grammar.
pub fn read<G: Grammar>(opened: Opened, grammar: G, stop: Stop) -> Result<(Profile, Problems)> {
    let mut profile = Profile::default();
    let source = profile.add_source(Source {
        kind: SourceKind::named(opened.format.name),
        uri: opened.origin.own_uri()?,
        ..Source::default()
    })?;
    let file = File {
        profile,
        problems: Problems::default(),
        source,
        is_known: opened.look.format() == Some(opened.format),
        has_comments: false,
        number: 0,
        carriage_returns: false,
        budget: opened.origin.budget(),
        origin: opened.origin,
        format: opened.format,
        look: opened.look,
    };
    lines::read(opened.content, TextFile { grammar, file }, &LIMITS, stop)
}

impl<G: Grammar> TextFile<G> {
    fn foreign(&self) -> Error {
        let File {
            origin,
            format,
            look,
            ..
        } = &self.file;
        look.error(&origin.name, format, G::OTHERWISE)
    }

    /// The text of a line without the byte order mark or carriage return that editors and transfers add to it.
    fn plain<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        let mut line = line;
        if self.file.number == 1 {
            if let Some(text) = line.strip_prefix(b"\xef\xbb\xbf") {
                self.file.note(ProblemKind::ByteOrderMark, b"");
                line = text;
            }
        }
        if let Some(text) = line.strip_suffix(b"\r") {
            if !std::mem::replace(&mut self.file.carriage_returns, true) {
                self.file.note(ProblemKind::CarriageReturns, b"");
            }
            line = text;
        }
        line
    }

    /// A line that the end of the file or a hole may have truncated.
    fn cut(&mut self, line: &[u8]) -> Result<()> {
        self.file.number += 1;
        let text = self.plain(line);
        let is_other = matches!(self.file.look, Look::Format(found) if found != self.file.format);
        if is_other && !self.file.is_known {
            return Err(self.foreign());
        }
        self.grammar.cut_line(text, &mut self.file)
    }
}

impl<G: Grammar> Reader for TextFile<G> {
    fn number(&self) -> u64 {
        self.file.number
    }

    fn problems(&mut self) -> &mut Problems {
        &mut self.file.problems
    }

    fn input(&self) -> &str {
        &self.file.origin.name
    }

    #[inline]
    fn line(&mut self, line: &[u8], rest: &[u8]) -> Result<()> {
        self.file.number += 1;
        let text = self.plain(line);
        self.grammar.line(text, rest, &mut self.file)?;
        if self.file.is_known || text.is_empty() || G::is_comment(text) {
            Ok(())
        } else {
            Err(self.foreign())
        }
    }

    #[inline]
    fn lines(&mut self, text: &[u8]) -> Result<usize> {
        self.grammar.lines(text, &mut self.file)
    }

    fn hole(&mut self, text: &[u8], count: u64) -> Result<()> {
        if !text.is_empty() {
            self.cut(text)?;
            // The text after the run is in the same line.
            self.file.number -= 1;
        }
        self.grammar.gap(&mut self.file)?;
        self.note_hole(count);
        Ok(())
    }

    fn overlong_line(&mut self, start: &[u8]) -> Result<()> {
        if !self.file.is_known {
            return Err(self.foreign());
        }
        self.file.number += 1;
        self.note(ProblemKind::OverlongLine, start);
        self.grammar.gap(&mut self.file)
    }

    fn finish(mut self, rest: &[u8]) -> Result<(Profile, Problems)> {
        if !rest.is_empty() {
            self.cut(rest)?;
        }
        self.grammar.gap(&mut self.file)?;
        let is_empty = self.file.number == 0 && self.file.problems.is_empty();
        let is_valid = self.file.is_known || G::EMPTY_IS_VALID && is_empty;
        if !is_valid {
            if !rest.is_empty() {
                return Err(self.foreign());
            }
            let found = if self.file.problems.has(ProblemKind::NulRun) {
                "it contains only NUL bytes"
            } else if self.file.number == 0 {
                "it is empty"
            } else if self.file.has_comments {
                "it contains only comments"
            } else {
                "it contains only blank lines"
            };
            return Err(Error::Foreign(Foreign {
                input: self.file.origin.name,
                wanted: self.file.format.title,
                looks_like: None,
                remedy: "",
                found: message!("{found}"),
            }));
        }
        self.grammar.finish(&mut self.file)?;
        Ok((self.file.profile, self.file.problems))
    }
}
