//! Recognises and reads the output of `perf script`.
//!
//! The frames of a sample are collected as text, by which equal stacks are found (`stacks.rs`).

use super::detect::is_header;
use super::frame::frame;
use super::head::{Head, head};
use super::stacks::{Known, Stacks};
use crate::error::Result;
use crate::formats::format::Opened;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::text_file::{self, File, Grammar};
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::known_types::SAMPLES;
use crate::model::{Label, Period, Profile, StringId, ValueType, Values};
use memchr::memmem;

/// The maximum number of events, more than anybody records at once. Each adds a value to every sample.
const MOST_EVENTS: usize = 1000;
/// The number of frames of a sample between two checks of the memory that they take.
const FRAMES: usize = 10_000;

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
    events: Vec<Event>,
    keys: Option<Keys>,
    /// The first and the last time.
    times: Option<(i64, i64)>,
}

struct Block {
    comm: Option<StringId>,
    pid: Option<u64>,
    tid: Option<u64>,
    cpu: Option<u64>,
    time: Option<u64>,
    period: Option<u64>,
    /// Row in `events`.
    event: Option<usize>,
}

struct Event {
    recorded: Vec<u8>,
    values: Values,
    /// Whether samples have periods, and the period that all of them have.
    has_periods: bool,
    period: Option<u64>,
}

/// The keys and the unit of labels.
#[derive(Clone, Copy)]
struct Keys {
    comm: StringId,
    pid: StringId,
    tid: StringId,
    cpu: StringId,
    time: StringId,
    nanoseconds: StringId,
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
            _ if text.is_empty() => return self.close(file),
            [b'\t', ..] => return self.frame_line(line, text, file),
            [b'#', ..] => return self.comment(line, file),
            _ => {}
        }
        match head(line) {
            Some(head) => {
                self.close(file)?;
                self.may_be_known = is_after_empty;
                self.open(head, file)
            }
            None if line.starts_with(b" ") => self.frame_line(line, text, file),
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
        let samples = file.profile.samples.len();
        if self.events.len() < 2 {
            let mut counts = Values::of_known(&SAMPLES, 0)?;
            counts.column.try_fill(samples, 1.0)?;
            file.add_values(counts)?;
        }
        let is_only = self.events.len() == 1;
        for (at, event) in self.events.into_iter().enumerate() {
            let mut values = event.values;
            if event.has_periods && is_clock(&event.recorded) {
                values.type_.unit = owned("nanoseconds")?;
            }
            let source = file.source();
            if at == 0 {
                source.default_type = Some(owned(&values.type_.name)?);
            }
            if let Some(period) = event.period.filter(|_| is_only) {
                source.period = Some(Period {
                    value: period as f64,
                    exact: i64::try_from(period).ok().and_then(crate::model::inexact),
                    type_: Some(ValueType {
                        name: owned(&values.type_.name)?,
                        unit: owned(&values.type_.unit)?,
                    }),
                });
            }
            file.add_values(values)?;
        }
        if let Some((first, last)) = self.times {
            file.source().duration = last.checked_sub(first);
        }
        Ok(())
    }
}

/// Whether the periods of an event are nanoseconds.
fn is_clock(event: &[u8]) -> bool {
    let end = event.iter().position(|byte| matches!(byte, b':' | b'/'));
    let name = &event[..end.unwrap_or(event.len())];
    name == b"cpu-clock" || name == b"task-clock"
}

impl PerfScript {
    /// A line of the header, or another comment. It is kept unless it is empty.
    fn comment(&mut self, line: &[u8], file: &mut File) -> Result<()> {
        file.is_known |= is_header(line);
        let text = line[1..].trim_ascii();
        match text.iter().all(|byte| *byte == b'=') {
            true => Ok(()),
            false => file.add_comment(text),
        }
    }

    /// A line that starts with a blank: a frame, the source line of the previous frame, or something that is not kept,
    /// such as branches. `text` is the line from its first character that is not blank.
    fn frame_line(&mut self, line: &[u8], text: &[u8], file: &mut File) -> Result<()> {
        if self.block.is_none() {
            if file.is_known {
                file.note(ProblemKind::StrayText, line);
            }
            return Ok(());
        }
        if text.starts_with(b"0x") {
            return Ok(());
        }
        if std::mem::take(&mut self.is_of_head) {
            self.text.clear();
            self.lines = 0;
        }
        self.lines += 1;
        if self.lines % FRAMES == 0 {
            file.check_frames(self.lines)?;
        }
        self.text.try_extend(line)?;
        self.text.try_push(b'\n')
    }

