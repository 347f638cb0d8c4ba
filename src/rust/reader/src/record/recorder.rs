//! Records samples of running processes into a profile, in which each process is a source.

use crate::process::apart;
use crate::process::{Placement, Process, ProcessMemory, processors, why_refused};
use crate::record::changed::Named;
use crate::record::family::Family;
use crate::record::master::Master;
use crate::record::memory::MemoryWatch;
use crate::record::role::{self, Role};
use crate::record::session::Session;
use crate::record::slot::Slot;
use crate::record::wait_labels::name_by_roles;
use crate::recorded::result::{OfProcess, Recorded, Tick};
use crate::recorded::settings::{Asked, Clock, Settings, Wanted};
use crate::recorded::source::declare_types;
use crate::recorded::ticks::{next_tick, until_next};
use crate::recorded::waits::WaitNames;
use crate::stack::reader::StackReader;
use profile_core::analysis::label_frames::take_labels;
use profile_core::error::{Error, Result};
use profile_core::formats::problems::ProblemKind;
use profile_core::joint::{Files, NativeStack, insert_native};
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::message;
use profile_core::retry::chance;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest time between two checks whether to stop.
const STEP: Duration = Duration::from_millis(50);
/// The longest time between these checks while a process is expected to stop.
const SOON: Duration = Duration::from_millis(1);
/// The time between two searches for child processes, and two checks whether those that are recorded have ended.
const LOOK: Duration = Duration::from_millis(20);

/// Records processes for the set duration, or until all have ended.
pub fn record(wanted: &Wanted, settings: &Settings, stop: Stop) -> Result<Recorded> {
    let (recorded, was_stopped) = apart::run(stop, |stop| record_here(wanted, settings, stop));
    match recorded {
        Ok(mut recorded) => {
            recorded.was_stopped |= was_stopped;
            Ok(recorded)
        }
        // The user has pressed Ctrl-C.
        Err(_) if was_stopped && wanted.master.is_none() => Err(Error::Interrupted),
        Err(error) => Err(error),
    }
}

