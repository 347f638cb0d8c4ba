//! A process that is recorded: at each tick, a sample of it is added to a profile.
//!
//! ```text
//! its state ──► hold it ──► does it compute? ──► read its stack ──► let it go on ──► add the sample
//! ```
//!
//! A tick is a random moment. If every tick is used ([`crate::record::stride`]), it stands for one interval of real time, and for as
//! much CPU time if the process computes at it ([`crate::process::computing`]). No time is ever moved to the stack of another
//! moment: a process that sleeps at a tick may have used CPU time since the last one, but not where it stands now. At the
//! end, all CPU times get the factor by which their sum equals the CPU clock ([`crate::record::cpu_clock`]).

use crate::process::Watched;
use crate::process::{NativeReader, Placement, Process, ProcessMemory, Thread, Throttling};
use crate::record::changed::Done;
use crate::record::cpu_clock::CpuClock;
use crate::record::follow::{self, Followed};
use crate::record::role::Role;
use crate::record::samples::{AtTick, Samples, add_label};
use crate::record::slot::Slot;
use crate::record::source::{about_cpu, about_pauses, of_process, source};
use crate::record::stop_and_read::{Outcome, Which, read};
use crate::record::stride::Stride;
use crate::record::threads::ThreadWatch;
use crate::record::waiting::{Seen, Waiting, is_asleep};
use crate::recorded::result::Tick;
use crate::recorded::scheduled::{Schedule, Scheduled, Since};
use crate::recorded::settings::{Clock, Settings};
use crate::recorded::source::{attribute, declare_types};
use crate::recorded::states::{Activity, State, WhyFree};
use crate::recorded::threads::about_threads;
use crate::recorded::waits::{WAITS_FOR, WAITS_REFUSED, Wait, WaitKind, of_r};
use crate::stack::reader::StackReader;
use profile_core::analysis::parallel::Track;
use profile_core::error::Result;
use profile_core::joint::{Files, NativeStack};
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::model::{PROCESS_ROLE, Profile, SourceId, ValueKind};
use profile_runtime::memory::{Mapping, Memory};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum memory for the native stacks of a process, in bytes.
const MOST_NATIVE: usize = 512 << 20;
/// How long to wait after leaving the processor of the process.
const SETTLE: Duration = Duration::from_micros(100);
/// The time between two looks at what the process has loaded.
const SEARCH: Duration = Duration::from_secs(1);

pub struct Session<'s, M = ProcessMemory, T = Thread> {
    number: usize,
    process: Process,
    thread: T,
    reader: StackReader<M>,
    native: Option<NativeReader<'s>>,
    samples: Samples,
    /// Whether the record of the active span was found, and when it was searched for.
    has_span: bool,
    searched: Instant,
    /// The files that were searched, by their addresses.
    modules: Vec<u64>,
    cpu: CpuClock,
    schedule: Schedule,
    /// What the thread has done between the last two ticks, if that is known.
    since: Option<Since>,
    waiting: Waiting,
    /// How long its cgroup was throttled before this recording, in nanoseconds, if it has one.
    throttling: Option<(Throttling, Option<u64>)>,
    /// What it does for parallel work, if that is recorded.
    slot: Option<Slot>,
    /// The CPU time of all threads of the process, if they can be read.
    threads: Option<ThreadWatch>,
    /// The time between two ticks, for which a sample stands if every tick is used.
    interval: Duration,
    stride: Stride,
    begin: Instant,
    /// The last tick.
    last: Instant,
    has_ended: bool,
    has_left: bool,
    /// The number of samples.
    taken: usize,
    /// Whether the last stack could not be read.
    is_unread: bool,
    /// How long the process was stopped, each time, in nanoseconds.
    pauses: Vec<u32>,
}

