//! The state of the reader between two lines, and the functions that add samples to the profile.
//!
//! [`lines`](super::lines), [`pending`](super::pending) and [`ends`](super::ends) interpret the lines,
//! in further methods of [`LineReader`].

use super::grammar::Header;
use super::memory::MemoryColumns;
use super::parse::{Context, Stack, StackParser};
use crate::error::{Error, Result};
use crate::formats::format::{Format, Look};
use crate::formats::lines::Reader;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::samples::add_sample;
use crate::io::input::Origin;
use crate::limits::budget::Budget;
use crate::limits::memory::TryGrow;
use crate::model::{Profile, Source, SourceId, Toplevel};

/// Describes content of an unknown format.
pub const OTHERWISE: &str = "its first line is neither an `Rprof()` header nor a sample";

pub struct LineReader {
    pub(super) origin: Origin,
    pub(super) format: &'static Format,
    pub(super) look: Look,
    pub(super) profile: Profile,
    budget: Budget,
    pub(super) problems: Problems,
    pub(super) memory: MemoryColumns,
    pub(super) parser: StackParser,
    pub(super) block: Option<Block>,
    pub(super) pending: Option<Pending>,
    /// Whether lines end in CR LF.
    pub(super) carriage_returns: bool,
    /// Whether the current line follows a hole, so that its start may be missing.
    pub(super) after_hole: bool,
    /// The kind of problem to report for a truncated sample.
    pub(super) torn: ProblemKind,
    /// The number of the current line, from 1.
    pub(super) number: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub source: SourceId,
    pub header: Header,
}

/// A sample whose line ends inside a name: the next lines may contain the rest.
pub struct Pending {
    pub number: u64,
    pub memory: Option<[u64; 4]>,
    pub text: Vec<u8>,
    /// The offsets in `text` at which further lines start.
    pub breaks: Vec<usize>,
}

impl LineReader {
    pub fn new(origin: Origin, format: &'static Format, look: Look) -> LineReader {
        LineReader {
            format,
            look,
            budget: origin.budget(),
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

    pub fn foreign(&self) -> Error {
        self.look.error(&self.origin.name, self.format, OTHERWISE)
    }

    pub(super) fn start_block(&mut self, header: Header) -> Result<()> {
        let source = self.profile.add_source(Source {
            uri: self.origin.own_uri()?,
            ..header.source()?
        })?;
        self.parser.start_block(header.line);
        self.memory.start_block();
        self.block = Some(Block { source, header });
        Ok(())
    }

    /// Adds a truncated sample with the frames that can be parsed.
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
        let frames = stack.frames as usize;
        let name = &self.origin.name;
        add_sample(
            &mut self.profile,
            &mut self.budget,
            name,
            block.source,
            stack.id,
            frames,
        )?;
        let samples = &mut self.profile.samples;
        if let Some((filename, line)) = stack.toplevel {
            samples.toplevel.try_push(Toplevel {
                sample: row,
                filename,
                line,
            })?;
        }
        match memory {
            Some(raw) => self.memory.record(row, raw),
            None => Ok(()),
        }
    }
}
