//! Describes the format, and reads a file.

use crate::collections::next_row;
use crate::error::Result;
use crate::formats::bytes::digits;
use crate::formats::format::{Format, Opened};
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::r_names::name_end;
use crate::formats::text_cache::TextCache;
use crate::formats::text_file::{self, File, Grammar};
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryGrow, owned};
use crate::model::{LocationId, Profile, StackId, Values};
use std::borrow::Cow;

const STACK: &str = "a stack";
const VALUES: &str = "sample values";
/// A name with line feeds is searched for in at most this many lines and bytes.
const JOINED_LINES: usize = 500;
const JOINED_BYTES: usize = 64 << 10;

pub const FORMAT: Format = Format {
    name: "rprofmem",
    title: "a file of `Rprofmem()`",
    recognises: |start| head(start).is_some(),
    read,
};

fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let reader = Rprofmem {
        stacks: TextCache::default(),
        items: TextCache::default(),
        frames: Vec::new(),
        pending: None,
        bytes: Values::absent("alloc_space", "bytes", 0)?,
        objects: Values::absent("alloc_objects", "count", 0)?,
        pages: Values::absent("new_pages", "count", 0)?,
        has_pages: false,
    };
    text_file::read(opened, reader, stop)
}

/// What a line records.
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
    /// With text that is no name.
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
                pending.text.try_push(b'\n', STACK)?;
                pending.text.try_extend(line, STACK)?;
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
        file.source().default_type = Some(owned("alloc_space", VALUES)?);
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
            start.try_extend(text, STACK)?;
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
            let location = match self.items.get(item) {
                Some(location) => location,
                None => {
                    let location = new_frame(item, file)?;
                    self.items.insert(item, location)?;
                    location
                }
            };
            self.frames.try_push(location, STACK)?;
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
                    Err(_) => self.bytes.column.try_push(bytes as f64, VALUES)?,
                }
                self.objects.column.try_push(1.0, VALUES)?;
                self.pages.column.try_push(0.0, VALUES)
            }
            Allocation::Page => {
                self.has_pages = true;
                self.bytes.column.try_push(f64::NAN, VALUES)?;
                self.objects.column.try_push(f64::NAN, VALUES)?;
                self.pages.column.try_push(1.0, VALUES)
            }
        }
    }
}

fn new_frame(item: &[u8], file: &mut File) -> Result<LocationId> {
    if item.contains(&b'\n') {
        file.note(ProblemKind::LineFeedInName, item);
    }
    let mut name = file.decode(item)?;
    if name.is_empty() {
        file.note(ProblemKind::EmptyName, b"\"\"");
        name = Cow::Borrowed("<Anonymous>");
    }
    let none = file.profile.strings.intern("")?;
    file.profile.frame(&name, none, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Input, read};
    use crate::io::input::Origin;

    /// The allocations of a text, with their names, and the keys of problems.
    fn shown(text: &[u8]) -> (Vec<String>, Vec<&'static str>) {
        let input = Input::Bytes(text);
        let result = read(input, Some(&FORMAT), Origin::default(), &|| false);
        let (profile, problems) = match result {
            Ok(result) => result,
            Err(error) => return (vec![error.to_string()], Vec::new()),
        };
        let name = |id: &LocationId| {
            let function = profile.function_of(*id).unwrap();
            profile.strings.get(function.name).to_owned()
        };
        let sample = |row: usize| {
            let stack = profile.stacks.get(profile.samples.stack[row]).to_vec();
            let frames: Vec<_> = stack.unwrap().iter().map(name).collect();
            let values = profile.values.iter().map(|v| v.column[row].to_string());
            format!(
                "{}: {}",
                values.collect::<Vec<_>>().join(" "),
                frames.join(" < ")
            )
        };
        let samples = (0..profile.samples.len()).map(sample).collect();
        (
            samples,
            problems
                .counts()
                .iter()
                .map(|(kind, _)| kind.key())
                .collect(),
        )
    }

    #[test]
    fn lines_are_allocations() {
        let (samples, problems) =
            shown(b"8048 :\"f\" \"main\" \n192 :\n18446744073709551615 :\"f\" \n");
        assert_eq!(
            samples,
            ["8048 1: f < main", "192 1: ", "18446744073709552000 1: f"]
        );
        assert!(problems.is_empty());
        assert_eq!(shown(b""), (vec![], vec![]));
    }

    #[test]
    fn pages_have_no_bytes() {
        let (samples, problems) = shown(b"8048 :\"f\" \nnew page:\"f\" \"main\" \n");
        assert_eq!(samples, ["8048 1 0: f", "NaN NaN 1: f < main"]);
        assert!(problems.is_empty());
    }

    #[test]
    fn old_versions_of_r_join_lines() {
        let (samples, problems) = shown(b"200 :360 :new page:8040 :\"double\" \n56 :48 :");
        let expected = [
            "200 1 0: ",
            "360 1 0: ",
            "NaN NaN 1: ",
            "8040 1 0: double",
            "56 1 0: ",
            "48 1 0: ",
        ];
        assert_eq!(samples, expected);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn names_are_not_escaped() {
        let text = b"48 :\"a \"b \" \"l[[\"x\"]]\" \"two\nlines\" \"main\" \n48 :\"f\" \n";
        let (samples, problems) = shown(text);
        assert_eq!(
            samples,
            ["48 1: a \"b  < l[[\"x\"]] < two\nlines < main", "48 1: f"]
        );
        assert_eq!(problems, ["line_feed_in_name"]);
    }

    #[test]
    fn truncated_lines_are_read_as_far_as_possible() {
        for (text, samples, problem) in [
            (
                &b"48 :\"f\" \"ma"[..],
                &["48 1: f"][..],
                &["cut_sample"][..],
            ),
            (b"48 :\"f\" ", &["48 1: f"], &["no_final_line_feed"]),
            (b"48 :\n4", &["48 1: "], &["stray_text"]),
            (
                b"48 :\"f\" \"ma\n56 :\"g\" \n",
                &["48 1: f", "56 1: g"],
                &["torn_sample"],
            ),
            (b"48 :\"f\" x\n", &["48 1: "], &["torn_sample"]),
            (b"48 :x \"f\" \n", &["48 1: "], &["torn_sample"]),
            (
                b"48 :\"f\" \nhello\n\n",
                &["48 1: f"],
                &["stray_text", "blank_line"],
            ),
            (b"48 :\"f\" \r\n", &["48 1: f"], &["carriage_returns"]),
        ] {
            let (found, problems) = shown(text);
            assert_eq!(found, samples);
            assert_eq!(problems, problem);
        }
        let hole = [b"48 :\"f\" \"m".as_slice(), &[0; 40], b"48 :\"g\" \n"].concat();
        let (samples, problems) = shown(&hole);
        assert_eq!(samples, ["48 1: f", "48 1: g"]);
        assert_eq!(problems, ["cut_sample", "nul_run"]);
    }

    #[test]
    fn other_files_are_refused() {
        for (text, what) in [
            (&b"hello\n"[..], "`192 :`"),
            (b"\n\n", "blank lines"),
            (b"sample.interval=20000\n\"f\" \n", "Rprof"),
        ] {
            let (samples, _) = shown(text);
            assert!(samples[0].contains(what), "{samples:?}");
        }
    }
}
