//! Recognises and reads the output of `perf script`.
//!
//! The frames of a sample are collected as text, by which equal stacks are found (`stacks.rs`).

use super::block::Block;
use super::detect::{has_place, is_header};
use super::events::Events;
use super::extras::{is_code, is_extra, is_source_line, is_trace_error, remove_cookie};
use super::head::{Head, head};
use super::labels::Labels;
use super::place::place;
use super::stacks::{Known, Stacks};
use crate::error::Result;
use crate::formats::format::Opened;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::text_file::{self, File, Grammar};
use crate::limits::cancel::Stop;
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::Profile;
use memchr::memmem;

/// The number of frames of a sample between two checks of the memory that they take.
const FRAMES: usize = 10_000;
/// The user part of a call chain, which newer kernels record later than its sample. perf joins them unless it is told not
/// to. A sample whose part is missing ends in a `(cookie)`.
const DEFERRED: &[u8] = b"DEFERRED CALLCHAIN";

pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    text_file::read(opened, PerfScript::default(), stop)
}

#[derive(Default)]
struct PerfScript {
    /// The first line of the current sample.
    block: Option<Block>,
    /// The lines of its frames, each with a line feed.
    text: Vec<u8>,
    /// The number of these lines.
    lines: usize,
    /// Whether the text is the part of the first line after the event.
    is_of_head: bool,
    /// Whether the last line was empty.
    is_after_empty: bool,
    /// Whether the lines after the first one may be a known stack.
    may_be_known: bool,
    stacks: Stacks,
    events: Events,
    labels: Labels,
    /// Whether samples have call graphs, so that a sample without frames has an empty one.
    has_call_graphs: bool,
}

impl Grammar for PerfScript {
    const OTHERWISE: &'static str = "its first line is not the start of a sample, such as \
                                     `R 123 45.678: 250000 cpu-clock:`";

    fn is_comment(line: &[u8]) -> bool {
        line.starts_with(b"#")
    }

    fn line(&mut self, line: &[u8], rest: &[u8], file: &mut File) -> Result<()> {
        let is_empty = rest.starts_with(b"\n");
        let is_after_empty = std::mem::replace(&mut self.is_after_empty, is_empty);
        let text = line.trim_ascii_start();
        match line {
            _ if text.is_empty() => {
                if self.is_of_head && self.has_call_graphs {
                    // An empty call graph: what looked like a frame is the address of data.
                    self.text.clear();
                }
                // A blank line may precede the frames.
                let has_frames = self.lines > 0 || self.is_of_head;
                return if has_frames { self.close(file) } else { Ok(()) };
            }
            [b'\t', ..] => return self.frame_line(line, file),
            [b'#', ..] => return self.comment(line, file),
            _ if is_code(line) && file.is_known => return Ok(()),
            _ if is_trace_error(text) && file.is_known => {
                self.close(file)?;
                file.note(ProblemKind::TraceError, text);
                return Ok(());
            }
            _ => {}
        }
        match head(line) {
            Some(head) => {
                self.close(file)?;
                self.may_be_known = is_after_empty;
                self.open(head, line, file)
            }
            None if line.starts_with(b" ") => self.frame_line(line, file),
            // Text that was pasted somewhere may have lost its indentation.
            None if self.block.is_some() && line.ends_with(b")") && has_place(line) => {
                self.frame_line(line, file)
            }
            None => {
                self.close(file)?;
                if file.is_known {
                    file.note(ProblemKind::StrayText, line);
                }
                Ok(())
            }
        }
    }

    /// Most stacks have occurred before, with the same text up to the next empty line. Their lines need
    /// not be processed one by one, which saves a third of the time of reading. Only samples that follow
    /// an empty line are looked up, so that no part of a file is searched twice.
    #[inline]
    fn lines(&mut self, text: &[u8], file: &mut File) -> Result<usize> {
        if !std::mem::take(&mut self.may_be_known) || !text.starts_with(b"\t") {
            return Ok(0);
        }
        let Some(end) = memmem::find(text, b"\n\n") else {
            return Ok(0);
        };
        let Some(known) = self.stacks.known(&text[..=end]) else {
            return Ok(0);
        };
        let Some(block) = self.block.take() else {
            return Ok(0);
        };
        file.count_lines(known.lines + 1);
        self.is_after_empty = true;
        self.add(&block, known, file)?;
        Ok(end + 2)
    }

