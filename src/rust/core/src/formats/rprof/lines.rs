//! From lines to samples.
//!
//! [`LineReader::line`] gets every line of a file in turn; most end in one
//! look-up there. A sample whose line ends inside a name waits ([`Pending`]). Lines that
//! break off are for [`ends`](super::ends).

use super::foreign;
use super::grammar::{self, Header};
use super::memory::MemoryColumns;
use super::parse::{Context, End, Parsed, Stack, StackParser};
use super::pending::Pending;
use crate::error::{Error, Place, Result};
use crate::formats::format::{Format, Recognise};
use crate::formats::problems::{ProblemKind, Problems};
use crate::io::input::Origin;
use crate::limits::budget::Budget;
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{
    Period, Profile, RprofOptions, Source, SourceFile, SourceId, SourceKind, Toplevel,
};

/// R <= 4.2 adds no item to a line that has reached the first, and none makes it
/// longer than the second.
const LONG_LINE: std::ops::Range<usize> = 10_000..10_500;

pub struct LineReader {
    pub(super) origin: Origin,
    pub(super) format: &'static Format,
    recognise: Recognise,
    pub(super) profile: Profile,
    budget: Budget,
    pub(super) problems: Problems,
    pub(super) memory: MemoryColumns,
    pub(super) parser: StackParser,
    pub(super) block: Option<Block>,
    pub(super) pending: Option<Pending>,
    /// Lines end in CR LF.
    carriage_returns: bool,
    /// The line at hand stands behind a hole, and may lack its start.
    pub(super) after_hole: bool,
    /// What a sample that breaks off is.
    pub(super) torn: ProblemKind,
    /// The number of the line at hand, from 1.
    pub(super) number: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub source: SourceId,
    pub header: Header,
}

impl LineReader {
    pub fn new(origin: Origin, format: &'static Format, recognise: Recognise) -> LineReader {
        LineReader {
            format,
            recognise,
            budget: Budget::new(&origin),
            origin,
            profile: Profile::default(),
            problems: Problems::default(),
            memory: MemoryColumns::default(),
            parser: StackParser::default(),
            block: None,
            pending: None,
            carriage_returns: false,
            after_hole: false,
            torn: ProblemKind::TornSample,
            number: 0,
        }
    }

    /// Whether no line has come yet.
    pub fn is_at_start(&self) -> bool {
        self.number == 0
    }

    pub fn note(&mut self, kind: ProblemKind, text: &[u8]) {
        self.problems.note(kind, Place::Line(self.number), text);
    }

    pub(super) fn context(&mut self) -> (&mut StackParser, Context<'_>) {
        (
            &mut self.parser,
            Context {
                profile: &mut self.profile,
                problems: &mut self.problems,
                line: self.number,
            },
        )
    }

    pub fn foreign(&self, start: &[u8]) -> Error {
        Error::Foreign(foreign::error(
            &self.origin.name,
            start,
            self.format,
            self.recognise,
        ))
    }

    pub fn damaged(&self, error: &std::io::Error) -> Error {
        Error::damaged(&self.origin.name, Place::Line(self.number + 1), error)
    }

    /// One line without its line feed; `rest` starts with it and goes on to the
    /// end of the chunk.
    pub fn line(&mut self, line: &[u8], rest: &[u8]) -> Result<()> {
        self.number += 1;
        let mut line = line;
        if self.number == 1 {
            if let Some(text) = line.strip_prefix(b"\xef\xbb\xbf") {
                self.note(ProblemKind::ByteOrderMark, b"");
                line = text;
            }
        }
        let line = self.without_carriage_return(line);
        let after_hole = std::mem::take(&mut self.after_hole);
        let Some(block) = self.block else {
            return self.first_line(line, rest, after_hole);
        };
        if self.pending.is_some() && self.continues(line, block)? {
            return Ok(());
        }
        self.line_of(block, line)
    }

