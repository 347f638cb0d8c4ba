//! The thread of another process that runs R, or of this one: which one it is ([`runner`]), its CPU time, its state, and
//! how it is kept where it is while its stack is read.
//!
//! A thread that sleeps or waits does not move, and waking it up for nothing would interrupt its system call. Only one
//! that runs is stopped ([`pause`]), or held by a signal in this process ([`hold`]). The number of its time slices shows whether a sleeping thread has run
//! meanwhile after all, and whether one that was stopped has had a processor until then.
//!
//! [`watched`]: what the recorder asks of a thread. [`system_calls`] tells those that wait from those that work. [`processor`] is the part that depends on the processor; it
//! uses [`register_set`], and describes where a signal has [`interrupted`] the thread.

pub(super) mod hold;
mod interrupted;
pub(super) mod pause;
#[cfg_attr(target_arch = "x86_64", path = "processor/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "processor/aarch64.rs")]
mod processor;
mod register_set;
pub(super) mod runner;
pub(super) mod system_calls;
pub(super) mod watched;

use super::caller;
use super::permission::gone;
use super::proc::{Execution, Process, Status};
use super::waits::Waits;
use crate::process::computing::{Evidence, SystemCall};
use crate::recorded::scheduled::Scheduled;
use crate::recorded::states::{Activity, FoundThread, State, Stops, WhyFree};
use crate::recorded::waits::{Wait, WaitNames};
use hold::Holder;
use pause::{Failure, Stopper};
use profile_core::error::Result;
use profile_core::message;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::process;
pub use watched::{Held, Watched};

/// The thread of a process that runs R. Its files remain open, since they are read often. After the thread has ended, they
/// cannot be read.
#[derive(Debug)]
pub struct Thread {
    pid: i32,
    /// The first thread has the ID of its process.
    id: i32,
    status: File,
    times: Option<File>,
    /// The clock of its CPU time, if the thread belongs to this process.
    clock: Option<libc::clockid_t>,
    stopper: Option<Stopper>,
    holder: Option<Holder>,
    stops: Stops,
    waits: Waits,
    /// The number of time slices at the last tick at which it was running, if it belongs to another process.
    slices: Option<u64>,
    /// Whether it was on a processor at the last tick, if it belongs to this process.
    on_processor: bool,
    /// The number of ticks at which it was on a processor.
    ticks: u32,
    /// The program that its process ran at first, and whether it runs another one now.
    execution: Execution,
    has_left: bool,
}

/// A thread of this process is known to be on a processor. Which one is looked up only once in this many ticks.
const LOOK: u32 = 16;

/// The clock of the CPU time of a thread of this process. The kernel documents that the ID of the clock contains the
/// ID of the thread; glibc's `pthread_getcpuclockid()` computes the same.
pub fn clock_of_thread(thread: u32) -> libc::clockid_t {
    (!(thread as libc::clockid_t) << 3) | 6
}

/// The CPU time of all threads of a process, in nanoseconds.
pub fn cpu_time_of_process(pid: i32) -> Option<u64> {
    // As documented for `clock_of_thread()`.
    time_of((!pid << 3) | 2)
}

/// How the calling thread was scheduled so far.
pub fn own_scheduled() -> Option<Scheduled> {
    let thread = caller::id();
    let path = message!("/proc/self/task/{thread}/schedstat");
    Scheduled::parse(&std::fs::read(path).ok()?)
}

impl Thread {
    /// Opens the first thread of a process.
    pub fn open(process: &Process, stops: Stops) -> Result<Thread> {
        Thread::of(process.pid, process.pid, stops, process.execution())
    }

    /// Whether its process has no other thread.
    pub fn is_only(&self) -> bool {
        self.status().is_some_and(|status| status.threads == 1)
    }

    /// Fails with the reason if the thread always has to be stopped, and that is not possible. A process whose memory may be
    /// read may also be stopped, unless another one traces it.
    pub fn check(&mut self) -> Result<()> {
        match (&mut self.stopper, self.stops) {
            (Some(stopper), Stops::Always) => stopper.check(),
            _ => Ok(()),
        }
    }

