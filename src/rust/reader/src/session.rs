//! A process that is recorded: at each tick, a sample of it is added to a profile.

use crate::memory::Memory;
use crate::process::{
    Activity, NativeReader, Placement, Process, ProcessMemory, State, Thread, gone,
};
use crate::recorder::{Clock, Settings, of_process};
use crate::source::{TYPES, source};
use crate::stack::{Frame, Reader, Stack};
use profile_core::analysis::label_frames::OUTER_CALLS;
use profile_core::error::Result;
use profile_core::joint::{Files, NativeStack};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::model::{Label, LocationId, Profile, SourceId, StringId, Toplevel, Values};
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The maximum memory for the native stacks of a process, in bytes.
const MOST_NATIVE: usize = 512 << 20;
/// How long to wait after leaving the processor of the process.
const SETTLE: Duration = Duration::from_micros(100);
/// A process that records itself by CPU time is known to be running at a sample. The processor that it runs on is
/// checked only once in this many samples.
const LOOK: u32 = 16;

pub struct Session<'s, M = ProcessMemory, T = Thread> {
    number: usize,
    process: Process,
    thread: T,
    reader: Reader<M>,
    native: Option<NativeReader<'s>>,
    /// The source that samples refer to in their profile.
    source: SourceId,
    state_key: StringId,
    frames: HashMap<Frame, LocationId, foldhash::fast::RandomState>,
    /// The number of ticks at which the process was not idle.
    looks: u32,
    /// The CPU time and the time of the last sample.
    cpu: Option<u64>,
    time: Instant,
    begin: Instant,
    has_ended: bool,
}

/// What the system reports about the thread that is recorded.
pub trait Watched {
    /// Its CPU time in nanoseconds, if it is known.
    fn cpu_time(&self) -> Option<u64>;

    /// Its state and its processor; `None` if it has ended.
    fn activity(&self) -> Option<Activity>;
}

impl Watched for Thread {
    fn cpu_time(&self) -> Option<u64> {
        self.cpu_time()
    }

    fn activity(&self) -> Option<Activity> {
        self.activity()
    }
}

/// A point in time, by the clock that measures durations and by the one that shows the date.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub time: Instant,
    pub date: SystemTime,
}

impl Moment {
    pub fn now() -> Moment {
        Moment {
            time: Instant::now(),
            date: SystemTime::now(),
        }
    }
}

/// What happened at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// There is no sample, because the process has used no CPU time.
    Idle,
    Taken {
        /// Whether outer calls were left out.
        is_cut: bool,
        /// Whether inner calls are missing.
        lacks_inner: bool,
    },
    /// The stack changed during all attempts to read it.
    Unread,
    /// The process has ended.
    Ended,
}

/// Adds the columns of values to a new profile.
pub fn declare_types(profile: &mut Profile) -> Result<()> {
    for (name, unit) in TYPES {
        let column = Values::absent(name, unit, 0)?;
        profile.values.try_push(column)?;
    }
    Ok(())
}

impl<'s> Session<'s> {
    /// Opens a process, which becomes a source of the profile. `number` identifies its native stacks.
    pub fn open(
        process: &Process,
        settings: &Settings,
        files: &'s Files,
        number: usize,
        profile: &mut Profile,
    ) -> Result<Session<'s>> {
        let mappings = process.mappings()?;
        let memory = ProcessMemory::new(process.pid);
        let reader = Reader::open(memory, &mappings, settings.check);
        let reader = reader.map_err(|error| of_process(process.pid, error))?;
        let native = match settings.pause {
            true => Some(NativeReader::open(
                process,
                reader.target(),
                &mappings,
                files,
            )?),
            false => None,
        };
        let thread = Thread::open(process);
        let thread = thread.ok_or_else(|| gone(process.pid))?;
        let now = Instant::now();
        let session = Session::of(process, thread, reader, settings, profile, now)?;
        Ok(Session {
            number,
            native,
            ..session
        })
    }
}

