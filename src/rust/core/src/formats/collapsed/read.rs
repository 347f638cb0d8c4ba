//! Reads collapsed stacks, and describes the format for detection.
//!
//! A stack that occurred before is looked up by its text. In a new stack, the outer frames that it has in common with
//! the previous stack are not parsed again.

use super::grammar::{Count, FRAME_TYPES, INLINED, is_comment, split};
use crate::collections::next_row;
use crate::error::Result;
use crate::formats::bytes::text_lines;
use crate::formats::format::Opened;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::text_cache::TextCache;
use crate::formats::text_file::{self, File, Grammar};
use crate::limits::cancel::Stop;
use crate::limits::memory::TryGrow;
use crate::model::known_types::SAMPLES;
use crate::model::{Location, LocationId, Profile, StackId, Values};
use memchr::{memchr, memrchr};

pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let reader = Collapsed {
        has_two: None,
        stacks: TextCache::default(),
        items: TextCache::default(),
        text: Vec::new(),
        frames: Vec::new(),
        stack: Vec::new(),
        before: Values::absent("samples_before", "count", 0)?,
        counts: Values::absent_known(&SAMPLES, 0)?,
    };
    text_file::read(opened, reader, stop)
}

fn comment_text(line: &[u8]) -> &[u8] {
    let is_mark = |byte: &u8| matches!(byte, b'#' | b'/');
    let start = line.iter().take_while(|byte| is_mark(byte)).count();
    line[start..].trim_ascii()
}

/// Whether all complete lines with a count end in two counts.
fn have_two(start: &[u8]) -> bool {
    let end = memrchr(b'\n', start).unwrap_or(start.len());
    let mut lines = text_lines(&start[..end]).filter(|line| !is_comment(line));
    lines.all(|line| split(line).is_none_or(|(rest, _)| split(rest).is_some()))
}

struct Collapsed {
    /// Whether lines have two counts; `None` until it is known.
    has_two: Option<bool>,
    /// The stack of a text, and the number of its frames.
    stacks: TextCache<(StackId, u32)>,
    items: TextCache<LocationId>,
    /// The text that was parsed last, and for each of its frames the end of its name.
    text: Vec<u8>,
    frames: Vec<(usize, LocationId)>,
    /// The locations of these frames, innermost first.
    stack: Vec<LocationId>,
    before: Values,
    counts: Values,
}

impl Grammar for Collapsed {
    const OTHERWISE: &'static str = "its first line does not end in a blank and a count";

    fn is_comment(line: &[u8]) -> bool {
        is_comment(line)
    }

    fn line(&mut self, line: &[u8], rest: &[u8], file: &mut File) -> Result<()> {
        if line.is_empty() {
            // Austin writes blank lines around its comments.
            if !file.has_comments {
                file.note(ProblemKind::BlankLine, b"");
            }
            return Ok(());
        }
        if is_comment(line) {
            return file.add_comment(comment_text(line));
        }
        if self.has_two.is_none() && split(line).is_some() {
            let two = have_two(rest);
            self.has_two = Some(two);
            if two {
                file.note(ProblemKind::TwoCounts, line);
            }
        }
        if !self.sample(line, file)? && file.is_known {
            file.note(ProblemKind::StrayText, line);
        }
        Ok(())
    }

    fn cut_line(&mut self, line: &[u8], file: &mut File) -> Result<()> {
        if is_comment(line) {
            return file.add_comment(comment_text(line));
        }
        if self.has_two.is_none() {
            self.has_two = Some(have_two(line));
        }
        let kind = if self.sample(line, file)? {
            ProblemKind::NoFinalLineFeed
        } else {
            ProblemKind::CutLine
        };
        file.note(kind, line);
        Ok(())
    }

    fn gap(&mut self, _: &mut File) -> Result<()> {
        Ok(())
    }

    fn finish(self, file: &mut File) -> Result<()> {
        if self.has_two == Some(true) {
            file.add_values(self.before)?;
        }
        file.add_values(self.counts)
    }
}

impl Collapsed {
    /// Adds the sample of a line; `false` if it is not one.
    fn sample(&mut self, line: &[u8], file: &mut File) -> Result<bool> {
        let Some((mut text, count)) = split(line) else {
            return Ok(false);
        };
        let row = file.profile.samples.len();
        if self.has_two == Some(true) {
            if let Some((rest, before)) = split(text) {
                text = rest;
                self.before.column.try_fill(row, f64::NAN)?;
                push(&mut self.before, before, file)?;
            }
        }
        let (stack, frames) = match self.stacks.get(text) {
            Some(known) => known,
            None => self.learn(text, file)?,
        };
        file.add_sample(stack, frames as usize)?;
        file.is_known = true;
        push(&mut self.counts, count, file)?;
        Ok(true)
    }

    /// Parses a text that did not occur before.
    fn learn(&mut self, text: &[u8], file: &mut File) -> Result<(StackId, u32)> {
        let both = text.iter().zip(&self.text);
        let common = both.take_while(|(one, other)| one == other).count();
        // The part that both texts have in common may end inside a name.
        let kept = self.frames.partition_point(|&(end, _)| end < common);
        self.frames.truncate(kept);
        let mut start = self.frames.last().map_or(0, |&(end, _)| end + 1);
        while start <= text.len() && !text.is_empty() {
            let end = memchr(b';', &text[start..]).map_or(text.len(), |length| start + length);
            let item = &text[start..end];
            let location = self.items.get_or_read(item, || new_frame(item, file))?;
            self.frames.try_push((end, location))?;
            start = end + 1;
        }
        self.text.clear();
        self.text.try_extend(text)?;
        self.stack.clear();
        let innermost_first = self.frames.iter().rev().map(|&(_, location)| location);
        self.stack.try_extend_from(innermost_first)?;
        let known = (
            file.profile.stacks.intern(&self.stack)?,
            next_row(self.stack.len(), "frames")?,
        );
        self.stacks.insert(text, known)?;
        Ok(known)
    }
}

fn push(values: &mut Values, count: Count, file: &mut File) -> Result<()> {
    match count {
        Count::Whole(count) => file.push_value(values, count),
        Count::Decimal(count) => values.column.try_push(count),
    }
}

fn new_frame(item: &[u8], file: &mut File) -> Result<LocationId> {
    let mut name = item;
    let mut inlined = false;
    let mut frame_type = None;
    let mut suffix = |text: &str| match name.strip_suffix(text.as_bytes()) {
        Some(rest) if !rest.is_empty() => {
            name = rest;
            true
        }
        _ => false,
    };
    if suffix(INLINED) {
        inlined = true;
    } else if let Some((_, type_)) = FRAME_TYPES.iter().find(|(text, _)| suffix(text)) {
        frame_type = file.profile.frame_type(type_)?;
    }
    let name = file.name(name, b"")?;
    let none = file.profile.strings.intern("")?;
    let function = file.profile.named_function(&name, none)?;
    file.profile.locations.intern(Location {
        function: Some(function),
        inlined,
        frame_type,
        ..Location::default()
    })
}
