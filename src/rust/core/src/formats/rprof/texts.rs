//! Generates the text of stacks for an Rprof file.
//!
//! The format has no escapes: a name is written unchanged, even with quotes and line feeds, if it
//! will be read as the same name. Other names are changed, and counted as a loss.

use super::grammar::{self, Header};
use super::line_reader::LineReader;
use crate::analysis::frame_names::FrameNames;
use crate::error::Result;
use crate::formats::format::{Format, Look};
use crate::io::input::Origin;
use crate::limits::memory::{TryAdd, TryGrow, TryPut, copied};
use crate::model::{LocationId, Profile, Source, SourceFile, StackId, StringId};
use crate::text::push_number;
use std::collections::{HashMap, HashSet};

/// The text after a name.
const ITEM_END: &[u8] = b"\" ";

/// The text of each distinct stack. It is generated again only if the meaning of file numbers has
/// changed, which in a regular file happens only at the start of a block.
pub struct StackTexts<'a> {
    profile: &'a Profile,
    names: FrameNames,
    header: Header,
    text: Vec<u8>,
    /// For each stack the range of its text, and the epoch in which it was generated.
    known: Vec<(usize, usize, u32)>,
    /// The number of times that the meaning of file numbers has changed.
    epoch: u32,
    numbers: HashMap<StringId, u32>,
    filenames: HashMap<u32, StringId>,
    highest: u32,
    /// The `#File` lines of the source that were not written yet.
    recorded: std::vec::IntoIter<SourceFile>,
    /// The names of frames and files that were changed.
    changed: HashSet<u32>,
    changed_files: HashSet<StringId>,
}

impl<'a> StackTexts<'a> {
    pub fn new(profile: &'a Profile) -> Result<StackTexts<'a>> {
        let mut known = Vec::new();
        known.try_fill(profile.stacks.len(), (0, 0, 0))?;
        Ok(StackTexts {
            profile,
            names: FrameNames::new(profile)?,
            header: Header::default(),
            text: Vec::new(),
            known,
            epoch: 0,
            numbers: HashMap::new(),
            filenames: HashMap::new(),
            highest: 0,
            recorded: Vec::new().into_iter(),
            changed: HashSet::new(),
            changed_files: HashSet::new(),
        })
    }

    /// The number of names of functions and files that were changed.
    pub fn changed_names(&self) -> usize {
        self.changed.len() + self.changed_files.len()
    }

    pub fn start_block(&mut self, source: &Source, header: Header) -> Result<()> {
        self.header = header;
        self.epoch += 1;
        self.text.clear();
        self.numbers.clear();
        self.filenames.clear();
        self.highest = 0;
        let files = if header.line {
            copied(&source.files)?
        } else {
            Vec::new()
        };
        for file in &files {
            self.highest = self.highest.max(file.number);
        }
        self.recorded = files.into_iter();
        Ok(())
    }

    /// Writes the `#File` lines that were recorded before this sample.
    pub fn recorded_files(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        while let Some(file) = self.recorded.as_slice().first().copied() {
            if file.before > row {
                break;
            }
            self.recorded.next();
            self.define(file.filename, file.number, out)?;
        }
        Ok(())
    }

    fn define(&mut self, filename: StringId, number: u32, out: &mut Vec<u8>) -> Result<()> {
        // If the number is assigned to another file, texts that contain it are not valid any more.
        if let Some(old) = self.filenames.try_put(number, filename)? {
            if old != filename && self.numbers.get(&old) == Some(&number) {
                self.numbers.remove(&old);
                self.epoch += 1;
            }
        }
        self.numbers.try_put(filename, number)?;
        out.try_extend(b"#File ")?;
        push_number(out, u64::from(number))?;
        out.try_extend(b": ")?;
        let name = self.profile.strings.get(filename).as_bytes();
        // A line ends at a line feed, and a reader may remove a CR before it.
        if name.contains(&b'\n') || name.ends_with(b"\r") {
            self.changed_files.try_add(filename)?;
            push_on_one_line(out, name)?;
        } else {
            out.try_extend(name)?;
        }
        out.try_push(b'\n')
    }

    /// The text of a stack, as a range for [`StackTexts::get`]. `#File` lines that are needed before it
    /// are appended to `files`.
    pub fn of(&mut self, stack: StackId, files: &mut Vec<u8>) -> Result<(usize, usize)> {
        let (start, end, epoch) = self.known[stack.0 as usize];
        if epoch == self.epoch {
            return Ok((start, end));
        }
        let mut text = std::mem::take(&mut self.text);
        let start = text.len();
        let mut space = Vec::new();
        let frames = self.profile.stacks.get(stack).unpacked(&mut space)?;
        for &location in frames {
            self.item(location, false, &mut text, files)?;
        }
        if text[start..].contains(&b'\n') && !self.reads_back(stack, &text[start..])? {
            text.truncate(start);
            for &location in frames {
                self.item(location, true, &mut text, files)?;
            }
        }
        self.known[stack.0 as usize] = (start, text.len(), self.epoch);
        self.text = text;
        Ok((start, self.text.len()))
    }

    /// The reference to the line from which the outermost frame of a sample was called.
    pub fn toplevel(&mut self, row: usize, files: &mut Vec<u8>) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let all = &self.profile.samples.toplevel;
        if let (Ok(found), true) = (
            all.binary_search_by_key(&row, |t| t.sample),
            self.header.line,
        ) {
            self.line_reference(all[found].filename, all[found].line, &mut text, files)?;
        }
        Ok(text)
    }

