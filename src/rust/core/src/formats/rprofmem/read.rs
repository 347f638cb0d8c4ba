//! Recognises and reads the files of `Rprofmem()`.

use crate::collections::next_row;
use crate::error::Result;
use crate::formats::bytes::{digits, text_lines};
use crate::formats::format::Opened;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::r_names::name_end;
use crate::formats::text_cache::TextCache;
use crate::formats::text_file::{self, File, Grammar};
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryGrow, owned};
use crate::model::known_types::{ALLOC_OBJECTS, ALLOC_SPACE};
use crate::model::{LocationId, Profile, StackId, Values};

/// The end of a name with line feeds is searched for in at most this many lines and bytes.
const JOINED_LINES: usize = 500;
const JOINED_BYTES: usize = 64 << 10;

/// Whether the first line consists of allocations, and names after the last one.
pub fn recognises(start: &[u8]) -> bool {
    let Some(mut line) = text_lines(start).next() else {
        return false;
    };
    let mut is_known = false;
    while let Some((_, length)) = head(line) {
        is_known = true;
        line = &line[length..];
    }
    let ends_with_name = line.ends_with(b" ") || line.ends_with(b"\"");
    is_known && (line.is_empty() || line.starts_with(b"\"") && ends_with_name)
}

pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let reader = Rprofmem {
        stacks: TextCache::default(),
        items: TextCache::default(),
        frames: Vec::new(),
        pending: None,
        bytes: Values::absent_known(&ALLOC_SPACE, 0)?,
        objects: Values::absent_known(&ALLOC_OBJECTS, 0)?,
        pages: Values::absent("new_pages", "count", 0)?,
        has_pages: false,
    };
    text_file::read(opened, reader, stop)
}

/// The kind of allocation that a line records.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Allocation {
    /// A vector, with its bytes.
    Vector(u64),
    Page,
}

/// The start of a line, and the number of its bytes.
fn head(line: &[u8]) -> Option<(Allocation, usize)> {
    const PAGE: &[u8] = b"new page:";
    if line.starts_with(PAGE) {
        return Some((Allocation::Page, PAGE.len()));
    }
    let (bytes, count) = digits(line)?;
    let is_head = line[count..].starts_with(b" :");
    is_head.then_some((Allocation::Vector(bytes), count + 2))
}

/// How the names of a stack end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Complete,
    /// Inside a name.
    OpenName,
    /// With text that is not a name.
    Stray,
}

struct Pending {
    allocation: Allocation,
    text: Vec<u8>,
    lines: usize,
}

struct Rprofmem {
    /// The stack of a text, and the number of its frames.
    stacks: TextCache<(StackId, u32)>,
    items: TextCache<LocationId>,
    frames: Vec<LocationId>,
    /// An allocation whose line ends inside a name, which may continue in the next line, and the text of
    /// its stack.
    pending: Option<Pending>,
    bytes: Values,
    objects: Values,
    pages: Values,
    has_pages: bool,
}

impl Grammar for Rprofmem {
    const EMPTY_IS_VALID: bool = true;
    const OTHERWISE: &'static str = "its first line does not start like `192 :` or `new page:`";

    fn line(&mut self, line: &[u8], _: &[u8], file: &mut File) -> Result<()> {
        if let Some(mut pending) = self.pending.take() {
            let is_full =
                pending.lines >= JOINED_LINES || pending.text.len() + line.len() >= JOINED_BYTES;
            if !is_full && head(line).is_none() {
                pending.text.try_push(b'\n')?;
                pending.text.try_extend(line)?;
                pending.lines += 1;
                // Without a quote, the line does not end the name.
                if !line.contains(&b'"') || !self.stack(pending.allocation, &pending.text, file)? {
                    self.pending = Some(pending);
                }
                return Ok(());
            }
            self.push_part(
                pending.allocation,
                &pending.text,
                ProblemKind::TornSample,
                file,
            )?;
        }
        if self.entries(line, file)? {
            return Ok(());
        }
        match line {
            [] => file.note(ProblemKind::BlankLine, b""),
            _ if file.is_known => file.note(ProblemKind::StrayText, line),
            _ => {}
        }
        Ok(())
    }

    fn cut_line(&mut self, line: &[u8], file: &mut File) -> Result<()> {
        self.line(line, line, file)?;
        if let Some(Pending {
            allocation, text, ..
        }) = self.pending.take()
        {
            return self.push_part(allocation, &text, ProblemKind::CutSample, file);
        }
        // R before 3.5.0 does not end lines without a stack.
        if line.ends_with(b"\" ") {
            file.note(ProblemKind::NoFinalLineFeed, line);
        }
        Ok(())
    }

