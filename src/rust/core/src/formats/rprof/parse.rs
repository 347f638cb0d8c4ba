//! Parses the text of a sample to its stack.
//!
//! Three measures reduce the cost: a text that has occurred before is looked up as a whole ([`StackParser::known`]); an
//! item that has occurred before is looked up instead of being decoded; and if the outer frames have the same bytes as
//! in the previously parsed text, they are copied from it. The latter is exact, because the meaning of the text after
//! an item does not depend on the text before it.

use super::grammar::{self, LineReference};
use crate::collections::next_row;
use crate::error::{self, Result};
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::text_cache::TextCache;
use crate::limits::memory::{TryAdd, TryGrow, TryPut};
use crate::message;
use crate::model::{LocationId, Profile, StackId, StringId};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// R <= 4.2 prints an item into 500 bytes, two of which are quotes.
const LONGEST_NAME: usize = 498;

/// The file and the line from which the outermost frame of a sample was called.
pub type CallSite = (StringId, i32);

/// The result of parsing a complete text.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    pub id: StackId,
    /// The number of its frames.
    pub frames: u32,
    pub toplevel: Option<CallSite>,
}

/// How parsing a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    /// A name does not end in the text; its end may be in the next line.
    OpenName,
    /// The text continues with something that is not an item.
    Stray,
}

#[derive(Debug, Clone, Copy)]
pub enum Parsed {
    Whole(Stack),
    Broken(End),
}

#[derive(Debug, Default)]
pub struct StackParser {
    line_profiling: bool,
    files: HashMap<u32, StringId>,
    unknown_files: HashSet<u32>,
    stacks: TextCache<Stack>,
    items: TextCache<LocationId>,
    /// The result of the last `parse`.
    now: ParsedText,
    /// The last text that was parsed completely, for its outer frames.
    before: ParsedText,
}

#[derive(Debug, Default)]
struct ParsedText {
    text: Vec<u8>,
    /// For each frame, the number of bytes of its item and all outer ones.
    remaining: Vec<usize>,
    frames: Vec<LocationId>,
    toplevel: Option<CallSite>,
}

impl ParsedText {
    fn clear(&mut self) {
        self.text.clear();
        self.remaining.clear();
        self.frames.clear();
        self.toplevel = None;
    }
}

/// The profile and the problems that are extended while a line is parsed.
pub struct Context<'a> {
    pub profile: &'a mut Profile,
    pub problems: &'a mut Problems,
    pub line: u64,
}

impl Context<'_> {
    fn note(&mut self, kind: ProblemKind, text: &[u8]) {
        self.problems
            .note(kind, error::Position::Line(self.line), text);
    }

    /// Decodes a name and records irregularities.
    pub fn decode<'b>(&mut self, bytes: &'b [u8]) -> Result<Cow<'b, str>> {
        self.problems
            .decode(bytes, error::Position::Line(self.line))
    }
}

impl StackParser {
    /// Starts a new block, in which files are numbered anew.
    pub fn start_block(&mut self, line_profiling: bool) {
        self.line_profiling = line_profiling;
        self.files.clear();
        self.unknown_files.clear();
        self.forget();
    }

    /// Clears the caches, because texts no longer have the same meaning.
    fn forget(&mut self) {
        self.stacks.clear();
        self.items.clear();
        self.before.clear();
    }

    /// Assigns a number to a file, from here on.
    pub fn define_file(
        &mut self,
        number: u32,
        filename: StringId,
        context: &mut Context,
    ) -> Result<()> {
        match self.files.try_put(number, filename)? {
            Some(old) if old != filename => {
                context.note(ProblemKind::RepeatedFile, message!("{number}").as_bytes());
                self.forget();
            }
            Some(_) => {}
            None if self.unknown_files.remove(&number) => self.forget(),
            None => {}
        }
        Ok(())
    }

    /// The stack of a text that was parsed completely before.
    #[inline]
    pub fn known(&self, text: &[u8]) -> Option<Stack> {
        self.stacks.get(text)
    }

    /// Parses a text that is not known yet, and adds it to the cache if it is complete.
    pub fn learn(&mut self, text: &[u8], context: &mut Context) -> Result<Parsed> {
        let end = self.parse(text, context)?;
        if end != End::Complete {
            return Ok(Parsed::Broken(end));
        }
        let stack = Stack {
            id: context.profile.stacks.intern(&self.now.frames)?,
            frames: next_row(self.now.frames.len(), "frames")?,
            toplevel: self.now.toplevel,
        };
        self.stacks.insert(text, stack)?;
        self.now.text.clear();
        self.now.text.try_extend(text)?;
        std::mem::swap(&mut self.now, &mut self.before);
        Ok(Parsed::Whole(stack))
    }