impl<'s, M: Memory, T: Watched> Session<'s, M, T> {
    /// Records what `reader` reads, which is the process of `thread`, without native stacks.
    pub fn of(
        process: &Process,
        thread: T,
        reader: Reader<M>,
        settings: &Settings,
        profile: &mut Profile,
        now: Instant,
    ) -> Result<Session<'s, M, T>> {
        let source = source(process, settings, profile)?;
        Ok(Session {
            number: 0,
            process: process.clone(),
            looks: 0,
            cpu: thread.cpu_time(),
            thread,
            reader,
            native: None,
            source: profile.add_source(source)?,
            state_key: profile.strings.intern("state")?,
            frames: HashMap::default(),
            time: now,
            begin: now,
            has_ended: false,
        })
    }

    /// Finds what is needed for complete stacks from the first sample on. This takes some milliseconds.
    pub fn prepare(&mut self) -> Result<()> {
        self.reader.prepare()
    }

    /// Continues in another profile, which is empty.
    pub fn continue_in(&mut self, settings: &Settings, profile: &mut Profile) -> Result<()> {
        self.continue_at(Instant::now(), settings, profile)
    }

    /// The same, for a given time.
    pub fn continue_at(
        &mut self,
        now: Instant,
        settings: &Settings,
        profile: &mut Profile,
    ) -> Result<()> {
        declare_types(profile)?;
        let source = source(&self.process, settings, profile)?;
        self.source = profile.add_source(source)?;
        self.state_key = profile.strings.intern("state")?;
        self.frames.clear();
        self.begin = now;
        Ok(())
    }

    /// Excludes the time since the last sample from the next one, but not the CPU time.
    pub fn skip_time(&mut self) {
        self.skip_time_until(Instant::now());
    }

    /// The same, for a given time.
    pub fn skip_time_until(&mut self, now: Instant) {
        self.time = now;
    }

    /// Sets how long the process was recorded.
    pub fn finish(&self, profile: &mut Profile) {
        let end = match self.has_ended {
            true => self.time,
            false => Instant::now(),
        };
        self.finish_at(end, profile);
    }

    /// The same, for a recording that ended at another time.
    pub fn finish_at(&self, end: Instant, profile: &mut Profile) {
        let duration = end.saturating_duration_since(self.begin).as_nanos();
        profile.sources[self.source.row()].duration = i64::try_from(duration).ok();
    }

    pub fn pid(&self) -> i32 {
        self.process.pid
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The reader of native stacks, if the process is stopped for each sample.
    pub fn native(&mut self) -> Option<&mut NativeReader<'s>> {
        self.native.as_mut()
    }

    /// Takes a sample, if `settings` require one now. Native stacks are added to `natives`.
    pub fn tick(
        &mut self,
        settings: &Settings,
        profile: &mut Profile,
        natives: &mut Vec<NativeStack>,
        placement: &Placement,
    ) -> Result<Tick> {
        self.tick_at(Moment::now, settings, profile, natives, placement)
    }

    /// The same, with a clock.
    pub fn tick_at(
        &mut self,
        now: impl Fn() -> Moment,
        settings: &Settings,
        profile: &mut Profile,
        natives: &mut Vec<NativeStack>,
        placement: &Placement,
    ) -> Result<Tick> {
        if self.has_ended {
            return Ok(Tick::Idle);
        }
        let cpu = self.thread.cpu_time();
        let used = match (cpu, self.cpu) {
            (Some(now), Some(before)) => Some(now.saturating_sub(before)),
            _ => None,
        };
        // The CPU time of a process that has ended is unknown.
        if settings.clock == Clock::Cpu && used == Some(0) {
            // Idle time is not part of the next sample.
            self.time = now().time;
            return Ok(Tick::Idle);
        }
        self.looks = self.looks.wrapping_add(1);
        let is_told = settings.own && settings.clock == Clock::Cpu;
        let state = match is_told && self.looks % LOOK != 0 {
            true => None,
            false => {
                let Some(activity) = self.thread.activity() else {
                    self.has_ended = true;
                    return Ok(Tick::Ended);
                };
                if placement.leave(activity.processor) {
                    // The process continues meanwhile.
                    thread::sleep(SETTLE);
                }
                Some(activity.state).filter(|_| !is_told)
            }
        };
        let still = match &mut self.native {
            // A process that waits for a device would not stop.
            Some(native) if state != Some(State::Waiting) && native.size() < MOST_NATIVE => {
                native.stop()?
            }
            _ => None,
        };
        let Some(stack) = self.reader.read()? else {
            // Its time counts for the next sample.
            return Ok(Tick::Unread);
        };
        let (is_cut, lacks_inner) = (stack.is_cut, stack.lacks_inner);
        let stack = stack.clone();
        let now = now();
        // The end of a skipped pause may be unknown, so the measured time may be too short. It is at least the CPU
        // time.
        let wall = (now.time - self.time)
            .as_nanos()
            .max(used.unwrap_or(0).into());
        let values = [
            used.and_then(|used| i64::try_from(used).ok()),
            i64::try_from(wall).ok(),
        ];
        if let Some(native) = &mut self.native {
            let word = match still {
                Some(still) => native.resume(still, self.reader.target(), &stack)?,
                None => None,
            };
            let recording = self.number;
            let found = match word {
                Some(word) => NativeStack::At { recording, word },
                None if native.size() >= MOST_NATIVE => NativeStack::Full,
                None => NativeStack::Unknown,
            };
            natives.try_push(found)?;
        }
        self.add(&stack, values, now.date, state, profile)?;
        (self.cpu, self.time) = (cpu, now.time);
        Ok(Tick::Taken {
            is_cut,
            lacks_inner,
        })
    }

    fn add(
        &mut self,
        stack: &Stack,
        values: [Option<i64>; 2],
        date: SystemTime,
        state: Option<State>,
        profile: &mut Profile,
    ) -> Result<()> {
        let sample = profile.samples.len();
        let mut frames = Vec::new();
        for &frame in &stack.frames {
            let location = match self.frames.get(&frame) {
                Some(&location) => location,
                None => {
                    let location = self.location(frame, profile)?;
                    self.frames.try_put(frame, location)?;
                    location
                }
            };
            frames.try_push(location)?;
        }
        if stack.is_cut {
            let none = profile.strings.intern("")?;
            let mark = profile.frame(OUTER_CALLS, none, 0)?;
            frames.try_push(mark)?;
        }
        let id = profile.stacks.intern(&frames)?;
        if let Some(place) = stack.toplevel {
            let filename = profile.strings.intern(self.reader.texts.get(place.file))?;
            let toplevel = Toplevel {
                sample,
                filename,
                line: place.line,
            };
            profile.samples.toplevel.try_push(toplevel)?;
        }
        profile.samples.source.try_push(self.source)?;
        profile.samples.stack.try_push(id)?;
        let since = date.duration_since(UNIX_EPOCH).ok();
        if let Some(time) = since.and_then(|since| i64::try_from(since.as_nanos()).ok()) {
            profile.samples.times.try_push((sample, time))?;
        }
        for (column, value) in profile.values.iter_mut().zip(values) {
            match value {
                Some(value) => {
                    column.push(value)?;
                }
                None => column.column.try_push(f64::NAN)?,
            }
        }
        let Some(state) = state else {
            return Ok(());
        };
        let state = profile.strings.intern(in_a_word(state))?;
        let label = Label {
            sample,
            key: self.state_key,
            str: Some(state),
            num: None,
            unit: None,
            other: None,
        };
        profile.labels.try_push(label)
    }

    fn location(&self, frame: Frame, profile: &mut Profile) -> Result<LocationId> {
        let texts = &self.reader.texts;
        let (file, line) = match frame.place {
            Some(place) => (profile.strings.intern(texts.get(place.file))?, place.line),
            None => (profile.strings.intern("")?, 0),
        };
        profile.frame(texts.get(frame.name), file, line)
    }
}

/// The state of a thread as the value of a label.
pub fn in_a_word(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Sleeping => "sleeping",
        State::Waiting => "waiting",
        State::Stopped => "stopped",
        State::Ended => "ended",
        State::Other(_) => "other",
    }
}
