//! The main loop of the agent's thread: takes a sample at each tick, and sends between ticks.

use crate::figures::Figures;
use crate::forward::Forward;
use crate::now::Now;
use crate::recorder::{Recorder, Timing};
use crate::schedule::When;
use crate::sink::{Encoder, To};
use crate::snapshots::Snapshots;
use crate::source::Source;
use crate::state::{State, in_words};
use crate::system;
use profile_core::error::Result;
use profile_core::joint::Files;
use profile_core::message;
use profile_core::retry;
use profile_reader::live::Gauge;
use profile_reader::recorded::ticks::next_tick;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

/// The longest time between two checks for a stop request.
const STEP: Duration = Duration::from_millis(50);
/// How long to wait after an error before another attempt to take samples.
const REST: Duration = Duration::from_secs(5);

/// The input of the thread.
pub struct Job {
    pub source: Source,
    pub timing: Timing,
    pub to: To,
    pub resource: Vec<(String, String)>,
    /// When snapshots of R's heap are taken, if they are.
    pub memory: Option<When>,
    /// `None` if R's counts of its objects are not found.
    pub gauge: Option<Gauge>,
    /// What the agent records for, if that is not the life of the process.
    pub lease: Option<Lease>,
}

/// A recording of another process, as part of which this one records itself.
pub struct Lease {
    /// The recording goes on as long as this file exists.
    pub file: PathBuf,
    /// This file is removed when all samples are written.
    pub mark: PathBuf,
}

/// Runs until it is stopped. `ready` receives whether samples can be taken and sending can start.
pub fn run(job: Job, state: &State, ready: &SyncSender<Result<()>>) {
    let gives = job.to.is_r();
    let mark = job.lease.as_ref().map(|lease| lease.mark.clone());
    let ended = catch_unwind(AssertUnwindSafe(|| work(job, state, ready)));
    let why = ended.err().map(|panic| in_words(&*panic));
    if let Some(mark) = mark {
        let _ = fs::remove_file(mark);
    }
    if !gives {
        state.leave(false, Now::read());
    }
    state.end(why, Now::read());
}

fn work(job: Job, state: &State, ready: &SyncSender<Result<()>>) {
    let files = Files::default();
    let figures = Figures::current(job.gauge);
    let encoder = Encoder::new(&job.to, job.resource, figures);
    let now = Now::read();
    let opened = job.source.open(job.timing, state, &encoder, &files, now);
    let mut recorder = match opened {
        Ok(recorder) => recorder,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let mut sender = match job.to {
        To::Spool(_, _, Some(settings)) => Some(Forward::new(settings, now)),
        To::Spool(_, _, None) | To::Folder(..) => None,
    };
    // If the receiver no longer exists, the thread will be asked to stop as well.
    let _ = ready.send(Ok(()));
    let mut snapshots = job
        .memory
        .map(|when| Snapshots::current(when, &encoder, now));
    let file = job.lease.map(|lease| lease.file);
    let goes_on = || file.as_ref().is_none_or(|file| file.exists());
    record(
        &mut *recorder,
        &mut sender,
        &mut snapshots,
        state,
        &goes_on,
        &System,
    );
    drop(snapshots);
    send_rest(&mut sender, state, &System);
}

/// Time as it passes for the loop. Tests use another one, whose time passes only while the loop waits.
trait Clock {
    fn now(&self) -> Now;
    /// The CPU time of this thread, in nanoseconds.
    fn used(&self) -> u64;
    /// A random number between 0 and 1.
    fn chance(&self) -> f64;
    fn wait(&self, time: Duration);
}

struct System;

impl Clock for System {
    fn now(&self) -> Now {
        Now::read()
    }

    fn used(&self) -> u64 {
        system::thread_time()
    }

    fn chance(&self) -> f64 {
        retry::chance()
    }

    fn wait(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// Has the chunks sent, if that is the task of this thread.
type Sender = Option<Forward>;

/// Records until the agent is asked to stop, or what it records for is over.
fn record(
    recorder: &mut dyn Recorder,
    sender: &mut Sender,
    snapshots: &mut Option<Snapshots>,
    state: &State,
    goes_on: &dyn Fn() -> bool,
    clock: &dyn Clock,
) {
    let mut result = recorder.prepare();
    let mut next = clock.now().instant;
    while !state.is_stopped() && goes_on() {
        if let Err(error) = result {
            next = clock.now().instant + REST;
            wait(next, state, sender, clock);
            result = recorder.recover(error, clock.now());
            continue;
        }
        wait(next, state, sender, clock);
        result = recorder.tick(clock.now());
        if let Some(snapshots) = snapshots {
            snapshots.step(state, clock.now());
        }
        state.used(clock.used());
        let pause = recorder.pause(clock.chance());
        next = next_tick(next, pause, clock.now().instant);
    }
    let now = clock.now();
    match result {
        Ok(()) => {
            if let Err(error) = recorder.finish(now) {
                state.note(message!("{error}"), now);
            }
        }
        Err(error) => state.add(Err(error), now),
    }
}

/// Waits until the chunks in the spool are sent or cannot be sent now, or until the deadline.
fn send_rest(sender: &mut Sender, state: &State, clock: &dyn Clock) {
    let now = clock.now();
    let deadline = state.deadline().unwrap_or(now.instant);
    if let Some(sender) = sender {
        sender.hurry(now);
        loop {
            let now = clock.now();
            sender.step(state, now);
            if now.instant >= deadline || sender.is_done(state) {
                break;
            }
            clock.wait(STEP);
        }
    }
    state.used(clock.used());
}

/// Waits until this time, and sends meanwhile.
fn wait(until: Instant, state: &State, sender: &mut Sender, clock: &dyn Clock) {
    loop {
        let now = clock.now();
        if let Some(sender) = sender {
            sender.step(state, now);
        }
        let left = until.saturating_duration_since(now.instant);
        if left.is_zero() || state.is_stopped() {
            return;
        }
        clock.wait(left.min(STEP));
    }
}

#[cfg(test)]
mod tests;
