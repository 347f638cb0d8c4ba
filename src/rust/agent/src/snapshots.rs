//! Snapshots of R's heap at regular times.

use crate::now::Now;
use crate::sink::Encoder;
use crate::state::{State, in_words};
use crate::system;
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::limits::thread::refused;
use profile_core::message;
use profile_core::model::Profile;
use profile_reader::live::heap_of_image;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Takes a snapshot. It runs in a thread of its own.
pub type Take = fn(Stop) -> Result<Profile>;

/// Snapshots of R's heap at regular times. Each one is taken by a thread of its own, so that samples are taken meanwhile.
pub struct Snapshots<'a> {
    encoder: &'a Encoder,
    every: Duration,
    next: Instant,
    take: Take,
    running: Option<Running>,
}

struct Running {
    thread: JoinHandle<(Result<Profile>, u64)>,
    is_stopped: Arc<AtomicBool>,
}

impl<'a> Snapshots<'a> {
    pub fn new(every: Duration, encoder: &'a Encoder, take: Take, now: Now) -> Snapshots<'a> {
        Snapshots {
            encoder,
            every,
            next: now.instant + every,
            take,
            running: None,
        }
    }

    pub fn current(every: Duration, encoder: &'a Encoder, now: Now) -> Snapshots<'a> {
        let take = |stop: Stop| heap_of_image(stop).map(|snapshot| snapshot.profile);
        Snapshots::new(every, encoder, take, now)
    }

    /// Stores a snapshot that is complete, and starts the next one if it is time for it.
    pub fn step(&mut self, state: &State, now: Now) {
        if self
            .running
            .as_ref()
            .is_some_and(|running| running.thread.is_finished())
        {
            let (taken, cpu) = self.end();
            let encoded = taken.and_then(|mut profile| self.encoder.encode(&mut profile));
            state.add_snapshot(encoded, cpu, now);
        }
        if self.running.is_none() && now.instant >= self.next {
            // One that takes longer than this delays the next one.
            self.next = now.instant + self.every;
            if let Err(error) = self.start() {
                state.add_snapshot(Err(error), 0, now);
            }
        }
    }

    fn start(&mut self) -> Result<()> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (take, stop) = (self.take, Arc::clone(&is_stopped));
        let body = move || {
            let taken = take(&|| stop.load(Ordering::Relaxed));
            (taken, system::thread_time())
        };
        // It inherits that signals are blocked.
        let thread = thread::Builder::new().name(message!("profile-heap"));
        let thread = thread.spawn(body).map_err(refused)?;
        self.running = Some(Running { thread, is_stopped });
        Ok(())
    }

    /// Waits for the thread. Returns its result and its CPU time, in nanoseconds.
    fn end(&mut self) -> (Result<Profile>, u64) {
        let Some(running) = self.running.take() else {
            return (Err(Error::Interrupted), 0);
        };
        let joined = running.thread.join();
        joined.unwrap_or_else(|panic| (Err(Error::Process(in_words(&*panic))), 0))
    }
}

impl Drop for Snapshots<'_> {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.is_stopped.store(true, Ordering::Relaxed);
        }
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests;