    fn of(pid: i32, id: i32, stops: Stops, execution: Execution) -> Result<Thread> {
        let file = |name: &str| File::open(message!("/proc/{pid}/task/{id}/{name}"));
        let is_own = u32::try_from(pid) == Ok(process::id());
        let may_stop = stops == Stops::Always || stops == Stops::IfItRuns && !is_own;
        let clock = u32::try_from(id).ok().filter(|_| is_own);
        Ok(Thread {
            pid,
            id,
            status: file("stat").map_err(|_| gone(pid))?,
            // Some kernels have no such file.
            times: file("schedstat").ok(),
            clock: clock.map(clock_of_thread),
            stopper: may_stop.then(|| Stopper::new(id)),
            holder: None,
            stops,
            waits: Waits::new(pid, WaitNames::Full),
            slices: None,
            on_processor: false,
            ticks: 0,
            execution,
            has_left: false,
        })
    }

    /// Changes to another thread of the process; `None` if it has ended.
    fn change(&mut self, id: i32) -> Option<()> {
        let mut thread = Thread::of(self.pid, id, self.stops, self.execution).ok()?;
        // A process has only one.
        thread.holder = self.holder.take();
        std::mem::swap(&mut thread.waits, &mut self.waits);
        *self = thread;
        Some(())
    }

    /// The number of the system call in which it is, if it is in one.
    pub fn system_call(&self) -> Option<i64> {
        let call = runner::in_call(self.pid, self.id)?;
        Some(call.number).filter(|number| *number >= 0)
    }

    fn status(&self) -> Option<Status> {
        let mut bytes = [0; 1024];
        let length = self.status.read_at(&mut bytes, 0).ok()?;
        let status = Status::parse(bytes.get(..length)?)?;
        (status.state != State::Ended).then_some(status)
    }

    /// The number of its time slices so far, if it sleeps and need not be stopped.
    fn slices_if_asleep(&self, state: State) -> Option<u64> {
        let sleeps = |state| match state {
            State::WaitsForDevice => true,
            State::Sleeping | State::Stopped => self.stops != Stops::Always,
            State::Running | State::Ended | State::Other(_) => false,
        };
        if !sleeps(state) {
            return None;
        }
        // They are counted first. A thread that sleeps after that, and has had no other time slice later, has not run
        // in between.
        let slices = self.scheduled()?.slices;
        sleeps(self.status()?.state).then_some(slices)
    }

    /// Holds the thread of this process, if it runs.
    fn hold_own(&mut self, state: State) -> Held {
        if self.stops == Stops::Never || state != State::Running {
            return Held::Free(WhyFree::Unwanted);
        }
        if self.holder.is_none() {
            self.holder = Holder::new();
        }
        match self.holder.as_mut().and_then(|holder| holder.hold(self.id)) {
            Some(hold) => Held::InHandler(hold),
            None => Held::Free(WhyFree::Late),
        }
    }

    /// Lets the thread go on if it has stopped later than was waited for it. Returns whether it still has not stopped.
    pub fn is_pending(&mut self) -> bool {
        self.stopper.as_mut().is_some_and(Stopper::is_pending)
    }
}

impl Watched for Thread {
    fn id(&self) -> i32 {
        self.id
    }

    fn cpu_time(&self) -> Option<u64> {
        match self.clock {
            Some(clock) => time_of(clock),
            None => Some(self.scheduled()?.computed),
        }
    }

    /// How it was scheduled so far. A thread that is not on a processor has not run as long as the number of its time
    /// slices is the same.
    fn scheduled(&self) -> Option<Scheduled> {
        let mut bytes = [0; 128];
        let length = self.times.as_ref()?.read_at(&mut bytes, 0).ok()?;
        Scheduled::parse(bytes.get(..length)?)
    }

    fn others_cpu(&self) -> Option<u64> {
        let all = cpu_time_of_process(self.pid)?;
        // The thread that reads belongs to the process as well, but does nothing for it.
        let reading = self
            .clock
            .and_then(|_| time_of(libc::CLOCK_THREAD_CPUTIME_ID));
        Some(
            all.saturating_sub(self.cpu_time()?)
                .saturating_sub(reading.unwrap_or(0)),
        )
    }

    fn notice_wait(&mut self) -> bool {
        self.waits.notice(self.id)
    }

    fn explain_wait(&mut self) -> Result<Wait> {
        self.waits.explain()
    }

    fn name_waits(&mut self, names: WaitNames, others: &[i32]) -> Result<()> {
        self.waits.set_names(names, others)
    }

