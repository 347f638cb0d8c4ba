//! Converts lines to samples: the start of a line determines its kind.
//!
//! [`LineReader::take_line`] gets every line in turn; most end in one look-up of a known stack. A sample whose line
//! ends inside a name waits for the next line ([`pending`](super::pending)). Truncated lines are processed in
//! [`ends`](super::ends).

use super::grammar::{self, Header};
use super::line_reader::{Block, LineReader, Pending};
use super::parse::{End, Parsed};
use crate::error::Result;
use crate::formats::lines::Reader;
use crate::formats::problems::ProblemKind;
use crate::limits::memory::TryGrow;
use crate::model::SourceFile;

/// R <= 4.2 adds no item to a line that has reached the first length, and no line is longer than the second one.
const LONG_LINE: std::ops::Range<usize> = 10_000..10_500;

impl LineReader {
    /// One line without its line feed.
    #[inline]
    pub fn take_line(&mut self, line: &[u8]) -> Result<()> {
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
            return self.first_line(line, after_hole);
        };
        if self.pending.is_some() && self.continues(line, block)? {
            return Ok(());
        }
        self.line_of(block, line)
    }

    /// Removes a CR at the end of a line. Samples end in a blank, and headers in a known pattern, so a CR
    /// after these was added by an editor or a transfer. A CR inside a name that continues in the next
    /// line is kept.
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

    /// Processes a line before the first block: a header, or a line that shows that the header is
    /// missing.
    fn first_line(&mut self, line: &[u8], after_hole: bool) -> Result<()> {
        if let Some(header) = grammar::header(line) {
            return self.start_block(header);
        }
        if line.is_empty() {
            // A protocol buffer message may start with the byte of a line feed.
            if self.look.is_other_than(self.format) {
                return Err(self.foreign());
            }
            self.note(ProblemKind::BlankLine, b"");
            return Ok(());
        }
        let prefix = grammar::memory_prefix(line);
        let text = &line[prefix.map_or(0, |(_, at)| at)..];
        let sample = grammar::starts_with_item(text, true) || (prefix.is_some() && text.is_empty());
        let file = grammar::file_line(line).is_some();
        let unknown = !self.look.is_other_than(self.format);
        let torn = unknown && text.ends_with(b"\" ") && !text.contains(&0);
        if !(sample || file || torn) {
            if after_hole && unknown {
                self.note(ProblemKind::StrayText, line);
                return Ok(());
            }
            return Err(self.foreign());
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

    /// Processes a line inside a block when no sample is pending.
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
                start.try_extend(text)?;
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

    /// Processes headers, `#File` lines, and unexpected lines.
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
            .try_push(SourceFile {
                number,
                filename,
                before,
            })
    }
}