    pub fn get(&self, (start, end): (usize, usize)) -> &[u8] {
        &self.text[start..end]
    }

    /// Appends a frame; `one_line`: without line feeds.
    fn item(
        &mut self,
        location: LocationId,
        one_line: bool,
        text: &mut Vec<u8>,
        files: &mut Vec<u8>,
    ) -> Result<()> {
        let line = self.profile.locations.get(location).line_for_r();
        let function = self.profile.function_of(location);
        let strings = &self.profile.strings;
        if let (Some(function), true) = (function, self.header.line) {
            if line > 0 || !strings.get(function.filename).is_empty() {
                self.line_reference(function.filename, line, text, files)?;
            }
        }
        let row = self.names.row(location);
        let name = self.names.get(row).as_bytes();
        text.try_push(b'"')?;
        let start = text.len();
        text.try_extend(name)?;
        text.try_extend(ITEM_END)?;
        let end = grammar::name_end(&text[start..], 0, self.header.line);
        let as_it_is = end == Some(name.len()) && !(one_line && name.contains(&b'\n'));
        if as_it_is {
            return Ok(());
        }
        self.changed.try_add(row)?;
        text.truncate(start);
        push_on_one_line(text, name)?;
        text.try_extend(ITEM_END)
    }

    /// Whether reading the text results in the names of the stack. It may not if a name contains line
    /// feeds, since the start of a line decides whether it continues a sample.
    fn reads_back(&self, stack: StackId, text: &[u8]) -> Result<bool> {
        let mut reader = LineReader::new(Origin::default(), &Format::NONE, Look::Unknown);
        reader.start_block(self.header)?;
        for line in text.split(|&byte| byte == b'\n') {
            reader.take_line(line)?;
        }
        let found = &reader.profile;
        let [sample] = found.samples.stack.as_slice() else {
            return Ok(false);
        };
        let (mut space, mut other) = (Vec::new(), Vec::new());
        let frames = found.stacks.get(*sample).unpacked(&mut space)?;
        let wanted = self.profile.stacks.get(stack).unpacked(&mut other)?;
        let read = FrameNames::new(found)?;
        let same = |(a, b): (&LocationId, &LocationId)| read.of(*a) == self.names.of(*b);
        Ok(reader.pending.is_none()
            && frames.len() == wanted.len()
            && frames.iter().zip(wanted).all(same))
    }

    /// Appends a line reference. If the file has no number yet, its `#File` line is appended to `files`.
    fn line_reference(
        &mut self,
        filename: StringId,
        line: i32,
        text: &mut Vec<u8>,
        files: &mut Vec<u8>,
    ) -> Result<()> {
        let number = match self.numbers.get(&filename) {
            Some(number) => *number,
            None => {
                // The recorded `#File` line may come later. Its number is used if it is not
                // assigned to another file before that.
                let ahead = self.recorded.as_slice();
                let free = |f: &&SourceFile| {
                    !self.filenames.contains_key(&f.number)
                        && ahead.iter().filter(|g| g.number == f.number).count() == 1
                };
                let recorded = ahead.iter().find(|f| f.filename == filename);
                let number = match recorded.filter(free) {
                    Some(file) => file.number,
                    None => {
                        self.highest = self.highest.saturating_add(1);
                        self.highest
                    }
                };
                self.define(filename, number, files)?;
                number
            }
        };
        push_number(text, u64::from(number))?;
        text.try_push(b'#')?;
        push_number(text, line.max(0) as u64)?;
        text.try_push(b' ')
    }
}

/// Appends a name without characters that could end it or its line.
fn push_on_one_line(out: &mut Vec<u8>, name: &[u8]) -> Result<()> {
    let plain = name.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        b'"' => b'\'',
        byte => *byte,
    });
    for byte in plain {
        out.try_push(byte)?;
    }
    Ok(())
}