fn record_here(wanted: &Wanted, settings: &Settings, stop: Stop) -> Result<Recorded> {
    let files = Files::default();
    let mut recorder = Recorder::new(settings, &files)?;
    for &pid in wanted.pids {
        let process = Process::find(pid)?;
        recorder.attach(process, Role::Named(pid))?;
    }
    if let Some(asked) = &wanted.master {
        recorder.serve(asked)?;
    }
    let master = wanted.master.as_ref().map(|asked| asked.pid);
    let master = master.or(wanted.pids.first().copied());
    recorder.recorded.processors = match master {
        Some(master) => processors(master)?,
        None => None,
    };
    for (&pid, master) in wanted.workers.iter().zip(master.into_iter().cycle()) {
        recorder.attach_worker(Process::find(pid)?, Role::Worker(master))?;
    }
    match recorder.run(wanted.master.as_ref(), stop) {
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
    family: Family,
    /// Named processes that have executed another program.
    named: Named,
    /// When the first processes had been found. Forks that are found later are new.
    begin: Option<Instant>,
    /// The number of intervals since then, which are ticks of parallel work.
    ticks: usize,
    /// A process that records itself.
    master: Option<Master>,
    memory: MemoryWatch,
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
            family: Family::default(),
            named: Named::default(),
            begin: None,
            ticks: 0,
            master: None,
            memory: MemoryWatch::default(),
        })
    }

    fn attach(&mut self, process: Process, role: Role) -> Result<()> {
        let number = self.sessions.len();
        let is_fork = matches!(role, Role::Fork(_));
        let reader = if is_fork {
            self.reader_of_fork(&process)?
        } else {
            None
        };
        let (settings, files) = (self.settings, self.files);
        let profile = &mut self.recorded.profile;
        let mut session = Session::open(&process, reader, settings, files, number, profile)?;
        session.prepare()?;
        if let (true, Some(begin)) = (is_fork, self.begin) {
            // A worker that was found late may have older forks. The system knows its start in whole seconds.
            let most = begin.elapsed().as_secs_f64() + 1.0;
            if process.age().is_some_and(|age| age <= most) {
                session.include_start(begin);
            }
        }
        if let Some(r) = session.unknown() {
            let text = message!("process {}: {r}", process.pid);
            self.recorded.note(ProblemKind::UnknownContexts, &text);
        }
        // A dispatcher does no work.
        if self.settings.children && !matches!(role, Role::Dispatcher(_)) {
            session.record_slot(Slot::new(Some(role), self.ticks)?);
        }
        self.memory.add(&process, session.source_id())?;
        self.sessions.try_push(session)?;
        self.roles.try_push(role)?;
        self.name_waits()?;
        self.family.admit(process, role)
    }

    /// Each process may wait for any of the others.
    fn name_waits(&mut self) -> Result<()> {
        if self.settings.clock == Clock::Cpu || self.settings.names == WaitNames::None {
            return Ok(());
        }
        let mut pids = Vec::new();
        pids.try_extend_from(self.master.iter().map(Master::pid))?;
        pids.try_extend_from(self.sessions.iter().map(Session::pid))?;
        let settings = self.settings;
        let mut sessions = self.sessions.iter_mut();
        sessions.try_for_each(|session| session.name_waits(settings, &pids))
    }

    /// Names processes in waits by their roles.
    fn put_roles_in_waits(&mut self, roles: &[Option<String>]) -> Result<()> {
        let sessions = self.sessions.iter().map(Session::pid);
        let mut named = Vec::new();
        named.try_extend_from(sessions.zip(roles.iter().map(Option::as_deref)))?;
        if let Some(master) = &self.master {
            named.try_push((master.pid(), Some(role::MASTER)))?;
        }
        name_by_roles(&named, &mut self.recorded.profile)
    }

    /// A reader of this fork, if a related process is known.
    fn reader_of_fork(&self, fork: &Process) -> Result<Option<StackReader<ProcessMemory>>> {
        for session in self.sessions.iter().rev() {
            if let Some(reader) = session.reader_of_fork(fork)? {
                return Ok(Some(reader));
            }
        }
        match &self.master {
            Some(master) => master.reader_of_fork(fork),
            None => Ok(None),
        }
    }

    /// Records the processes that belong to another one from now on.
    fn serve(&mut self, asked: &Asked) -> Result<()> {
        let process = Process::find(asked.pid)?;
        let master = Master::open(process.clone(), self.settings, &mut self.recorded.profile)?;
        self.memory.add(&process, master.source_id())?;
        self.master = Some(master);
        self.family = Family::of(process, asked.variable.clone());
        Ok(())
    }

    /// Adds a worker that the user has named. If the system does not permit to look into it, it may record itself.
    fn attach_worker(&mut self, process: Process, role: Role) -> Result<()> {
        if self
            .sessions
            .iter()
            .any(|session| *session.process() == process)
        {
            return Ok(());
        }
        match self.attach(process.clone(), role) {
            Err(why) if process.has_r() && !process.may_be_read() && self.master.is_some() => {
                self.family.reject(process, role, why, Instant::now())
            }
            other => other,
        }
    }

    /// Adds R processes that belong to those that are recorded.
    fn attach_family(&mut self) -> Result<()> {
        let mut recorded = Vec::new();
        for session in self.sessions.iter().filter(|session| !session.has_ended()) {
            recorded.try_push(session.process().clone())?;
        }
        let now = Instant::now();
        for (process, role) in self.family.find(recorded, now)? {
            if self.family.is_too_large_for(&process, role)? {
                continue;
            }
            if !process.has_r() {
                self.family.pass_over(process, now)?;
                continue;
            }
            match self.attach(process.clone(), role) {
                Err(why @ Error::Process(_)) => self.family.reject(process, role, why, now)?,
                other => other?,
            }
        }
        Ok(())
    }

    /// Records named processes again that have executed R.
    fn attach_named(&mut self) -> Result<()> {
        let mut named = std::mem::take(&mut self.named);
        named.attach(Instant::now(), |process| {
            let role = Role::Named(process.pid);
            match self.attach(process, role) {
                Err(Error::Process(_)) => Ok(false),
                other => other.map(|()| true),
            }
        })?;
        self.named = named;
        Ok(())
    }

    /// Whether the recording is to end before its time.
    fn is_complete(&self) -> bool {
        match &self.master {
            Some(master) => master.has_ended(),
            None => self.named.is_empty() && self.sessions.iter().all(Session::has_ended),
        }
    }

    fn run(&mut self, asked: Option<&Asked>, stop: Stop) -> Result<()> {
        let placement = Placement::current();
        if self.settings.children {
            self.attach_family()?;
        }
        if let (Some(asked), Some(master)) = (asked, &self.master) {
            asked.begun.get_or_init(|| master.may_be_read());
        }
        let begin = Instant::now();
        self.begin = Some(begin);
        self.recorded.began = now();
        self.recorded.interval = self.settings.interval;
        let mut next = begin + self.settings.interval;
        let mut look = begin;
        while begin.elapsed() < self.settings.duration {
            if look.elapsed() >= LOOK {
                if self.is_complete() {
                    break;
                }
                self.attach_named()?;
                if self.settings.children {
                    self.attach_family()?;
                }
                look = Instant::now();
            }
            self.wait(next, stop)?;
            let passed = begin.elapsed().as_nanos() / self.settings.interval.as_nanos().max(1);
            let passed = usize::try_from(passed).unwrap_or(usize::MAX);
            let ticks = u32::try_from(passed.saturating_sub(self.ticks)).unwrap_or(u32::MAX);
            self.ticks = passed;
            if let Some(master) = &mut self.master {
                master.tick()?;
                master.look(ticks)?;
            }
            placement.begin_tick();
            for (session, role) in self.sessions.iter_mut().zip(&self.roles) {
                let recorded = &mut self.recorded;
                let (profile, natives) = (&mut recorded.profile, &mut self.natives);
                let tick = session.tick(self.settings, profile, natives, &placement)?;
                recorded.count(tick, session.pid(), why_refused)?;
                if tick == Tick::Unread {
                    recorded.note(ProblemKind::UnreadSample, &session.why_missing()?);
                }
                session.count_ticks(ticks)?;
                session.look_around()?;
                match tick {
                    Tick::Ended => self.memory.end(session.source_id(), begin.elapsed()),
                    Tick::Left => self.memory.leave(session.source_id()),
                    _ => {}
                }
                match (tick, role) {
                    (Tick::Left, Role::Named(_)) => {
                        self.named
                            .expect(session.process().clone(), Instant::now())?;
                    }
                    (Tick::Left, _) => self.family.forget(session.pid()),
                    _ => {}
                }
            }
            self.memory.look(&|| begin.elapsed());
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

    /// Notes which processes have executed a program that is not R, and which did nothing else.
    fn note_programs(&mut self) -> Result<()> {
        // A process that records itself knows its forks.
        let master = self.master.as_ref().map(|master| Role::Fork(master.pid()));
        for (row, (session, role)) in self.sessions.iter().zip(&self.roles).enumerate() {
            let done = session.done(*role);
            let done = done.filter(|done| done.has_left || Some(*role) != master);
            let Some(done) = done else {
                continue;
            };
            if done.is_start() {
                self.recorded.starts.try_push(session.source_id())?;
                continue;
            }
            let process = session.process();
            let mut later = self.sessions.iter().skip(row + 1);
            let runs_r = later.any(|later| later.process().is_same_as(process));
            if done.has_left && !runs_r && !matches!(role, Role::Fork(_)) {
                let left = (process.pid, process.program()?.unwrap_or_default());
                self.recorded.left.try_push(left)?;
            }
        }
        Ok(())
    }

    /// The role of each recorded process. It also notes those that were not recorded, with theirs.
    fn roles_in_words(&mut self) -> Result<Vec<Option<String>>> {
        let (refused, left_out) = (&self.family.refused, &self.family.left_out);
        let starts = &self.recorded.starts;
        // What was only the start of another program is no worker.
        let is_start = |session: &Session| starts.contains(&session.source_id());
        let mut roles = Vec::new();
        for (session, role) in self.sessions.iter().zip(&self.roles) {
            if !is_start(session) {
                roles.try_push(*role)?;
            }
        }
        roles.try_extend_from(refused.iter().map(|(_, role, _)| *role))?;
        roles.try_extend_from(left_out.iter().map(|(_, role)| *role))?;
        let mut words = role::in_words(&roles)?.into_iter();
        let mut next = || words.next().flatten();
        let of_sessions = self.sessions.iter().map(|session| {
            let is_real = !is_start(session);
            is_real.then(&mut next).flatten()
        });
        let of_sessions = of_sessions.try_vec()?;
        for (pid, _, why) in refused {
            let one = (*pid, next().unwrap_or_default(), message!("{why}"));
            self.recorded.refused.try_push(one)?;
        }
        for (pid, _) in left_out {
            let one = (*pid, next().unwrap_or_default());
            self.recorded.left_out.try_push(one)?;
        }
        Ok(of_sessions)
    }

    /// Adds the duration of each recording, native frames, and labels.
    fn finish(&mut self) -> Result<()> {
        self.note_programs()?;
        let roles = self.roles_in_words()?;
        self.put_roles_in_waits(&roles)?;
        if let Some(mut master) = self.master.take() {
            if let Some(track) = master.take_track()? {
                self.recorded.tracks.try_push(OfProcess {
                    source: master.source_id(),
                    master: 0,
                    track,
                })?;
            }
            let (source, lived) = (master.source_id(), self.begin.map(|begin| begin.elapsed()));
            if self.memory.has_ended(source) {
                self.memory.end(source, lived.unwrap_or_default());
            }
            self.recorded.readings = master.finish(&mut self.recorded.profile)?;
        }
        for (session, role) in self.sessions.iter_mut().zip(&self.roles) {
            if let Some(track) = session.take_track()? {
                self.recorded.tracks.try_push(OfProcess {
                    source: session.source_id(),
                    master: role.master().unwrap_or(0),
                    track,
                })?;
            }
        }
        for (session, role) in self.sessions.iter_mut().zip(&roles) {
            session.finish(role.as_deref(), &mut self.recorded.profile)?;
            self.recorded.pauses.try_extend(session.pauses())?;
        }
        let sessions = self.sessions.iter().zip(&roles);
        let roles = sessions.map(|(session, role)| (session.source_id(), role.as_deref()));
        self.memory.report(roles, &mut self.recorded)?;
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

/// The time in nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let date = since.and_then(|since| i64::try_from(since.as_nanos()).ok());
    date.unwrap_or_default()
}