    /// The first line of a sample.
    fn open(&mut self, head: Head, file: &mut File) -> Result<()> {
        file.is_known = true;
        if head.event.is_none() && head.rest.starts_with(b"PERF_RECORD_") {
            return Ok(());
        }
        let event = match head.event {
            Some(event) if event.starts_with(b"PERF_RECORD_") => return Ok(()),
            Some(event) => Some(self.event(event, file)?),
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
        });
        self.text.clear();
        self.lines = 0;
        self.is_of_head = head.rest.ends_with(b")") && frame(head.rest).address.is_some();
        if self.is_of_head {
            self.text.try_extend(head.rest)?;
            self.text.try_push(b'\n')?;
        }
        Ok(())
    }

    /// The row of an event, which is added if it is new.
    fn event(&mut self, recorded: &[u8], file: &mut File) -> Result<usize> {
        let mut events = self.events.iter();
        if let Some(at) = events.position(|event| event.recorded == recorded) {
            return Ok(at);
        }
        if self.events.len() == MOST_EVENTS {
            let what = message!("more than {MOST_EVENTS} events.");
            return Err(file.unsupported(&what));
        }
        let name = file.decode(recorded)?;
        let mut copy = Vec::new();
        copy.try_extend(recorded)?;
        let event = Event {
            recorded: copy,
            values: Values::absent(&name, "count", 0)?,
            has_periods: false,
            period: None,
        };
        self.events.try_push(event)?;
        Ok(self.events.len() - 1)
    }

    /// Adds the current sample, if there is one.
    fn close(&mut self, file: &mut File) -> Result<()> {
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        let known = self.stacks.of(&self.text, file)?;
        self.add(&block, known, file)
    }

    fn add(&mut self, block: &Block, known: Known, file: &mut File) -> Result<()> {
        let row = file.profile.samples.len();
        file.add_sample(known.stack, known.frames)?;
        self.add_labels(row, block, file)?;
        let Some(event) = block.event.and_then(|at| self.events.get_mut(at)) else {
            return Ok(());
        };
        let is_first = event.values.column.is_empty() || !event.has_periods;
        if let Some(period) = block.period {
            event.period = match is_first {
                true => Some(period),
                false => event.period.filter(|same| *same == period),
            };
            event.has_periods = true;
        }
        event.values.column.try_fill(row, f64::NAN)?;
        match i64::try_from(block.period.unwrap_or(1)) {
            Ok(value) => file.push_value(&mut event.values, value),
            Err(_) => event
                .values
                .column
                .try_push(block.period.unwrap_or(1) as f64),
        }
    }

    fn add_labels(&mut self, row: usize, block: &Block, file: &mut File) -> Result<()> {
        let keys = match self.keys {
            Some(keys) => keys,
            None => {
                let mut key = |name| file.profile.strings.intern(name);
                let keys = Keys {
                    comm: key("comm")?,
                    pid: key("pid")?,
                    tid: key("tid")?,
                    cpu: key("cpu")?,
                    time: key("time")?,
                    nanoseconds: key("nanoseconds")?,
                };
                *self.keys.insert(keys)
            }
        };
        let mut add = |key, str, num, unit| {
            let label = Label {
                sample: row,
                key,
                str,
                num,
                unit,
                other: None,
            };
            file.profile.labels.try_push(label)
        };
        if block.comm.is_some() {
            add(keys.comm, block.comm, None, None)?;
        }
        for (key, number) in [
            (keys.pid, block.pid),
            (keys.tid, block.tid),
            (keys.cpu, block.cpu),
        ] {
            if let Some(number) = number.and_then(|n| i64::try_from(n).ok()) {
                add(key, None, Some(number), None)?;
            }
        }
        let Some(time) = block.time else {
            return Ok(());
        };
        let Ok(time) = i64::try_from(time) else {
            file.note(ProblemKind::OddTime, message!("{time}").as_bytes());
            return Ok(());
        };
        add(keys.time, None, Some(time), Some(keys.nanoseconds))?;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        Ok(())
    }
}