    fn is_wait_refused(&self) -> bool {
        self.waits.are_refused()
    }

    fn activity(&mut self) -> Option<Activity> {
        let cpu = self.clock.and_then(time_of);
        // Before its state: if it sleeps afterwards and has had no other time slice, it slept already.
        let scheduled = self.scheduled();
        self.on_processor = self.clock.is_some_and(is_on_processor);
        if self.on_processor {
            self.ticks = self.ticks.wrapping_add(1);
            if self.ticks % LOOK != 0 {
                return Some(Activity {
                    state: State::Running,
                    processor: None,
                    cpu,
                    scheduled,
                    has_others: true,
                });
            }
        }
        let status = match self.status() {
            // Only this thread has ended.
            None if self.id != self.pid => {
                self.change(self.pid)?;
                self.status()?
            }
            status => status?,
        };
        let now = status.execution;
        self.has_left |= if self.id == self.pid {
            now.differs_from(self.execution)
        } else {
            now.of_thread_differs_from(self.execution)
        };
        let runs = status.state == State::Running && cpu.is_none();
        // Later than its state, so that it was on a processor from then on if this number stays the same.
        let running = if runs { self.scheduled() } else { None };
        self.slices = running.map(|scheduled| scheduled.slices);
        Some(Activity {
            state: if self.on_processor {
                State::Running
            } else {
                status.state
            },
            processor: Some(status.processor),
            cpu: cpu.or(running.map(|scheduled| scheduled.computed)),
            scheduled,
            has_others: status.threads > 1,
        })
    }

    fn has_left(&self) -> bool {
        self.has_left
    }

    fn follow(&mut self, address: u64) -> Result<Option<FoundThread>> {
        let Some(runner) = runner::find(self.pid, address)? else {
            return Ok(None);
        };
        let is_other = runner.thread != self.id;
        if is_other && self.change(runner.thread).is_none() {
            return Ok(None);
        }
        Ok(Some(FoundThread {
            stack: runner.stack,
            is_other,
        }))
    }

    fn hold(&mut self, state: State) -> Held {
        if self.clock.is_some() {
            return self.hold_own(state);
        }
        if let Some(slices) = self.slices_if_asleep(state) {
            return Held::Asleep(slices);
        }
        match &mut self.stopper {
            None => Held::Free(WhyFree::Unwanted),
            // It would not stop.
            Some(_) if state == State::WaitsForDevice => Held::Free(WhyFree::Late),
            Some(stopper) => match stopper.stop() {
                Ok(pause) => Held::Stopped(pause),
                Err(Failure::Traced) => Held::Free(WhyFree::Traced),
                Err(Failure::Refused) => Held::Free(WhyFree::Refused),
                Err(Failure::Late | Failure::Ended) => Held::Free(WhyFree::Late),
            },
        }
    }

    fn evidence(&self, held: &Held) -> Evidence {
        let call = match held {
            Held::Stopped(pause) => pause.call(),
            Held::InHandler(hold) => hold.call(),
            Held::Asleep(_) => SystemCall::Waits,
            Held::Free(_) => SystemCall::Unknown,
        };
        let on_processor = match (self.clock, held) {
            (Some(_), _) => Some(self.on_processor),
            // If it had no processor, it needed a time slice to get where it was stopped.
            (None, Held::Stopped(_)) if call != SystemCall::Unknown => {
                let now = self.scheduled().map(|scheduled| scheduled.slices);
                Some(now.is_some() && now == self.slices)
            }
            (None, _) => None,
        };
        Evidence { call, on_processor }
    }

    fn is_still(&self, held: &Held) -> bool {
        match held {
            Held::Stopped(_) => true,
            Held::Asleep(slices) => self
                .scheduled()
                .is_some_and(|scheduled| scheduled.slices == *slices),
            Held::InHandler(_) | Held::Free(_) => false,
        }
    }
}

/// Whether a thread of this process is on a processor, given its clock. The clock advances exactly as long as it is.
pub fn is_on_processor(clock: libc::clockid_t) -> bool {
    time_of(clock) != time_of(clock)
}

fn time_of(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel fills the struct, or fails.
    let time = unsafe {
        match libc::clock_gettime(clock, time.as_mut_ptr()) {
            0 => time.assume_init(),
            _ => return None,
        }
    };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}
