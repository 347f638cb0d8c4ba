//! Records samples of running processes into a profile, in which each process is a source.

use crate::process::apart;
use crate::process::{Placement, Process, WhyFree, Workers};
use crate::record::role::{self, Role};
use crate::record::samples::declare_types;
use crate::record::session::{Session, Tick};
use crate::record::settings::Settings;
use crate::record::ticks::{next_tick, until_next};
use crate::stack::frames::Cut;
use profile_core::analysis::label_frames::take_labels;
use profile_core::error::{Error, Position, Result};
use profile_core::formats::problems::{ProblemKind, Problems};
use profile_core::joint::{Files, NativeStack, insert_native};
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_core::model::Profile;
use profile_core::retry::chance;
use std::thread;
use std::time::{Duration, Instant};

/// The longest time between two checks whether to stop.
const STEP: Duration = Duration::from_millis(50);
/// The longest time between these checks while a process is expected to stop.
const SOON: Duration = Duration::from_millis(1);
/// The time between two searches for child processes.
const CHILDREN: Duration = Duration::from_millis(100);

/// What was recorded.
#[derive(Debug, Default)]
pub struct Recorded {
    pub profile: Profile,
    /// The number of samples that could not be read.
    pub unread: usize,
    /// The number of samples that were read while the process went on, because another process traces it.
    pub traced: usize,
    /// How long processes were stopped, each time, in nanoseconds.
    pub pauses: Vec<u32>,
    /// Problems of stacks.
    pub problems: Problems,
    /// Processes that ended during the recording.
    pub ended: Vec<i32>,
    /// Processes that executed another program during the recording, and its command line.
    pub left: Vec<(i32, String)>,
    /// Whether the user ended the recording.
    pub was_stopped: bool,
}

impl Recorded {
    fn count(&mut self, tick: Tick, pid: i32) -> Result<()> {
        match tick {
            Tick::Idle | Tick::Left => {}
            Tick::Taken { cut, free } => {
                if let Some(cut) = cut {
                    let sample = self.profile.samples.len();
                    self.note(kind_of_cut(cut), &message!("sample {sample}"));
                }
                self.traced += usize::from(free == Some(WhyFree::Traced));
            }
            Tick::Unread => self.unread += 1,
            Tick::Ended => self.ended.try_push(pid)?,
        }
        Ok(())
    }

    /// Notes a problem of the last sample, or of one that follows it.
    fn note(&mut self, kind: ProblemKind, text: &str) {
        let sample = self.profile.samples.len() as u64;
        self.problems
            .note(kind, Position::Sample(sample), text.as_bytes());
    }
}

/// Why a sample lacks outer calls.
fn kind_of_cut(cut: Cut) -> ProblemKind {
    match cut {
        Cut::TooDeep => ProblemKind::DeepStack,
        Cut::Late => ProblemKind::UnreadCalls,
        Cut::Full => ProblemKind::StacksFull,
    }
}

/// Records processes for the set duration, or until all have ended.
pub fn record(pids: &[i32], settings: &Settings, stop: Stop) -> Result<Recorded> {
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
        recorder.attach(process, Role::Named(pid))?;
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
    /// The role of each.
    roles: Vec<Role>,
    /// The native stack of each sample, if they are recorded.
    natives: Vec<NativeStack>,
    /// Owns copies of unwind tables.
    files: &'s Files,
    /// Processes that need no further examination: they do not run R, or are already being recorded.
    known: Vec<Process>,
    workers: Workers,
}