    /// R's lines end in a blank or, for headers, in what the pattern knows; a CR
    /// there comes from an editor or a transfer. Inside a name that goes on in
    /// the next line it is kept.
    fn without_carriage_return<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        let Some(text) = line.strip_suffix(b"\r") else {
            return line;
        };
        if !self.carriage_returns {
            let header = grammar::header(text).is_some();
            if !header && !text.is_empty() && !text.ends_with(b" ") {
                return line;
            }
            self.note(ProblemKind::CarriageReturns, b"");
            self.carriage_returns = true;
        }
        text
    }

    /// A line before the first block: a header, or a reason to do without.
    fn first_line(&mut self, line: &[u8], rest: &[u8], after_hole: bool) -> Result<()> {
        if let Some(header) = grammar::header(line) {
            return self.start_block(header);
        }
        if line.is_empty() {
            // A protocol buffer message may start with the byte of a line feed.
            if foreign::look(rest, self.format, self.recognise).is_some() {
                return Err(self.foreign(rest));
            }
            self.note(ProblemKind::BlankLine, b"");
            return Ok(());
        }
        let prefix = grammar::memory_prefix(line);
        let text = &line[prefix.map_or(0, |(_, at)| at)..];
        let sample = grammar::starts_with_item(text, true) || (prefix.is_some() && text.is_empty());
        let file = grammar::file_line(line).is_some();
        let unknown = foreign::look(rest, self.format, self.recognise).is_none();
        let torn = unknown && text.ends_with(b"\" ") && !text.contains(&0);
        if !(sample || file || torn) {
            if after_hole && unknown {
                self.note(ProblemKind::StrayText, line);
                return Ok(());
            }
            return Err(self.foreign(rest));
        }
        self.note(ProblemKind::NoHeader, line);
        self.start_block(Header {
            memory: prefix.is_some(),
            gc: false,
            line: true,
            interval: None,
        })?;
        match self.block {
            Some(block) => self.line_of(block, line),
            None => Ok(()),
        }
    }

    pub(super) fn start_block(&mut self, header: Header) -> Result<()> {
        let period = header.interval.map(Period::of_rprof).transpose()?;
        let source = self.profile.add_source(Source {
            kind: SourceKind::RPROF,
            uri: self.origin.own_uri()?,
            period,
            options: Some(RprofOptions {
                memory: header.memory,
                gc: header.gc,
                line: header.line,
            }),
            ..Source::default()
        })?;
        self.parser.start_block(header.line);
        self.memory.start_block();
        self.block = Some(Block { source, header });
        Ok(())
    }

    /// A line inside a block, with no sample pending.
    #[inline]
    fn line_of(&mut self, block: Block, line: &[u8]) -> Result<()> {
        match line.first() {
            Some(b'"' | b':' | b'0'..=b'9') => self.sample_line(block, line),
            _ => self.other_line(block, line),
        }
    }

    #[inline]
    fn sample_line(&mut self, block: Block, line: &[u8]) -> Result<()> {
        if LONG_LINE.contains(&line.len()) {
            self.note(ProblemKind::LongSample, line);
        }
        let mut memory = None;
        let mut text = line;
        if block.header.memory {
            match grammar::memory_prefix(line) {
                Some((numbers, at)) => {
                    memory = Some(numbers);
                    text = &line[at..];
                }
                None => self.note(ProblemKind::NoMemory, line),
            }
        }
        if let Some(stack) = self.parser.known(text) {
            return self.push(block, stack, memory);
        }
        let (parser, mut context) = self.context();
        match parser.learn(text, &mut context)? {
            Parsed::Whole(stack) => self.push(block, stack, memory),
            Parsed::Broken(End::OpenName) => {
                let mut start = Vec::new();
                start.try_extend(text, "a line")?;
                self.pending = Some(Pending {
                    number: self.number,
                    memory,
                    text: start,
                    breaks: Vec::new(),
                });
                Ok(())
            }
            Parsed::Broken(_) => self.push_part(block, text, memory, self.torn),
        }
    }

    /// Headers, `#File` lines, and what should not be there.
    fn other_line(&mut self, block: Block, line: &[u8]) -> Result<()> {
        if let Some(header) = grammar::header(line) {
            return self.start_block(header);
        }
        if line.is_empty() {
            self.note(ProblemKind::BlankLine, b"");
            return Ok(());
        }
        if block.header.line {
            if let Some((number, path)) = grammar::file_line(line) {
                return self.file(block, number, path);
            }
        }
        self.note(ProblemKind::StrayText, line);
        Ok(())
    }

    fn file(&mut self, block: Block, number: u32, path: &[u8]) -> Result<()> {
        let before = self.profile.samples.len();
        let (parser, mut context) = self.context();
        let path = context.decode(path)?;
        let filename = context.profile.strings.intern(&path)?;
        parser.define_file(number, filename, &mut context)?;
        self.profile.sources[block.source.0 as usize]
            .files
            .try_push(
                SourceFile {
                    number,
                    filename,
                    before,
                },
                "the list of files",
            )
    }

    /// Keeps the frames before the place where the text breaks off.
    pub(super) fn push_part(
        &mut self,
        block: Block,
        text: &[u8],
        memory: Option<[u64; 4]>,
        kind: ProblemKind,
    ) -> Result<()> {
        let (parser, mut context) = self.context();
        let stack = parser.part(text, &mut context)?;
        if self.profile.stacks.get(stack.id).is_empty() && memory.is_none() {
            let kind = match kind {
                ProblemKind::CutSample => kind,
                _ => ProblemKind::StrayText,
            };
            self.note(kind, text);
            return Ok(());
        }
        self.note(kind, text);
        self.push(block, stack, memory)
    }

    #[inline]
    pub(super) fn push(
        &mut self,
        block: Block,
        stack: Stack,
        memory: Option<[u64; 4]>,
    ) -> Result<()> {
        let row = self.profile.samples.len();
        if row >= i32::MAX as usize {
            return Err(Error::Unsupported(message!(
                "{}: more than {} samples, which R cannot number.",
                self.origin.name,
                i32::MAX
            )));
        }
        let frames = self.profile.stacks.get(stack.id).len();
        self.budget.samples(1, frames, &self.origin.name)?;
        let samples = &mut self.profile.samples;
        samples.source.try_push(block.source, "samples")?;
        samples.stack.try_push(stack.id, "samples")?;
        if let Some((filename, line)) = stack.toplevel {
            samples.toplevel.try_push(
                Toplevel {
                    sample: row,
                    filename,
                    line,
                },
                "samples",
            )?;
        }
        match memory {
            Some(raw) => self.memory.record(row, raw),
            None => Ok(()),
        }
    }
}