    fn cut_line(&mut self, line: &[u8], file: &mut File) -> Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if line.ends_with(b")") || line.starts_with(b"#") {
            self.line(line, line, file)?;
            file.note(ProblemKind::NoFinalLineFeed, line);
        } else if self.block.is_some() && line.starts_with(b"\t") {
            file.note(ProblemKind::CutSample, line);
        } else if file.is_known {
            self.close(file)?;
            file.note(ProblemKind::CutLine, line);
        }
        Ok(())
    }

    fn gap(&mut self, file: &mut File) -> Result<()> {
        self.close(file)
    }

    fn finish(self, file: &mut File) -> Result<()> {
        self.events.finish(file)?;
        if let Some(duration) = self.labels.duration() {
            file.source().duration = Some(duration);
        }
        Ok(())
    }
}

impl PerfScript {
    /// A line of the header, or another comment. It is kept unless it is empty.
    fn comment(&mut self, line: &[u8], file: &mut File) -> Result<()> {
        file.is_known |= is_header(line);
        let text = line[1..].trim_ascii();
        if text.iter().all(|byte| *byte == b'=') {
            Ok(())
        } else {
            file.add_comment(text)
        }
    }

    /// A line that starts with a blank: a frame, the source line of the previous frame, or something that is not kept,
    /// such as branches.
    fn frame_line(&mut self, line: &[u8], file: &mut File) -> Result<()> {
        let has_tabs = self.block.as_ref().is_some_and(|block| block.has_tabs);
        if is_extra(line, has_tabs) {
            return Ok(());
        }
        let Some(block) = &mut self.block else {
            if file.is_known {
                file.note(ProblemKind::StrayText, line);
            }
            return Ok(());
        };
        if self.is_of_head && !is_source_line(line) {
            self.is_of_head = false;
            self.text.clear();
            self.lines = 0;
        }
        block.has_tabs |= line.starts_with(b"\t");
        self.has_call_graphs |= block.has_tabs;
        self.lines += 1;
        if self.lines % FRAMES == 0 {
            file.check_frames(self.lines)?;
        }
        self.text.try_extend(line)?;
        self.text.try_push(b'\n')
    }

    /// The first line of a sample.
    fn open(&mut self, head: Head, line: &[u8], file: &mut File) -> Result<()> {
        file.is_known = true;
        let record = head.event.unwrap_or(head.rest);
        if record.starts_with(b"PERF_RECORD_") {
            if record.starts_with(b"PERF_RECORD_LOST") {
                file.note(ProblemKind::LostRecords, head.record(line));
            }
            return Ok(());
        }
        if head.event.is_none() && head.rest.starts_with(DEFERRED) {
            return Err(file.unsupported(
                "call chains apart from their samples; print it without `--no-merge-callchains`",
            ));
        }
        let event = match head.event {
            Some(event) => Some(self.events.row(event, file)?),
            None => None,
        };
        let comm = match head.comm {
            [] => None,
            name => {
                let name = file.decode(name)?;
                Some(file.profile.strings.intern(&name)?)
            }
        };
        self.block = Some(Block {
            comm,
            pid: head.pid,
            tid: head.tid,
            cpu: head.cpu,
            time: head.time,
            period: head.period,
            event,
            has_tabs: false,
        });
        self.text.clear();
        self.lines = 0;
        let place = place(line, head.rest);
        self.is_of_head = place.is_some();
        if let Some(place) = place {
            self.text.try_extend(place)?;
            self.text.try_push(b'\n')?;
        }
        Ok(())
    }

    /// Adds the current sample, if there is one.
    fn close(&mut self, file: &mut File) -> Result<()> {
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        let cookie = remove_cookie(&mut self.text);
        let known = self.stacks.of(&self.text, file)?;
        self.add(&block, known, file)?;
        if let Some(cookie) = cookie {
            let text = message!("cookie {cookie:x}");
            file.note(ProblemKind::NoCallChain, text.as_bytes());
        }
        Ok(())
    }

    fn add(&mut self, block: &Block, known: Known, file: &mut File) -> Result<()> {
        let row = file.profile.samples.len();
        file.add_sample(known.stack, known.frames)?;
        self.labels.add(row, block, file)?;
        match block.event {
            Some(event) => self.events.add(event, row, block.period, file),
            None => Ok(()),
        }
    }
}
