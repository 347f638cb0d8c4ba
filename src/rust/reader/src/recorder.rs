//! Samples of running processes become a profile, in which each process is a source.

use crate::apart;
use crate::process::{NativeReader, Process, ProcessMemory, State, Thread, gone};
use crate::source::{TYPES, source};
use crate::stack::{Frame, Reader, Stack};
use profile_core::error::{Error, Result};
use profile_core::formats::problems::Problems;
use profile_core::joint::{Files, NativeStack, insert_native};
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::message;
use profile_core::model::{Label, LocationId, Profile, SourceId, StringId, Toplevel, Values};
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const WHAT: &str = "the samples of a process";
/// The longest time between two checks whether to stop.
const STEP: Duration = Duration::from_millis(50);
/// The most memory for the native stacks of a process, in bytes.
const MOST_NATIVE: usize = 512 << 20;
/// How often children are looked for.
const CHILDREN: Duration = Duration::from_millis(100);

/// When a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// If the thread has used CPU time since the last one.
    Cpu,
    /// Always.
    Wall,
}

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub interval: Duration,
    pub duration: Duration,
    pub event: Event,
    /// Whether processes that these start are recorded as well.
    pub children: bool,
    /// Whether the processes stand still while their stacks are read, so that native frames can be found.
    pub pause: bool,
    /// Whether what was read is read again. Tests show what happens otherwise.
    pub check: bool,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Recorded {
    pub profile: Profile,
    /// The number of samples that could not be read.
    pub unread: usize,
    /// The number of samples whose outermost calls were left out.
    pub cut: usize,
    /// Problems of native stacks.
    pub problems: Problems,
    /// Processes that ended meanwhile.
    pub ended: Vec<i32>,
    /// Whether the user ended the recording.
    pub was_stopped: bool,
}

/// Records processes for some time, or until all have ended.
pub fn record(pids: &[i32], settings: &Settings, stop: Stop) -> Result<Recorded> {
    if !settings.pause {
        return record_here(pids, settings, stop);
    }
    let (recorded, was_stopped) = apart::run(stop, |stop| record_here(pids, settings, stop));
    match recorded {
        Ok(mut recorded) => {
            recorded.was_stopped |= was_stopped;
            Ok(recorded)
        }
        Err(_) if was_stopped => Err(Error::Interrupted),
        Err(error) => Err(error),
    }
}

fn record_here(pids: &[i32], settings: &Settings, stop: Stop) -> Result<Recorded> {
    let files = Files::default();
    let mut recorder = Recorder::new(settings, &files)?;
    for &pid in pids {
        let process = Process::find(pid)?;
        recorder.attach(process)?;
    }
    match recorder.run(stop) {
        Err(Error::Interrupted) => recorder.recorded.was_stopped = true,
        other => other?,
    }
    recorder.finish()?;
    Ok(recorder.recorded)
}

struct Recorder<'s> {
    settings: &'s Settings,
    recorded: Recorded,
    sessions: Vec<Session<'s>>,
    /// That of each sample, if processes are stopped.
    natives: Vec<NativeStack>,
    /// Owns copies of unwind tables.
    files: &'s Files,
    /// Processes that were looked at, and which do not run R or are being recorded.
    known: Vec<Process>,
    keys: Keys,
}

/// Texts that each sample needs.
struct Keys {
    state: StringId,
}

/// A process that is recorded.
struct Session<'s> {
    number: usize,
    process: Process,
    thread: Thread,
    reader: Reader<ProcessMemory>,
    native: Option<NativeReader<'s>>,
    source: SourceId,
    frames: HashMap<Frame, LocationId, foldhash::fast::RandomState>,
    /// The CPU time and the moment of the last sample.
    cpu: Option<u64>,
    time: Instant,
    begin: Instant,
    has_ended: bool,
}