impl<'s> Session<'s> {
    /// Opens a process, which becomes a source of the profile. `number` identifies its native stacks. A fork may have a
    /// reader already.
    pub fn open(
        process: &Process,
        reader: Option<StackReader<ProcessMemory>>,
        settings: &Settings,
        files: &'s Files,
        number: usize,
        profile: &mut Profile,
    ) -> Result<Session<'s>> {
        let mappings = process.mappings()?;
        let mut reader = match reader {
            Some(reader) => reader,
            None => open_reader(process, &mappings)?,
        };
        if settings.positions {
            reader.read_positions();
        }
        let has_span = reader.find_span(&mappings)?;
        let thread =
            reader.locate(|r, memory| follow::open(process, r, memory, settings.stops()))?;
        let native = if settings.native {
            let native = NativeReader::open(process, reader.r(), files);
            Some(native.map_err(|error| of_process(process.pid, error))?)
        } else {
            None
        };
        let threads = ThreadWatch::start(process, thread.id())?;
        let now = Instant::now();
        let session = Session::new(process, thread, reader, settings, profile, now)?;
        let throttling = Throttling::of(process.pid)?;
        Ok(Session {
            number,
            native,
            threads: Some(threads),
            has_span,
            throttling: throttling.map(|group| {
                let before = group.time();
                (group, before)
            }),
            modules: modules(&mappings)?,
            ..session
        })
    }

    /// A reader of a fork of this process, or of another fork of the same one.
    pub fn reader_of_fork(&self, fork: &Process) -> Result<Option<StackReader<ProcessMemory>>> {
        self.reader.of_fork(ProcessMemory::new(fork.pid))
    }

    /// Looks now and then whether the process has loaded this package, and so has a record of the active span.
    pub fn look_around(&mut self) -> Result<()> {
        if self.has_ended || self.has_span || self.searched.elapsed() < SEARCH {
            return Ok(());
        }
        // A process that has just ended has no mappings.
        if let Ok(mappings) = self.process.mappings() {
            let modules = modules(&mappings)?;
            if modules != self.modules {
                self.has_span = self.reader.find_span(&mappings)?;
                self.modules = modules;
                // A stack that was read before has no span.
                self.waiting.read_again();
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

/// A reader of the stacks of a process.
pub fn open_reader(process: &Process, mappings: &[Mapping]) -> Result<StackReader<ProcessMemory>> {
    let memory = ProcessMemory::new(process.pid);
    StackReader::open(memory, mappings, &process.named()?)
        .map_err(|error| of_process(process.pid, error))
}

/// Where files are mapped.
fn modules(mappings: &[Mapping]) -> Result<Vec<u64>> {
    let files = mappings.iter().filter(|mapping| mapping.starts_file);
    files.map(|mapping| mapping.addresses.start).try_vec()
}

impl<'s, M: Memory, T: Watched> Session<'s, M, T> {
    /// Records what `reader` reads, which is the process of `thread`, without native stacks.
    pub fn new(
        process: &Process,
        thread: T,
        reader: StackReader<M>,
        settings: &Settings,
        profile: &mut Profile,
        now: Instant,
    ) -> Result<Session<'s, M, T>> {
        let source = source(process, settings, profile)?;
        let mut cpu = CpuClock::default();
        cpu.read(thread.cpu_time(), now);
        let mut thread = thread;
        thread.name_waits(settings.names, &[])?;
        let mut schedule = Schedule::default();
        schedule.skip(thread.scheduled());
        Ok(Session {
            number: 0,
            process: process.clone(),
            has_span: false,
            searched: now,
            modules: Vec::new(),
            cpu,
            schedule,
            since: None,
            waiting: Waiting::default(),
            throttling: None,
            slot: None,
            threads: None,
            interval: settings.interval,
            stride: Stride::new(settings.interval),
            thread,
            reader,
            native: None,
            samples: Samples::new(source, profile)?,
            begin: now,
            last: now,
            has_ended: false,
            has_left: false,
            taken: 0,
            is_unread: false,
            pauses: Vec::new(),
        })
    }

    /// Includes the CPU time that the process has used before it was opened. It started later than `begin`.
    pub fn include_start(&mut self, begin: Instant) {
        let now = self.reader.now().time;
        self.cpu = CpuClock::default();
        self.cpu.read(Some(0), begin);
        self.cpu.read(self.thread.cpu_time(), now);
        self.schedule.skip(Some(Scheduled::default()));
        if let Some(threads) = &mut self.threads {
            threads.include_start();
        }
    }

    /// Finds what is needed for complete stacks from the first sample on. This takes some milliseconds.
    pub fn prepare(&mut self) -> Result<()> {
        self.reader.prepare()
    }

    /// Continues in another profile, which is empty.
    pub fn continue_in(&mut self, settings: &Settings, profile: &mut Profile) -> Result<()> {
        self.continue_at(Instant::now(), settings, profile)
    }

    /// Continues in another profile, which is empty, at a given time.
    pub fn continue_at(
        &mut self,
        now: Instant,
        settings: &Settings,
        profile: &mut Profile,
    ) -> Result<()> {
        declare_types(profile)?;
        let source = source(&self.process, settings, profile)?;
        self.samples = Samples::new(source, profile)?;
        // What is open is about samples of the profile before.
        self.waiting.forget();
        self.begin = now;
        Ok(())
    }

    /// Excludes the time since the last tick: what happened meanwhile is unknown.
    pub fn skip_gap(&mut self) {
        let now = self.reader.now().time;
        self.cpu.skip(self.thread.cpu_time(), now);
        self.schedule.skip(self.thread.scheduled());
        self.waiting.forget();
    }

    /// Takes over the thread of a session of the same process, which is known even if R runs no function now, and its CPU
    /// clock. Samples that this has not finished are lost.
    pub fn succeed(&mut self, before: &mut Session<'s, M, T>) {
        std::mem::swap(&mut self.thread, &mut before.thread);
        let stack = before.reader.r().stack.clone();
        self.reader.locate(|r, _| r.stack = stack);
        self.cpu = std::mem::take(&mut before.cpu);
        self.cpu.discard();
        self.schedule = std::mem::take(&mut before.schedule);
        std::mem::swap(&mut self.threads, &mut before.threads);
    }

    /// Ends the recording now: adds how long it was, its CPU time, how long the process was stopped, and its role.
    pub fn finish(&mut self, role: Option<&str>, profile: &mut Profile) -> Result<()> {
        let mut end = self.last;
        if !self.has_ended {
            end = self.reader.now().time;
            self.cpu.read(self.thread.cpu_time(), end);
            self.schedule.read(self.thread.scheduled());
        }
        self.finish_at(end, profile)?;
        if !self.pauses.is_empty() {
            let about = about_pauses(&self.pauses, profile)?;
            let attributes = &mut self.samples.source(profile).attributes;
            attributes.try_extend_from(about.into_iter())?;
        }
        if let Some(role) = role {
            let role = attribute(PROCESS_ROLE, ValueKind::String, role, profile)?;
            self.samples.source(profile).attributes.try_push(role)?;
        }
        Ok(())
    }

    /// Ends a recording without stops at a given time, at the last tick or later: adds how long it was, and its CPU time.
    pub fn finish_at(&mut self, end: Instant, profile: &mut Profile) -> Result<()> {
        let duration = end.saturating_duration_since(self.begin).as_nanos();
        self.samples.source(profile).duration = i64::try_from(duration).ok();
        let balance = self.cpu.end(self.interval, !profile.samples.is_empty())?;
        let (delayed, throttled) = (self.schedule.take_delayed(), self.take_throttled());
        let mut about = about_cpu(balance, delayed, throttled, profile)?;
        if self.thread.is_wait_refused() {
            about.try_push(attribute(WAITS_REFUSED, ValueKind::Int, "1", profile)?)?;
        }
        if let Some(threads) = &mut self.threads {
            if !self.has_ended {
                threads.read(self.thread.id())?;
            }
            let threads = threads.end(!profile.samples.is_empty())?;
            about.try_extend_from(about_threads(&threads, profile)?.into_iter())?;
        }
        let attributes = &mut self.samples.source(profile).attributes;
        attributes.try_extend_from(about.into_iter())?;
        let interval = self.interval.as_nanos() as f64;
        self.samples.scale_cpu(interval, balance.factor, profile)
    }

    /// How long its cgroup was throttled since this was last asked, in nanoseconds.
    fn take_throttled(&mut self) -> Option<u64> {
        let (group, before) = self.throttling.as_mut()?;
        let now = group.time();
        let before = std::mem::replace(before, now);
        Some(now?.saturating_sub(before?))
    }

    /// Names in waits, and the other processes that they may name.
    pub fn name_waits(&mut self, settings: &Settings, others: &[i32]) -> Result<()> {
        self.thread.name_waits(settings.names, others)
    }

    /// Whether the system does not permit to see what its thread waits for.
    pub fn is_wait_refused(&self) -> bool {
        self.thread.is_wait_refused()
    }

    pub fn pid(&self) -> i32 {
        self.process.pid
    }

    /// See [`crate::running_r::RunningR::unknown()`].
    pub fn unknown(&self) -> Option<String> {
        self.reader.r().unknown()
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// What the process has done until it executed another program or ended, if it has.
    pub fn done(&self, role: Role) -> Option<Done> {
        let ticks = u32::try_from(self.cpu.ticks()).unwrap_or(u32::MAX);
        self.has_ended.then(|| Done {
            role,
            has_left: self.has_left,
            samples: self.taken,
            computed: self.interval.saturating_mul(ticks),
            lived: self.last.saturating_duration_since(self.begin),
        })
    }

    /// What its thread has done between the last two ticks, if that is known.
    pub fn since_last(&self) -> Option<Since> {
        self.since
    }

    /// Also records what it does for parallel work, for [`Session::take_track()`].
    pub fn record_slot(&mut self, slot: Slot) {
        self.slot = Some(slot);
    }

    /// Counts ticks of parallel work, see [`Slot::count()`].
    pub fn count_ticks(&mut self, ticks: u32) -> Result<()> {
        self.slot.as_mut().map_or(Ok(()), |slot| slot.count(ticks))
    }

    /// What it did at each tick, if that was recorded.
    pub fn take_track(&mut self) -> Result<Option<Track>> {
        let slot = self.slot.take();
        slot.map(|slot| slot.into_track(self.has_ended)).transpose()
    }

    /// Its source in the profile.
    pub fn source_id(&self) -> SourceId {
        self.samples.source_id()
    }

    /// How long the process was stopped, each time, in nanoseconds.
    pub fn pauses(&self) -> &[u32] {
        &self.pauses
    }

    /// Why the last stack could not be read.
    pub fn why_missing(&mut self) -> Result<String> {
        self.reader.why_missing()
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
        let now = self.reader.now().time;
        let Some(mut activity) = self.look(placement) else {
            self.has_ended = true;
            // The system knows its CPU time until its parent has asked how it has ended.
            if let Some(threads) = &mut self.threads {
                threads.read(self.thread.id())?;
            }
            return Ok(Tick::Ended);
        };
        if self.thread.has_left() {
            self.has_ended = true;
            self.has_left = true;
            return Ok(Tick::Left);
        }
        // The only thread of a process need not be followed, unless the stack of a fork is not that of its parent.
        let is_found = !(activity.has_others || self.is_unread) || self.follow(&mut activity)?;
        self.since = self.schedule.read(activity.scheduled);
        let passed = now.saturating_duration_since(self.last);
        self.last = now;
        if settings.clock == Clock::Wall {
            self.look_at_waits(&activity, now, passed, profile)?;
        }
        if let Some(threads) = self.threads.as_mut().filter(|_| activity.has_others) {
            threads.look(self.thread.id())?;
        }
        let tick = self.take(&activity, is_found, settings, profile, natives)?;
        if let Some(slot) = &mut self.slot {
            slot.end_look(activity.state, self.since);
        }
        Ok(tick)
    }

    /// Takes a sample, unless this tick is not used.
    fn take(
        &mut self,
        activity: &Activity,
        is_found: bool,
        settings: &Settings,
        profile: &mut Profile,
        natives: &mut Vec<NativeStack>,
    ) -> Result<Tick> {
        let Some(ticks) = self.stride.next() else {
            return Ok(Tick::Idle);
        };
        if !is_found {
            self.reader.lose_thread();
            self.is_unread = true;
            return Ok(Tick::Unread);
        }
        let stops = self.pauses.len();
        let tick = self.use_tick(activity, ticks, settings, profile, natives);
        let pauses = self.pauses.get(stops..).unwrap_or_default();
        self.stride.add(pauses.iter().copied().map(u64::from).sum());
        self.is_unread = matches!(tick, Ok(Tick::Unread));
        tick
    }

    /// Notes what has become known about waits at a tick.
    fn look_at_waits(
        &mut self,
        activity: &Activity,
        now: Instant,
        passed: Duration,
        profile: &mut Profile,
    ) -> Result<()> {
        for sample in self.waiting.begin(self.since, now)? {
            add_label(sample, WAITS_FOR, WaitKind::Processor.name(), profile)?;
        }
        let has_others = activity.has_others;
        self.waiting
            .look_at_others(&self.thread, has_others, passed);
        Ok(())
    }

    /// Takes a sample that stands for so many ticks, if `settings` require one now.
    fn use_tick(
        &mut self,
        activity: &Activity,
        ticks: u32,
        settings: &Settings,
        profile: &mut Profile,
        natives: &mut Vec<NativeStack>,
    ) -> Result<Tick> {
        let state = activity.state;
        let slot = self.slot.as_ref();
        let must_see = slot.is_some_and(|slot| slot.must_read(self.since));
        let by_cpu = settings.clock == Clock::Cpu;
        let is_idle = by_cpu && state != State::Running;
        if is_idle && !must_see {
            return Ok(Tick::Idle);
        }
        let which = if by_cpu && !must_see {
            Which::Computing
        } else {
            Which::All
        };
        let time = i64::try_from((self.interval * ticks).as_nanos()).unwrap_or(i64::MAX);
        let is_settled = self.native.is_none() && self.reader.is_settled();
        if let Some(wait) = self.waiting.same(state)?.filter(|_| is_settled) {
            let tick = AtTick {
                time,
                cpu: 0,
                date: self.reader.now().date,
                state,
                computes: false,
            };
            return self.add(tick, Some(&wait), None, profile);
        }
        // Before the stack, since that takes longer.
        let waits = !by_cpu && is_asleep(state) && self.thread.notice_wait();
        let begin = self.reader.now().time;
        let native = self.native.as_mut();
        let native = native.filter(|native| native.size() < MOST_NATIVE);
        let (thread, reader, pauses) = (&mut self.thread, &mut self.reader, &mut self.pauses);
        let (seen, free) = match read(thread, state, which, reader, native, pauses)? {
            Outcome::Stack {
                computes,
                on_processor,
                free,
            } => {
                let seen = Seen {
                    state,
                    computes,
                    on_processor,
                };
                (seen, free)
            }
            Outcome::Idle => return Ok(Tick::Idle),
            Outcome::Nothing if is_idle => return Ok(Tick::Idle),
            Outcome::Nothing => {
                self.waiting.forget();
                return Ok(Tick::Unread);
            }
        };
        if let Some(slot) = &mut self.slot {
            slot.see(self.reader.stack(), self.reader.texts());
        }
        if by_cpu && !seen.computes {
            if let Some(native) = &mut self.native {
                native.discard();
            }
            return Ok(Tick::Idle);
        }
        let mut tick = AtTick {
            time,
            cpu: time,
            // Before and afterwards, this thread may have waited for a processor.
            date: self.reader.moment().date,
            state,
            computes: seen.computes,
        };
        let mut wait = None;
        if !by_cpu {
            if is_asleep(state) {
                wait = Some(self.wait(waits, activity)?);
            } else {
                let sample = (profile.samples.len(), begin);
                wait = self.waiting.of(seen, sample)?;
            }
            if state == State::Running && seen.on_processor == Some(false) {
                // Until it was given a processor, it stood where it is, and other ticks were missed.
                let late = self.reader.now().time.saturating_duration_since(begin);
                let missed = late.as_nanos() / self.interval.as_nanos().max(1);
                let missed = u32::try_from(missed).unwrap_or(u32::MAX);
                let late = self.interval.saturating_mul(missed).as_nanos();
                tick.time = time.saturating_add(i64::try_from(late).unwrap_or(i64::MAX));
            }
        }
        self.reader.name_positions()?;
        if let Some(native) = &mut self.native {
            let recording = self.number;
            let found = match native.unwind(self.reader.r(), self.reader.stack())? {
                Some(word) => NativeStack::At { recording, word },
                None if native.size() >= MOST_NATIVE => NativeStack::Full,
                None => NativeStack::Unknown,
            };
            natives.try_push(found)?;
        }
        let taken = self.add(tick, wait.as_ref(), free, profile)?;
        if seen.computes {
            self.cpu.count(ticks);
        }
        self.reader.search_further()?;
        Ok(taken)
    }

    /// Adds a sample with the stack that was last read.
    fn add(
        &mut self,
        tick: AtTick,
        wait: Option<&Wait>,
        free: Option<WhyFree>,
        profile: &mut Profile,
    ) -> Result<Tick> {
        let (stack, texts) = (self.reader.stack(), self.reader.texts());
        let cut = self.samples.add(stack, texts, tick, wait, profile)?;
        self.taken += 1;
        Ok(Tick::Taken { cut, free })
    }

    /// What a thread waits for that sleeps: the functions of R decide, then the system call, if it was noticed. The wait is
    /// kept if the thread has not run since the tick.
    fn wait(&mut self, is_noticed: bool, activity: &Activity) -> Result<Wait> {
        let (stack, texts) = (self.reader.stack(), self.reader.texts());
        let names = stack.frames.iter().map(|frame| texts.get(frame.called));
        let wait = match of_r(stack.span.is_some(), names) {
            Some(kind) => Wait::of(kind),
            None if is_noticed => self.thread.explain_wait()?,
            // It may just have been woken.
            None => Wait::of(WaitKind::Unknown),
        };
        if wait.is_for_threads {
            self.waiting
                .look_at_others_now(&self.thread, activity.has_others);
        }
        self.waiting
            .keep(wait, activity.scheduled, self.thread.scheduled())
    }

    /// Follows R, which may run in another thread now. Returns `false` if that thread is not found. CPU time that it has
    /// used before is not part of the recording.
    fn follow(&mut self, activity: &mut Activity) -> Result<bool> {
        let (thread, reader) = (&mut self.thread, &mut self.reader);
        match reader.locate(|r, memory| follow::follow(thread, r, memory))? {
            Followed::Same => Ok(true),
            Followed::Lost => Ok(false),
            Followed::Other => {
                self.skip_gap();
                if let Some(now) = self.thread.activity() {
                    *activity = now;
                }
                Ok(true)
            }
        }
    }

    /// What the thread does, after this one has left the processor of the other; `None` if it has ended.
    fn look(&mut self, placement: &Placement) -> Option<Activity> {
        let mut activity = self.thread.activity()?;
        if activity
            .processor
            .is_some_and(|processor| placement.leave(processor))
        {
            // It continues meanwhile, so this is another moment.
            thread::sleep(SETTLE);
            activity = self.thread.activity()?;
        }
        if activity.cpu.is_some() {
            self.cpu.read(activity.cpu, self.reader.now().time);
        }
        Some(activity)
    }
}
