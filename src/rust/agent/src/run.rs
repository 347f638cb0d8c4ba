//! The main loop of the agent's thread: takes a sample at each tick, and sends between ticks.

use crate::chunks::Timing;
use crate::queue::Queue;
use crate::sink::{Encoder, Sink, To};
use crate::source::Source;
use crate::system::{self, Alarm};
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
    queue.end(ended.err().map(|panic| in_words(&*panic)));
}

fn in_words(panic: &(dyn Any + Send)) -> String {
    let why = panic.downcast_ref::<String>().map(String::as_str);
    let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
    message!("Internal error: {}.", why.unwrap_or("a panic"))
}

fn work(job: Job, queue: &Queue, ready: &SyncSender<Result<()>>) {
    let (timing, files) = (job.timing, Files::default());
    let encoder = Encoder::new(&job.to, job.resource);
    let opened = job
        .source
        .open(timing, queue, &encoder, &files)
        .and_then(|chunks| Ok((chunks, Sink::open(job.to)?)));
    let (mut chunks, mut sink) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    // If the receiver no longer exists, the thread will be asked to stop as well.
    let _ = ready.send(Ok(()));
    let mut result = chunks.prepare();
    let mut next = Instant::now();
    while !queue.is_stopped() {
        if let Err(error) = result {
            next = Instant::now() + REST;
            wait(next, queue, &mut sink);
            result = chunks.recover(error);
            continue;
        }
        match chunks.alarm() {
            Some(alarm) => rest(alarm, queue, &mut sink),
            None => wait(next, queue, &mut sink),
        }
        result = chunks.tick();
        queue.used(system::thread_time());
        // Ticks that were missed are skipped.
        next = (next + chunks.pause()).max(Instant::now());
    }
    match result {
        Ok(()) => {
            if let Err(error) = chunks.finish() {
                queue.note(message!("{error}"));
            }
        }
        Err(error) => queue.add(Err(error)),
    }
    let deadline = queue.deadline().unwrap_or_else(Instant::now);
    sink.hurry(deadline);
    while Instant::now() < deadline && !sink.is_done(queue) {
        sink.step(queue);
        system::wait(sink.waiting(), STEP / 10);
    }
    queue.used(system::thread_time());
}

/// Waits until this time, and sends meanwhile.
fn wait(until: Instant, queue: &Queue, sink: &mut Sink) {
    loop {
        sink.step(queue);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || queue.is_stopped() {
            return;
        }
        system::wait(sink.waiting(), left.min(STEP));
    }
}

/// Waits until R resumes, and sends meanwhile.
fn rest(alarm: &Alarm, queue: &Queue, sink: &mut Sink) {
    let until = Instant::now() + LONGEST;
    loop {
        sink.step(queue);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || queue.is_stopped() {
            return;
        }
        let longest = if queue.is_empty() { LONGEST } else { STEP };
        if alarm.wait(sink.waiting(), left.min(longest)) {
            return;
        }
    }
}