impl<'s> Recorder<'s> {
    fn new(settings: &'s Settings, files: &'s Files) -> Result<Recorder<'s>> {
        let mut recorded = Recorded::default();
        let profile = &mut recorded.profile;
        for (name, unit) in TYPES {
            let column = Values::absent(name, unit, 0)?;
            profile.values.try_push(column, WHAT)?;
        }
        let keys = Keys {
            state: profile.strings.intern("state")?,
        };
        Ok(Recorder {
            settings,
            recorded,
            sessions: Vec::new(),
            natives: Vec::new(),
            files,
            known: Vec::new(),
            keys,
        })
    }

    fn attach(&mut self, process: Process) -> Result<()> {
        let mappings = process.mappings()?;
        let memory = ProcessMemory::new(process.pid);
        let reader = Reader::open(memory, &mappings, self.settings.check);
        let mut reader = reader.map_err(|error| of_process(process.pid, error))?;
        reader.prepare()?;
        let native = match self.settings.pause {
            true => Some(NativeReader::open(
                &process,
                reader.target(),
                &mappings,
                self.files,
            )?),
            false => None,
        };
        let thread = Thread::open(&process);
        let thread = thread.ok_or_else(|| gone(process.pid))?;
        let source = source(&process, self.settings, &mut self.recorded.profile)?;
        let source = self.recorded.profile.add_source(source)?;
        let now = Instant::now();
        self.sessions.try_push(
            Session {
                number: self.sessions.len(),
                native,
                cpu: thread.cpu_time(),
                thread,
                process: process.clone(),
                reader,
                source,
                frames: HashMap::default(),
                time: now,
                begin: now,
                has_ended: false,
            },
            WHAT,
        )?;
        self.known.try_push(process, WHAT)
    }

    /// Adds R processes that were started by those that are recorded.
    fn attach_children(&mut self) -> Result<()> {
        let mut parents = Vec::new();
        for session in self.sessions.iter().filter(|session| !session.has_ended) {
            parents.try_push(session.process.clone(), WHAT)?;
        }
        while let Some(parent) = parents.pop() {
            for pid in parent.children()? {
                let Ok(child) = Process::find(pid) else {
                    continue;
                };
                // R may be started by a shell.
                parents.try_push(child.clone(), WHAT)?;
                if self.known.contains(&child) {
                    continue;
                }
                match self.attach(child.clone()) {
                    Ok(()) => {}
                    // It may become R, if it is only starting.
                    Err(Error::Process(_)) if child.age().is_none_or(|age| age < 5.0) => {}
                    Err(Error::Process(_)) => self.known.try_push(child, WHAT)?,
                    Err(other) => return Err(other),
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, stop: Stop) -> Result<()> {
        let begin = Instant::now();
        let mut next = begin + self.settings.interval;
        let mut look = begin;
        while begin.elapsed() < self.settings.duration
            && self.sessions.iter().any(|session| !session.has_ended)
        {
            wait(next, stop)?;
            if self.settings.children && look.elapsed() >= CHILDREN {
                self.attach_children()?;
                look = Instant::now();
            }
            for session in &mut self.sessions {
                let (recorded, natives) = (&mut self.recorded, &mut self.natives);
                session.tick(self.settings, recorded, natives, &self.keys)?;
            }
            // Moments that have passed are left out, which are many after the system was suspended.
            next = (next + self.settings.interval).max(Instant::now());
        }
        Ok(())
    }

    /// Adds how long each process was recorded, and native frames.
    fn finish(&mut self) -> Result<()> {
        for session in &self.sessions {
            let source = &mut self.recorded.profile.sources[session.source.row()];
            let end = match session.has_ended {
                true => session.time,
                false => Instant::now(),
            };
            source.duration = i64::try_from((end - session.begin).as_nanos()).ok();
        }
        let mut recordings = Vec::new();
        for session in &mut self.sessions {
            if let Some(native) = &mut session.native {
                recordings.try_push(native.recording()?, WHAT)?;
            }
        }
        if self.settings.pause {
            // What was recorded is not lost if the user presses Ctrl-C now.
            let profile = &mut self.recorded.profile;
            let problems = insert_native(profile, &recordings, &self.natives, &|| false)?;
            self.recorded.problems = problems;
        }
        Ok(())
    }
}

impl Session<'_> {
    fn tick(
        &mut self,
        settings: &Settings,
        recorded: &mut Recorded,
        natives: &mut Vec<NativeStack>,
        keys: &Keys,
    ) -> Result<()> {
        if self.has_ended {
            return Ok(());
        }
        let Some(state) = self.thread.state() else {
            self.has_ended = true;
            return recorded.ended.try_push(self.process.pid, WHAT);
        };
        let cpu = self.thread.cpu_time();
        let used = match (cpu, self.cpu) {
            (Some(now), Some(before)) => Some(now.saturating_sub(before)),
            _ => None,
        };
        if settings.event == Event::Cpu && used == Some(0) {
            // A pause is no part of the next sample.
            self.time = Instant::now();
            return Ok(());
        }
        let still = match &mut self.native {
            // It would not stop while it waits for a device.
            Some(native) if state != State::Waiting && native.size() < MOST_NATIVE => {
                native.stop()?
            }
            _ => None,
        };
        let Some(stack) = self.reader.read()? else {
            // Its time counts for the next sample.
            recorded.unread += 1;
            return Ok(());
        };
        recorded.cut += usize::from(stack.is_cut);
        let (now, moment) = (Instant::now(), SystemTime::now());
        let values = [
            used.and_then(|used| i64::try_from(used).ok()),
            i64::try_from((now - self.time).as_nanos()).ok(),
        ];
        let stack = stack.clone();
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
            natives.try_push(found, WHAT)?;
        }
        self.add(&stack, values, moment, state, &mut recorded.profile, keys)?;
        (self.cpu, self.time) = (cpu, now);
        Ok(())
    }

    fn add(
        &mut self,
        stack: &Stack,
        values: [Option<i64>; 2],
        moment: SystemTime,
        state: State,
        profile: &mut Profile,
        keys: &Keys,
    ) -> Result<()> {
        let sample = profile.samples.len();
        let mut frames = Vec::new();
        for &frame in &stack.frames {
            let location = match self.frames.get(&frame) {
                Some(&location) => location,
                None => {
                    let location = self.location(frame, profile)?;
                    self.frames.try_put(frame, location, WHAT)?;
                    location
                }
            };
            frames.try_push(location, WHAT)?;
        }
        if stack.is_cut {
            let none = profile.strings.intern("")?;
            let mark = profile.frame(CUT, none, 0)?;
            frames.try_push(mark, WHAT)?;
        }
        let id = profile.stacks.intern(&frames)?;
        if let Some(place) = stack.toplevel {
            let filename = profile.strings.intern(self.reader.texts.get(place.file))?;
            let toplevel = Toplevel {
                sample,
                filename,
                line: place.line,
            };
            profile.samples.toplevel.try_push(toplevel, WHAT)?;
        }
        profile.samples.source.try_push(self.source, WHAT)?;
        profile.samples.stack.try_push(id, WHAT)?;
        let since = moment.duration_since(UNIX_EPOCH).ok();
        if let Some(time) = since.and_then(|since| i64::try_from(since.as_nanos()).ok()) {
            profile.samples.times.try_push((sample, time), WHAT)?;
        }
        for (column, value) in profile.values.iter_mut().zip(values) {
            match value {
                Some(value) => {
                    column.push(value)?;
                }
                None => column.column.try_push(f64::NAN, WHAT)?,
            }
        }
        let state = profile.strings.intern(in_a_word(state))?;
        let label = Label {
            sample,
            key: keys.state,
            str: Some(state),
            num: None,
            unit: None,
            other: None,
        };
        profile.labels.try_push(label, WHAT)
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

/// The outermost frame of a stack that was cut.
pub const CUT: &str = "<outer calls not read>";

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

/// Waits until a moment, and checks meanwhile whether to stop.
fn wait(until: Instant, stop: Stop) -> Result<()> {
    loop {
        cancel::check(stop)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(STEP));
    }
}

impl Event {
    /// The name of its sample type.
    pub fn name(self) -> &'static str {
        match self {
            Event::Cpu => "cpu",
            Event::Wall => "wall",
        }
    }
}

/// Says in an error about the contents of a process which process it is.
pub fn of_process(pid: i32, error: Error) -> Error {
    match error {
        Error::Process(why) => Error::Process(message!("Cannot look into process {pid}. {why}")),
        other => other,
    }
}