    fn gap(&mut self, file: &mut File) -> Result<()> {
        match self.pending.take() {
            Some(Pending {
                allocation, text, ..
            }) => self.push_part(allocation, &text, ProblemKind::TornSample, file),
            None => Ok(()),
        }
    }

    fn finish(self, file: &mut File) -> Result<()> {
        file.add_values(self.bytes)?;
        file.add_values(self.objects)?;
        if self.has_pages {
            file.add_values(self.pages)?;
        }
        file.source().default_type = Some(owned(ALLOC_SPACE.name)?);
        Ok(())
    }
}

impl Rprofmem {
    /// Adds the allocations of a line; `false` if it does not start with one.
    fn entries(&mut self, line: &[u8], file: &mut File) -> Result<bool> {
        let Some((mut allocation, mut at)) = head(line) else {
            return Ok(false);
        };
        file.is_known = true;
        // Those before the last one have no stack.
        while let Some((next, length)) = line.get(at..).and_then(head) {
            self.push(std::mem::replace(&mut allocation, next), &[], file)?;
            at += length;
        }
        let text = &line[at..];
        if !self.stack(allocation, text, file)? {
            let mut start = Vec::new();
            start.try_extend(text)?;
            self.pending = Some(Pending {
                allocation,
                text: start,
                lines: 1,
            });
        }
        Ok(true)
    }

    /// Adds an allocation with the text of its stack; `false` if that ends inside a name.
    fn stack(&mut self, allocation: Allocation, text: &[u8], file: &mut File) -> Result<bool> {
        if let Some((stack, frames)) = self.stacks.get(text) {
            self.add(allocation, stack, frames as usize, file)?;
            return Ok(true);
        }
        match self.parse(text, file)? {
            End::Complete => {
                let frames = self.frames.len();
                let stack = file.profile.stacks.intern(&self.frames)?;
                self.stacks
                    .insert(text, (stack, next_row(frames, "frames")?))?;
                self.add(allocation, stack, frames, file)?;
            }
            End::OpenName => return Ok(false),
            End::Stray => self.push_part(allocation, text, ProblemKind::TornSample, file)?,
        }
        Ok(true)
    }

    /// Adds an allocation with the frames that can be parsed.
    fn push_part(
        &mut self,
        allocation: Allocation,
        text: &[u8],
        kind: ProblemKind,
        file: &mut File,
    ) -> Result<()> {
        file.note(kind, text);
        self.parse(text, file)?;
        let frames = std::mem::take(&mut self.frames);
        self.push(allocation, &frames, file)?;
        self.frames = frames;
        Ok(())
    }

    /// Parses the names of a stack into `self.frames`, as far as possible.
    fn parse(&mut self, text: &[u8], file: &mut File) -> Result<End> {
        self.frames.clear();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if rest[0] != b'"' {
                return Ok(End::Stray);
            }
            let Some(end) = name_end(rest, 1, |_| false) else {
                return Ok(End::OpenName);
            };
            let item = &rest[1..end];
            let location = self.items.get_or_read(item, || new_frame(item, file))?;
            self.frames.try_push(location)?;
            at += end + 2;
        }
        Ok(End::Complete)
    }

    fn push(
        &mut self,
        allocation: Allocation,
        frames: &[LocationId],
        file: &mut File,
    ) -> Result<()> {
        let stack = file.profile.stacks.intern(frames)?;
        self.add(allocation, stack, frames.len(), file)
    }

    fn add(
        &mut self,
        allocation: Allocation,
        stack: StackId,
        frames: usize,
        file: &mut File,
    ) -> Result<()> {
        file.add_sample(stack, frames)?;
        match allocation {
            Allocation::Vector(bytes) => {
                match i64::try_from(bytes) {
                    Ok(bytes) => file.push_value(&mut self.bytes, bytes)?,
                    Err(_) => self.bytes.column.try_push(bytes as f64)?,
                }
                self.objects.column.try_push(1.0)?;
                self.pages.column.try_push(0.0)
            }
            Allocation::Page => {
                self.has_pages = true;
                self.bytes.column.try_push(f64::NAN)?;
                self.objects.column.try_push(f64::NAN)?;
                self.pages.column.try_push(1.0)
            }
        }
    }
}

fn new_frame(item: &[u8], file: &mut File) -> Result<LocationId> {
    if item.contains(&b'\n') {
        file.note(ProblemKind::LineFeedInName, item);
    }
    let name = file.name(item, b"\"\"")?;
    let none = file.profile.strings.intern("")?;
    file.profile.frame(&name, none, 0)
}
