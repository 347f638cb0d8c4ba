//! A process that is recorded: at each tick, a sample of it is added to a profile.
//!
//! ```text
//! how long it ran, and its state ──► hold it ──► read its stack ──► let it go on ──► add the sample
//! ```

use crate::memory::{Mapping, Memory};
use crate::process::{NativeReader, Placement, Process, ProcessMemory, State, Thread, WhyFree};
use crate::reading::{Watched, read};
use crate::samples::{Measured, Samples, declare_types};
use crate::settings::{Clock, Settings};
use crate::source::{about_pauses, of_process, source};
use crate::stack::Reader;
use profile_core::error::Result;
use profile_core::joint::{Files, NativeStack};
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::model::Profile;
use std::thread;
use std::time::{Duration, Instant};

/// The maximum memory for the native stacks of a process, in bytes.
const MOST_NATIVE: usize = 512 << 20;
/// How long to wait after leaving the processor of the process.
const SETTLE: Duration = Duration::from_micros(100);
/// A process that records itself by CPU time is known to be running at a sample. The processor that it runs on is
/// checked only once in this many samples.
const LOOK: u32 = 16;
/// The time between two searches for the record of the active span. Files are searched once, which takes milliseconds.
const SEARCH: Duration = Duration::from_secs(1);

pub struct Session<'s, M = ProcessMemory, T = Thread> {
    number: usize,
    process: Process,
    thread: T,
    reader: Reader<M>,
    native: Option<NativeReader<'s>>,
    samples: Samples,
    /// The number of ticks at which the process was not idle.
    looks: u32,
    /// Whether the record of the active span was found, and when it was searched for.
    has_span: bool,
    searched: Instant,
    /// The files that were searched, by their addresses.
    modules: Vec<u64>,
    /// The CPU time and the time of the last sample.
    cpu: Option<u64>,
    time: Instant,
    begin: Instant,
    has_ended: bool,
    /// How long the process was stopped, each time, in nanoseconds.
    pauses: Vec<u32>,
}

/// What happened at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// There is no sample, because the process has used no CPU time.
    Idle,
    Taken {
        /// Whether outer calls were left out.
        is_cut: bool,
        /// Why the process was not kept where it was.
        free: Option<WhyFree>,
    },
    /// The stack changed during all attempts to read it.
    Unread,
    /// The process has ended.
    Ended,
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
        let reader = Reader::open(ProcessMemory::new(process.pid), &mappings);
        let mut reader = reader.map_err(|error| of_process(process.pid, error))?;
        let has_span = reader.find_span(&mappings)?;
        let thread = Thread::open(process, settings.stops())?;
        let native = match settings.native {
            true => {
                let native = NativeReader::open(process, reader.target(), &mappings, files)?;
                Some(native)
            }
            false => None,
        };
        let now = Instant::now();
        let session = Session::of(process, thread, reader, settings, profile, now)?;
        Ok(Session {
            number,
            native,
            has_span,
            modules: modules(&mappings)?,
            ..session
        })
    }

    /// Searches again for the record of the active span, since the process may have loaded this package meanwhile.
    pub fn search_span(&mut self) -> Result<()> {
        if self.has_span || self.has_ended || self.searched.elapsed() < SEARCH {
            return Ok(());
        }
        // A process that has just ended has no mappings.
        if let Ok(mappings) = self.process.mappings() {
            let modules = modules(&mappings)?;
            if modules != self.modules {
                self.has_span = self.reader.find_span(&mappings)?;
                self.modules = modules;
            }
        }
        self.searched = Instant::now();
        Ok(())
    }

    /// Lets the process go on if it has stopped later than was waited for it. Returns whether it still has not stopped.
    pub fn is_pending(&mut self) -> bool {
        self.thread.is_pending()
    }
}

/// Where files are mapped.
fn modules(mappings: &[Mapping]) -> Result<Vec<u64>> {
    let files = mappings.iter().filter(|mapping| mapping.starts_file);
    files.map(|mapping| mapping.addresses.start).try_vec()
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
            has_span: false,
            searched: now,
            modules: Vec::new(),
            cpu: thread.cpu_time(),
            thread,
            reader,
            native: None,
            samples: Samples::of(source, profile)?,
            time: now,
            begin: now,
            has_ended: false,
            pauses: Vec::new(),
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
        self.samples = Samples::of(source, profile)?;
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

    /// Sets how long the process was recorded, and how long it was stopped for that.
    pub fn finish(&self, profile: &mut Profile) -> Result<()> {
        let end = match self.has_ended {
            true => self.time,
            false => Instant::now(),
        };
        self.finish_at(end, profile);
        if !self.pauses.is_empty() {
            let about = about_pauses(&self.pauses, profile)?;
            let attributes = &mut self.samples.source(profile).attributes;
            attributes.try_extend_from(about.into_iter())?;
        }
        Ok(())
    }

    /// The same, for a recording that ended at another time, and without stops.
    pub fn finish_at(&self, end: Instant, profile: &mut Profile) {
        let duration = end.saturating_duration_since(self.begin).as_nanos();
        self.samples.source(profile).duration = i64::try_from(duration).ok();
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

    /// How long the process was stopped, each time, in nanoseconds.
    pub fn pauses(&self) -> &[u32] {
        &self.pauses
    }

    /// The reader of native stacks, if they are recorded.
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
            self.time = self.reader.now().time;
            return Ok(Tick::Idle);
        }
        self.looks = self.looks.wrapping_add(1);
        let is_told = settings.own && settings.clock == Clock::Cpu;
        let state = match is_told && self.looks % LOOK != 0 {
            true => State::Running,
            false => {
                let Some(activity) = self.thread.activity() else {
                    self.has_ended = true;
                    return Ok(Tick::Ended);
                };
                if placement.leave(activity.processor) {
                    // The process continues meanwhile.
                    thread::sleep(SETTLE);
                }
                activity.state
            }
        };
        let native = self.native.as_mut();
        let native = native.filter(|native| native.size() < MOST_NATIVE);
        let (thread, reader, pauses) = (&mut self.thread, &mut self.reader, &mut self.pauses);
        let Some(free) = read(thread, state, reader, native, pauses)? else {
            // Its time counts for the next sample.
            return Ok(Tick::Unread);
        };
        // Before and afterwards, this thread may have waited for a processor.
        let now = self.reader.moment();
        // The end of a skipped pause may be unknown, so the measured time may be too short. It is at least the CPU
        // time.
        let wall = now
            .time
            .saturating_duration_since(self.time)
            .as_nanos()
            .max(used.unwrap_or(0).into());
        let measured = Measured {
            values: [
                used.and_then(|used| i64::try_from(used).ok()),
                i64::try_from(wall).ok(),
            ],
            date: now.date,
            state: Some(state).filter(|_| !is_told),
        };
        let (stack, texts) = (self.reader.stack(), &self.reader.texts);
        let is_cut = stack.is_cut;
        if let Some(native) = &mut self.native {
            let recording = self.number;
            let found = match native.unwind(self.reader.target(), stack)? {
                Some(word) => NativeStack::At { recording, word },
                None if native.size() >= MOST_NATIVE => NativeStack::Full,
                None => NativeStack::Unknown,
            };
            natives.try_push(found)?;
        }
        self.samples.add(stack, texts, measured, profile)?;
        (self.cpu, self.time) = (cpu, now.time);
        self.reader.search_further()?;
        Ok(Tick::Taken { is_cut, free })
    }
}