    /// The frames of a text as far as it can be parsed.
    pub fn part(&mut self, text: &[u8], context: &mut Context) -> Result<Stack> {
        self.parse(text, context)?;
        Ok(Stack {
            id: context.profile.stacks.intern(&self.now.frames)?,
            frames: next_row(self.now.frames.len(), "frames")?,
            toplevel: None,
        })
    }

    /// Parses `text` into `self.now`, as far as possible.
    fn parse(&mut self, text: &[u8], context: &mut Context) -> Result<End> {
        self.now.clear();
        let shared = common_suffix(text, &self.before.text);
        let mut at = 0;
        loop {
            let remaining = text.len() - at;
            if remaining == 0 {
                return Ok(End::Complete);
            }
            if remaining <= shared && self.take_outer_frames(remaining)? {
                return Ok(End::Complete);
            }
            let start = at;
            let mut reference = None;
            if self.line_profiling {
                while let Some((found, length)) = grammar::line_reference(&text[at..]) {
                    reference = Some(found);
                    at += length;
                }
            }
            if at == text.len() {
                self.now.toplevel = match reference {
                    Some(reference) => Some(self.call_site(reference, context)?),
                    None => None,
                };
                return Ok(End::Complete);
            }
            if text[at] != b'"' {
                return Ok(End::Stray);
            }
            let Some(end) = grammar::name_end(text, at + 1, self.line_profiling) else {
                return Ok(End::OpenName);
            };
            let name = &text[at + 1..end];
            at = end + 2;
            let frame = match self.items.get(&text[start..at]) {
                Some(frame) => frame,
                None => {
                    let frame = self.new_frame(name, reference, context)?;
                    self.items.insert(&text[start..at], frame)?;
                    frame
                }
            };
            self.now.remaining.try_push(text.len() - start)?;
            self.now.frames.try_push(frame)?;
        }
    }

    /// Copies the outer frames if an item of the previous text starts at the same distance from the end.
    /// The rest of both texts is the same.
    fn take_outer_frames(&mut self, remaining: usize) -> Result<bool> {
        let before = &self.before;
        // `remaining` falls from frame to frame.
        let Ok(frame) = before.remaining.binary_search_by(|r| remaining.cmp(r)) else {
            return Ok(false);
        };
        self.now.frames.try_extend(&before.frames[frame..])?;
        self.now.remaining.try_extend(&before.remaining[frame..])?;
        self.now.toplevel = before.toplevel;
        Ok(true)
    }

    fn new_frame(
        &mut self,
        name: &[u8],
        reference: Option<LineReference>,
        context: &mut Context,
    ) -> Result<LocationId> {
        if name.contains(&b'\n') {
            context.note(ProblemKind::LineFeedInName, name);
        }
        if name.len() == LONGEST_NAME {
            context.note(ProblemKind::LongName, name);
        }
        let mut name = context.decode(name)?;
        if name.is_empty() {
            context.note(ProblemKind::EmptyName, b"\"\"");
            name = Cow::Borrowed("<Anonymous>");
        }
        let (filename, line) = match reference {
            Some(reference) => self.call_site(reference, context)?,
            None => (context.profile.strings.intern("")?, 0),
        };
        context.profile.frame(&name, filename, line)
    }

    fn call_site(&mut self, reference: LineReference, context: &mut Context) -> Result<CallSite> {
        let filename = match self.files.get(&reference.file) {
            Some(filename) => *filename,
            None => {
                if self.unknown_files.try_add(reference.file)? {
                    context.note(
                        ProblemKind::UnknownFile,
                        message!("{}", reference.file).as_bytes(),
                    );
                }
                context.profile.strings.intern("")?
            }
        };
        let line = match i32::try_from(reference.line) {
            Ok(line) if line >= 0 => line,
            _ => {
                context.note(
                    ProblemKind::BadLineNumber,
                    message!("{}", reference.line).as_bytes(),
                );
                0
            }
        };
        Ok((filename, line))
    }
}

/// The number of bytes at the end of both texts that are equal.
fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    // Words of 8 bytes are compared first, since outer frames have hundreds of bytes.
    let mut n = 0;
    for (x, y) in a.rchunks_exact(8).zip(b.rchunks_exact(8)) {
        if x != y {
            break;
        }
        n += 8;
    }
    let rest = |text: &[u8]| text.len() - n;
    n + a[..rest(a)]
        .iter()
        .rev()
        .zip(b[..rest(b)].iter().rev())
        .take_while(|(x, y)| x == y)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_measured_to_the_byte() {
        assert_eq!(common_suffix(b"", b"abc"), 0);
        assert_eq!(common_suffix(b"xabc", b"yabc"), 3);
        assert_eq!(
            common_suffix(b"0123456789abcdefgh", b"-123456789abcdefgh"),
            17
        );
        assert_eq!(common_suffix(b"same", b"same"), 4);
    }
}
