//! Adds the samples of a process to a profile.

use crate::recorded::states::State;
use crate::recorded::waits::{WAITS_FOR, WAITS_FOR_NAME, Wait};
use crate::stack::frames::{Cut, Frame, Package, Stack};
use crate::stack::spans::SpanIds;
use profile_core::analysis::label_frames::OUTER_CALLS;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, written};
use profile_core::model::titled::without_title;
use profile_core::model::{
    Function, Label, Link, LocationId, Names, Profile, Source, SourceId, StackId, Strings, Toplevel,
};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum memory for the stacks of a profile, in bytes, as long as deep stacks are added whole; and the number of calls
/// that are left of them afterwards.
pub const MOST_STACKS: usize = 64 << 20;
pub const INNER: usize = 1000;

/// How packages are known, or that a function has none.
const FROM_PROCESS: &str = "process";

/// What samples of a process refer to in their profile.
pub struct Samples {
    source: SourceId,
    stacks: Stacks,
    /// The last span. Consecutive samples often have the same.
    span: Option<(SpanIds, Link)>,
}

/// Adds the stacks of a process to a profile.
#[derive(Debug, Default)]
pub struct Stacks {
    frames: HashMap<Frame, LocationId, foldhash::fast::RandomState>,
    stack: Vec<LocationId>,
}

/// A tick at which there is a sample.
#[derive(Debug, Clone, Copy)]
pub struct AtTick {
    /// The real time that the sample stands for, and its CPU time if the thread computes, in nanoseconds.
    pub time: i64,
    pub cpu: i64,
    pub date: SystemTime,
    pub state: State,
    pub computes: bool,
}

impl Samples {
    pub fn new(source: Source, profile: &mut Profile) -> Result<Samples> {
        Ok(Samples {
            source: profile.add_source(source)?,
            stacks: Stacks::default(),
            span: None,
        })
    }

    pub fn source_id(&self) -> SourceId {
        self.source
    }

    /// The source of the samples.
    pub fn source<'p>(&self, profile: &'p mut Profile) -> &'p mut Source {
        &mut profile.sources[self.source.row()]
    }

    /// Adds a sample. `texts` are the names and files of its stack. Returns why outer calls are missing.
    pub fn add(
        &mut self,
        stack: &Stack,
        texts: &Strings,
        tick: AtTick,
        wait: Option<&Wait>,
        profile: &mut Profile,
    ) -> Result<Option<Cut>> {
        let sample = profile.samples.len();
        let (id, cut) = self.stacks.intern(stack, texts, profile)?;
        if let Some(place) = stack.toplevel.filter(|_| cut.is_none()) {
            let filename = profile.strings.intern(texts.get(place.file))?;
            let toplevel = Toplevel {
                sample,
                filename,
                line: place.line,
            };
            profile.samples.toplevel.try_push(toplevel)?;
        }
        if let Some(span) = stack.span {
            let link = self.link(span.ids, profile)?;
            profile.samples.links.try_push((sample, link))?;
            if let Some((key, text)) = span.label {
                add_label(sample, key, texts.get(text), profile)?;
            }
        }
        profile.samples.source.try_push(self.source)?;
        profile.samples.stack.try_push(id)?;
        let since = tick.date.duration_since(UNIX_EPOCH).ok();
        if let Some(time) = since.and_then(|since| i64::try_from(since.as_nanos()).ok()) {
            profile.samples.times.try_push((sample, time))?;
        }
        let cpu = if tick.computes { tick.cpu } else { 0 };
        for (column, value) in profile.values.iter_mut().zip([cpu, tick.time]) {
            column.push(value)?;
        }
        // A thread that was woken and still waits for a processor stands where it slept.
        let state = match tick.state {
            State::Running if !tick.computes => State::Sleeping,
            state => state,
        };
        add_label(sample, "state", state.in_a_word(), profile)?;
        if let Some(wait) = wait {
            add_label(sample, WAITS_FOR, wait.kind.name(), profile)?;
            if let Some(name) = &wait.name {
                add_label(sample, WAITS_FOR_NAME, name, profile)?;
            }
        }
        Ok(cut)
    }

    /// Multiplies the CPU times of the samples, which are multiples of the interval in nanoseconds.
    pub fn scale_cpu(&self, interval: f64, factor: f64, profile: &mut Profile) -> Result<()> {
        let Some(cpu) = profile.values.first_mut() else {
            return Ok(());
        };
        let tick = (interval * factor).round().max(1.0);
        let values = cpu.column.each()?.iter_mut();
        for (value, &source) in values.zip(profile.samples.source.iter()) {
            if source == self.source {
                *value = (*value / interval).round() * tick;
            }
        }
        Ok(())
    }

    fn link(&mut self, ids: SpanIds, profile: &mut Profile) -> Result<Link> {
        if let Some((_, link)) = self.span.filter(|(last, _)| *last == ids) {
            return Ok(link);
        }
        let link = link_of(ids, profile)?;
        self.span = Some((ids, link));
        Ok(link)
    }
}

