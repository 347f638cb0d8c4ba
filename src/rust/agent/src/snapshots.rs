//! Snapshots of R's heap, each by a thread of its own, so that samples are taken meanwhile.

use crate::now::Now;
use crate::schedule::{Schedule, When};
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

/// Takes a snapshot. It runs in a thread of its own.
pub type Take = fn(Stop) -> Result<Profile>;

pub struct Snapshots<'a> {
    encoder: &'a Encoder,
    schedule: Schedule,
    take: Take,
    running: Option<Running>,
}

struct Running {
    thread: JoinHandle<(Result<Profile>, u64)>,
    is_stopped: Arc<AtomicBool>,
}

impl<'a> Snapshots<'a> {
    pub fn new(schedule: Schedule, encoder: &'a Encoder, take: Take) -> Snapshots<'a> {
        Snapshots {
            encoder,
            schedule,
            take,
            running: None,
        }
    }

    pub fn current(when: When, encoder: &'a Encoder, now: Now) -> Snapshots<'a> {
        let take = |stop: Stop| heap_of_image(stop).map(|snapshot| snapshot.profile);
        Snapshots::new(Schedule::new(when, now), encoder, take)
    }

    /// Stores a snapshot that is complete, and starts the next one if it is time for it.
    pub fn step(&mut self, state: &State, now: Now) {
        if self
            .running
            .as_ref()
            .is_some_and(|running| running.thread.is_finished())
        {
            let (taken, cpu) = self.end();
            self.schedule.ended(cpu);
            let encoded = taken.and_then(|mut profile| self.encoder.encode(&mut profile));
            state.add_snapshot(encoded, cpu, now);
        }
        if self.running.is_some() {
            return;
        }
        let is_due = self.schedule.is_due(&self.encoder.figures, now);
        let started = match is_due {
            Ok(false) => Ok(()),
            Ok(true) => self.start(),
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            state.add_snapshot(Err(error), 0, now);
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
