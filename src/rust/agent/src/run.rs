//! The main loop of the agent's thread: takes a sample at each tick, and sends between ticks.

use crate::chunks::Timing;
use crate::now::Now;
use crate::queue::Queue;
use crate::sink::{Encoder, Sink, To};
use crate::source::{Recorder, Source};
use crate::system::{self, Alarm, Waiting};
use profile_core::error::Result;
use profile_core::joint::Files;
use profile_core::message;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// The longest time between two checks for a stop request.
const STEP: Duration = Duration::from_millis(50);
/// The longest time without a tick, so that chunks end on time and suspends of the system are noticed.
const LONGEST: Duration = Duration::from_secs(1);
/// How long to wait after an error before another attempt to take samples.
const REST: Duration = Duration::from_secs(5);

/// The input of the thread.
pub struct Job {
    pub source: Source,
    pub timing: Timing,
    pub to: To,
    pub resource: Vec<(String, String)>,
}

/// Runs until it is stopped. `ready` receives whether samples can be taken and sending can start.
pub fn run(job: Job, queue: &Queue, ready: &SyncSender<Result<()>>) {
    let ended = catch_unwind(AssertUnwindSafe(|| work(job, queue, ready)));
    let why = ended.err().map(|panic| in_words(&*panic));
    queue.end(why, Now::read());
}

fn in_words(panic: &(dyn Any + Send)) -> String {
    let why = panic.downcast_ref::<String>().map(String::as_str);
    let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
    message!("Internal error: {}.", why.unwrap_or("a panic"))
}

fn work(job: Job, queue: &Queue, ready: &SyncSender<Result<()>>) {
    let files = Files::default();
    let encoder = Encoder::new(&job.to, job.resource);
    let now = Now::read();
    let opened = job
        .source
        .open(job.timing, queue, &encoder, &files, now)
        .and_then(|recorder| Ok((recorder, Sink::open(job.to, now)?)));
    let (mut recorder, mut sink) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    // If the receiver no longer exists, the thread will be asked to stop as well.
    let _ = ready.send(Ok(()));
    let alarm = match job.source {
        Source::Reader => Alarm::new(),
        Source::Rprof(_) => None,
    };
    let system = System { alarm };
    record(&mut *recorder, &mut sink, queue, &system);
    send_rest(&mut sink, queue, &system);
}

/// Time as it passes for the loop. Tests use another one, whose time passes only while the loop waits.
trait Clock {
    fn now(&self) -> Now;
    /// The CPU time of this thread, in nanoseconds.
    fn used(&self) -> u64;
    /// Whether [`Clock::rest()`] detects that R computes.
    fn can_rest(&self) -> bool;
    /// Waits until a connection is ready or the time has elapsed.
    fn wait(&self, waiting: Option<Waiting>, longest: Duration);
    /// The same, or until R computes. Returns whether it does.
    fn rest(&self, waiting: Option<Waiting>, longest: Duration) -> bool;
}

struct System {
    alarm: Option<Alarm>,
}

impl Clock for System {
    fn now(&self) -> Now {
        Now::read()
    }

    fn used(&self) -> u64 {
        system::thread_time()
    }

    fn can_rest(&self) -> bool {
        self.alarm.is_some()
    }

    fn wait(&self, waiting: Option<Waiting>, longest: Duration) {
        system::wait(waiting, longest);
    }

    fn rest(&self, waiting: Option<Waiting>, longest: Duration) -> bool {
        match &self.alarm {
            Some(alarm) => alarm.wait(waiting, longest),
            None => {
                self.wait(waiting, longest);
                true
            }
        }
    }
}

/// Records until the agent is asked to stop.
fn record(recorder: &mut dyn Recorder, sink: &mut Sink, queue: &Queue, clock: &dyn Clock) {
    let mut result = recorder.prepare();
    let mut next = clock.now().instant;
    while !queue.is_stopped() {
        if let Err(error) = result {
            next = clock.now().instant + REST;
            wait(next, queue, sink, clock);
            result = recorder.recover(error, clock.now());
            continue;
        }
        let rests = recorder.is_idle() && clock.can_rest();
        match rests {
            true => rest(queue, sink, clock),
            false => wait(next, queue, sink, clock),
        }
        result = recorder.tick(clock.now(), rests);
        queue.used(clock.used());
        // Ticks that were missed are skipped.
        next = (next + recorder.pause()).max(clock.now().instant);
    }
    let now = clock.now();
    match result {
        Ok(()) => {
            if let Err(error) = recorder.finish(now) {
                queue.note(message!("{error}"), now);
            }
        }
        Err(error) => queue.add(Err(error), now),
    }
}

/// Sends what is queued, until the deadline.
fn send_rest(sink: &mut Sink, queue: &Queue, clock: &dyn Clock) {
    let now = clock.now();
    let deadline = queue.deadline().unwrap_or(now.instant);
    sink.hurry(deadline, now);
    loop {
        let now = clock.now();
        if now.instant >= deadline || sink.is_done(queue) {
            break;
        }
        sink.step(queue, now);
        clock.wait(sink.waiting(), STEP / 10);
    }
    queue.used(clock.used());
}

/// Waits until this time, and sends meanwhile.
fn wait(until: Instant, queue: &Queue, sink: &mut Sink, clock: &dyn Clock) {
    loop {
        let now = clock.now();
        sink.step(queue, now);
        let left = until.saturating_duration_since(now.instant);
        if left.is_zero() || queue.is_stopped() {
            return;
        }
        clock.wait(sink.waiting(), left.min(STEP));
    }
}

/// Waits until R resumes, and sends meanwhile.
fn rest(queue: &Queue, sink: &mut Sink, clock: &dyn Clock) {
    let until = clock.now().instant + LONGEST;
    loop {
        let now = clock.now();
        sink.step(queue, now);
        let left = until.saturating_duration_since(now.instant);
        if left.is_zero() || queue.is_stopped() {
            return;
        }
        let longest = if queue.is_empty() { LONGEST } else { STEP };
        if clock.rest(sink.waiting(), left.min(longest)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