impl Stacks {
    /// Adds a stack, unless there is the same one. Returns why outer calls are missing.
    pub fn intern(
        &mut self,
        stack: &Stack,
        texts: &Strings,
        profile: &mut Profile,
    ) -> Result<(StackId, Option<Cut>)> {
        self.stack.clear();
        for &frame in &stack.frames {
            let location = match self.frames.get(&frame) {
                Some(&location) => location,
                None => {
                    let location = location(frame, texts, profile)?;
                    self.frames.try_put(frame, location)?;
                    location
                }
            };
            self.stack.try_push(location)?;
        }
        let is_full = self.stack.len() > INNER
            && profile.stacks.bytes() > MOST_STACKS
            && !profile.stacks.contains(&self.stack);
        let cut = if is_full { Some(Cut::Full) } else { stack.cut };
        if cut.is_some() {
            if is_full {
                self.stack.truncate(INNER);
            }
            let none = profile.strings.intern("")?;
            let mark = profile.frame(OUTER_CALLS, none, 0)?;
            self.stack.try_push(mark)?;
        }
        Ok((profile.stacks.intern(&self.stack)?, cut))
    }
}

/// The span with these ids.
pub fn link_of(ids: SpanIds, profile: &mut Profile) -> Result<Link> {
    let trace_id = u128::from_be_bytes(ids.trace_id);
    let span_id = u64::from_be_bytes(ids.span_id);
    let trace_id = written(format_args!("{trace_id:032x}"))?;
    let span_id = written(format_args!("{span_id:016x}"))?;
    Ok(Link {
        trace_id: profile.strings.intern(&trace_id)?,
        span_id: profile.strings.intern(&span_id)?,
    })
}

/// Adds a label to a sample.
pub fn add_label(sample: usize, key: &str, value: &str, profile: &mut Profile) -> Result<()> {
    let label = Label {
        str: Some(profile.strings.intern(value)?),
        ..Label::new(sample, profile.strings.intern(key)?)
    };
    profile.labels.try_push(label)
}

fn location(frame: Frame, texts: &Strings, profile: &mut Profile) -> Result<LocationId> {
    let (file, line) = match frame.place {
        Some(place) => (profile.strings.intern(texts.get(place.file))?, place.line),
        None => (profile.strings.intern("")?, 0),
    };
    let none = profile.strings.intern("")?;
    let mut function = Function::named(none, file);
    function.set_name(texts.get(frame.name), &mut profile.strings)?;
    if frame.called != frame.name {
        let called = without_title(texts.get(frame.called));
        function.system_name = profile.strings.intern(called)?;
        function.recorded = Names::Both;
    }
    if frame.package != Package::Unknown {
        function.package_from = Some(profile.strings.intern(FROM_PROCESS)?);
    }
    if let Package::Named(package) = frame.package {
        function.package = Some(profile.strings.intern(texts.get(package))?);
    }
    profile.frame_of(function, line)
}
