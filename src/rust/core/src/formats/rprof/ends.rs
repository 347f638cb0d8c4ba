//! Reads truncated lines: at the end of the file, and next to runs of NUL bytes.
//!
//! A killed process leaves an incomplete last line. A system crash, or truncating a file while it
//! is written, leaves runs of NUL bytes, here called holes. The incomplete lines before and
//! after a hole are read as far as possible, and not joined.

use super::grammar::{self, Header};
use super::line_reader::LineReader;
use crate::analysis::source_facts::durations;
use crate::error::{Error, Foreign, Result};
use crate::formats::lines::Reader;
use crate::formats::problems::{ProblemKind, Problems};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::known_types::SAMPLES;
use crate::model::{Profile, Values, seconds};

impl LineReader {
    /// Completes the profile at the end of the input; `rest` contains the bytes after the last line
    /// feed.
    pub(super) fn end(mut self, rest: &[u8]) -> Result<(Profile, Problems)> {
        self.torn = ProblemKind::CutSample;
        if !rest.is_empty() && self.unended(rest)? {
            self.note(ProblemKind::NoFinalLineFeed, rest);
        }
        if let (Some(block), Some(pending)) = (self.block, self.pending.take()) {
            self.close(block, pending)?;
        }
        if self.block.is_none() {
            return Err(Error::Foreign(Foreign {
                input: self.origin.name,
                wanted: self.format.title,
                looks_like: None,
                remedy: "",
                found: if self.problems.has(ProblemKind::NulRun) {
                    message!("it contains only NUL bytes")
                } else if self.number == 0 {
                    message!("it is empty; `Rprof()` writes at least a header when it is stopped")
                } else {
                    message!("it contains only blank lines")
                },
            }));
        }
        let count = self.profile.samples.len();
        let mut counts = Values::absent_known(&SAMPLES, 0)?;
        counts.column.try_fill(count, 1.0)?;
        let values = &mut self.profile.values;
        values.try_push(counts)?;
        values.try_extend_from(self.memory.finish(count)?.into_iter())?;
        if let Some(written) = self.origin.written {
            date_sources(&mut self.profile, written)?;
        }
        Ok((self.profile, self.problems))
    }

    /// Processes a run of `count` NUL bytes, and `text`, the part of its line before it.
    pub(super) fn take_hole(&mut self, text: &[u8], count: u64) -> Result<()> {
        if !text.is_empty() {
            self.unended(text)?;
            // The text after the run is in the same line.
            self.number -= 1;
        } else if let (Some(block), Some(pending)) = (self.block, self.pending.take()) {
            self.close(block, pending)?;
        }
        self.note_hole(count);
        self.after_hole = true;
        Ok(())
    }

    /// Processes a line that is too long and therefore skipped; `start` contains its first bytes.
    pub(super) fn leave_out(&mut self, start: &[u8]) -> Result<()> {
        let Some(block) = self.block else {
            return Err(self.foreign());
        };
        if let Some(pending) = self.pending.take() {
            self.close(block, pending)?;
        }
        self.number += 1;
        self.note(ProblemKind::OverlongLine, start);
        Ok(())
    }

    /// Processes a line without a line feed, which may be complete, or truncated by the end of the
    /// process or a hole. Returns whether it is complete.
    fn unended(&mut self, line: &[u8]) -> Result<bool> {
        let at_end = self.torn == ProblemKind::CutSample;
        self.number += 1;
        let line = match self.number {
            1 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            _ => line,
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let header = grammar::header(line);
        if header.is_none() && line.len() > 6 && grammar::is_cut_header(line) {
            self.note(ProblemKind::CutHeader, line);
            // A run with an incomplete header contains no information. But a file that starts with
            // such a header is an Rprof file.
            return match self.block {
                Some(_) => Ok(false),
                None => self.start_block(Header::default()).map(|()| false),
            };
        }
        let memory = self.block.is_some_and(|block| block.header.memory);
        if memory && grammar::is_cut_memory_prefix(line) {
            self.note(self.torn, line);
            return Ok(false);
        }
        let is_file = grammar::file_line(line).is_some();
        if is_file && !at_end && self.block.is_some() {
            // Samples that follow may need it.
            self.note(ProblemKind::StrayText, line);
            return Ok(false);
        }
        let samples = self.profile.samples.len();
        self.number -= 1;
        self.take_line(line)?;
        let (Some(block), Some(pending)) = (self.block, self.pending.take()) else {
            if is_file {
                self.note(ProblemKind::CutFileLine, line);
            }
            let is_sample = self.profile.samples.len() > samples;
            return Ok(header.is_some() || is_sample && !self.problems.has(self.torn));
        };
        // A quote at the end may be inside a name. It ends the name if other lines were trimmed
        // too.
        let trimmed = line.ends_with(b"\"") && self.problems.has(ProblemKind::TrimmedLine);
        if pending.breaks.is_empty() && trimmed {
            self.close(block, pending)?;
            return Ok(false);
        }
        self.number = pending.number;
        self.push_part(block, &pending.text, pending.memory, self.torn)?;
        Ok(false)
    }
}

/// Sets the time stamps of sources. R does not record when a run began. The file was last written
/// at the end of the last run or later, and each run took at least the time of its samples: the time
/// stamp is the latest time at which it can have begun.
fn date_sources(profile: &mut Profile, written: f64) -> Result<()> {
    let durations = durations(profile)?;
    let mut time = written;
    for (source, duration) in profile.sources.iter_mut().zip(durations).rev() {
        time -= seconds(duration.unwrap_or(0));
        // Files from archives without times have times close to 1970.
        source.timestamp = (time > 0.0).then_some(time);
    }
    Ok(())
}