impl<'s> Recorder<'s> {
    fn new(settings: &'s Settings, files: &'s Files) -> Result<Recorder<'s>> {
        let mut recorded = Recorded::default();
        declare_types(&mut recorded.profile)?;
        Ok(Recorder {
            settings,
            recorded,
            sessions: Vec::new(),
            roles: Vec::new(),
            natives: Vec::new(),
            files,
            known: Vec::new(),
            workers: Workers::default(),
        })
    }

    fn attach(&mut self, process: Process, role: Role) -> Result<()> {
        let number = self.sessions.len();
        let profile = &mut self.recorded.profile;
        let mut session = Session::open(&process, self.settings, self.files, number, profile)?;
        session.prepare()?;
        if let Some(r) = session.unknown() {
            let text = message!("process {}: {r}", process.pid);
            self.recorded.note(ProblemKind::UnknownContexts, &text);
        }
        self.sessions.try_push(session)?;
        self.roles.try_push(role)?;
        self.known.try_push(process)
    }

    /// Adds R processes that were started by those that are recorded, or work for them.
    fn attach_children(&mut self) -> Result<()> {
        let mut parents = Vec::new();
        for session in self.sessions.iter().filter(|session| !session.has_ended()) {
            parents.try_push(session.process().clone())?;
        }
        for (worker, master) in self.workers.find(&parents)? {
            self.attach_other(&worker, || Ok(Role::Worker(master)))?;
            parents.try_push(worker)?;
        }
        while let Some(parent) = parents.pop() {
            for pid in parent.children()? {
                if let Ok(child) = Process::find(pid) {
                    self.attach_other(&child, || Role::of_child(&child, parent.pid))?;
                    // R may be started by a shell.
                    parents.try_push(child)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a process that the user has not named, and that may not run R.
    fn attach_other(
        &mut self,
        process: &Process,
        role: impl FnOnce() -> Result<Role>,
    ) -> Result<()> {
        if self.known.contains(process) {
            return Ok(());
        }
        match self.attach(process.clone(), role()?) {
            // A process that has just been started may still become R.
            Err(Error::Process(_)) if process.age().is_none_or(|age| age < 5.0) => Ok(()),
            Err(Error::Process(_)) => self.known.try_push(process.clone()),
            other => other,
        }
    }

    fn run(&mut self, stop: Stop) -> Result<()> {
        let placement = Placement::current();
        if self.settings.children {
            self.attach_children()?;
        }
        let begin = Instant::now();
        let mut next = begin + self.settings.interval;
        let mut look = begin;
        while begin.elapsed() < self.settings.duration
            && self.sessions.iter().any(|session| !session.has_ended())
        {
            self.wait(next, stop)?;
            if self.settings.children && look.elapsed() >= CHILDREN {
                self.attach_children()?;
                look = Instant::now();
            }
            for session in &mut self.sessions {
                let recorded = &mut self.recorded;
                let (profile, natives) = (&mut recorded.profile, &mut self.natives);
                let tick = session.tick(self.settings, profile, natives, &placement)?;
                recorded.count(tick, session.pid())?;
                if tick == Tick::Unread {
                    recorded.note(ProblemKind::UnreadSample, &session.why_missing()?);
                }
                if tick == Tick::Left || session.look_around()? {
                    let command = session.process().command()?;
                    recorded.left.try_push((session.pid(), command))?;
                }
            }
            let pause = until_next(self.settings.interval, chance());
            next = next_tick(next, pause, Instant::now());
        }
        Ok(())
    }

    /// Waits until the given time, and checks meanwhile whether to stop.
    fn wait(&mut self, until: Instant, stop: Stop) -> Result<()> {
        loop {
            cancel::check(stop)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            // A process that stops late is to go on at once, so all of them are asked.
            let pending = self.sessions.iter_mut().map(Session::is_pending);
            let step = if pending.fold(false, |any, is| any | is) {
                SOON
            } else {
                STEP
            };
            thread::sleep(left.min(step));
        }
    }

    /// Adds the duration of each recording, native frames, and labels.
    fn finish(&mut self) -> Result<()> {
        let roles = role::in_words(&self.roles)?;
        for (session, role) in self.sessions.iter_mut().zip(&roles) {
            session.finish(role.as_deref(), &mut self.recorded.profile)?;
            self.recorded.pauses.try_extend(session.pauses())?;
        }
        let mut recordings = Vec::new();
        for session in &mut self.sessions {
            if let Some(native) = session.native() {
                recordings.try_push(native.recording()?)?;
            }
        }
        if self.settings.native {
            // This cannot be interrupted, so that the recording is not lost if the user presses Ctrl-C now.
            let (profile, natives) = (&mut self.recorded.profile, &self.natives);
            let problems = &mut self.recorded.problems;
            insert_native(profile, &recordings, natives, problems, &|| false)?;
        }
        take_labels(&mut self.recorded.profile, &|| false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_samples_is_counted() {
        let mut recorded = Recorded::default();
        let taken = |cut, free| Tick::Taken { cut, free };
        for tick in [
            Tick::Idle,
            taken(None, None),
            taken(Some(Cut::TooDeep), None),
            taken(Some(Cut::Late), None),
            taken(None, Some(WhyFree::Traced)),
            taken(Some(Cut::Late), Some(WhyFree::Traced)),
            taken(None, Some(WhyFree::Slow)),
            taken(None, Some(WhyFree::Traced)),
            Tick::Unread,
            Tick::Ended,
            Tick::Left,
        ] {
            recorded.count(tick, 7).unwrap();
        }
        let counts = [recorded.traced, recorded.unread];
        assert_eq!((counts, recorded.ended), ([3, 1], vec![7]));
        let cut = [(ProblemKind::DeepStack, 1), (ProblemKind::UnreadCalls, 2)];
        assert_eq!(recorded.problems.counts(), cut);
    }
}
