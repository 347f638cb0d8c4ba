//! Watches how much memory another process takes, and takes a snapshot of its heap at each new maximum, so that the last one
//! shows what the memory was used for at its peak. Nothing is seen of what happens between two readings, except for the
//! highest memory, which the kernel knows.

use crate::heap::maxima::{Bounds, Maxima};
use crate::heap::resident::Malloc;
use crate::heap::snapshot::Snapshot;
use crate::heap::snapshots::heap_here;
use crate::process::{Process, gone, prepare_thread};
use crate::record::memory::MemoryWatch;
use crate::recorded::memory::{END, Ending, PEAK, Peak, PeakSoFar};
use crate::recorded::source::{add_numbers_to_all, attribute};
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::TryGrow;
use profile_core::limits::thread::refused;
use profile_core::message;
use profile_core::model::{Profile, Source, SourceId, ValueKind};
use std::mem::take;
use std::process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two readings.
const EVERY: Duration = Duration::from_millis(20);
/// The process stands still for a tenth of the time at most, and for one more second.
const BOUNDS: Bounds = Bounds {
    percent: 110,
    share: 0.1,
    allowance: Duration::from_secs(1),
};

/// Takes a snapshot. Returns how long the process was stopped.
type Take = Box<dyn FnMut(Stop) -> Result<(Snapshot, Duration)> + Send>;

/// A thread that watches a process.
pub struct PeakWatch {
    /// The process that has the thread.
    home: u32,
    /// It ends when this is dropped.
    end: Sender<()>,
    thread: JoinHandle<Result<Peak>>,
    so_far: Arc<Mutex<PeakSoFar>>,
}

impl PeakWatch {
    /// Takes the first snapshot, and begins to watch the process. Fails if no snapshot can be taken, with the reason.
    pub fn start(pid: i32) -> Result<PeakWatch> {
        let process = Process::find(pid)?;
        let (ready, begun) = channel();
        let (end, ended) = channel();
        let so_far = Arc::new(Mutex::new(PeakSoFar::default()));
        let shared = Arc::clone(&so_far);
        let watch = move || {
            prepare_thread();
            let take = Box::new(move |stop: Stop| heap_here(pid, &Malloc::Unknown, stop));
            let mut watcher = Watcher::new(process, take)?;
            let begin = Instant::now();
            let clock = || begin.elapsed();
            let begun = watcher.first(&clock);
            *lock(&shared) = watcher.so_far;
            // Otherwise nobody would wait for it.
            let _ = ready.send(begun);
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let goes_on = watcher.step(&clock)?;
                *lock(&shared) = watcher.so_far;
                if !goes_on {
                    break;
                }
            }
            watcher.finish(&clock)
        };
        let thread = Builder::new().spawn(watch).map_err(refused)?;
        begun.recv().map_err(|_| failed())??;
        Ok(PeakWatch {
            home: process::id(),
            end,
            thread,
            so_far,
        })
    }

    /// Whether the thread runs in this process, and not in its parent, of which this is a fork.
    pub fn is_here(&self) -> bool {
        self.home == process::id()
    }

    pub fn so_far(&self) -> PeakSoFar {
        *lock(&self.so_far)
    }

    /// Ends. A snapshot that is just being taken is completed.
    pub fn end(self) -> Result<Peak> {
        drop(self.end);
        self.thread.join().map_err(|_| failed())?
    }
}

fn failed() -> Error {
    Error::Process(message!("The thread that watches the memory has failed."))
}

fn lock(so_far: &Mutex<PeakSoFar>) -> MutexGuard<'_, PeakSoFar> {
    // Nothing panics while it is locked.
    so_far.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread does.
struct Watcher {
    memory: MemoryWatch,
    /// The process in `memory`.
    process: SourceId,
    maxima: Maxima,
    take: Take,
    so_far: PeakSoFar,
    last: Option<Profile>,
    error: Option<Error>,
}

impl Watcher {
    fn new(process: Process, take: Take) -> Result<Watcher> {
        let source = Profile::default().add_source(Source::default())?;
        let mut memory = MemoryWatch::default();
        let pid = process.pid;
        memory.add(&process, source)?;
        Ok(Watcher {
            memory,
            process: source,
            maxima: Maxima::new(BOUNDS),
            take,
            so_far: PeakSoFar {
                pid,
                ..PeakSoFar::default()
            },
            last: None,
            error: None,
        })
    }

    /// The first reading and snapshot.
    fn first(&mut self, clock: &dyn Fn() -> Duration) -> Result<()> {
        self.step(clock)?;
        match (self.so_far.snapshots, self.error.take()) {
            (0, Some(error)) => Err(error),
            (0, None) => Err(gone(self.so_far.pid)),
            _ => Ok(()),
        }
    }

    /// A reading, and a snapshot if it is a new maximum. Returns whether the process still runs. `clock` is the time since the
    /// first reading.
    fn step(&mut self, clock: &dyn Fn() -> Duration) -> Result<bool> {
        self.memory.look(clock);
        if self.notes_end(clock) {
            return Ok(false);
        }
        let Some(now) = self.memory.processes().next() else {
            return Ok(false);
        };
        self.so_far.resident = now.resident;
        if self.maxima.is_due(now.resident, clock()) {
            let begin = clock();
            match (self.take)(&|| false) {
                Ok((snapshot, pause)) => {
                    self.maxima.took(now.resident, pause);
                    self.last = Some(snapshot.profile);
                    self.so_far.taken = now.resident;
                    self.so_far.snapshots += 1;
                    self.error = None;
                }
                Err(error @ Error::Process(_)) => {
                    // For how long it was stopped is unknown.
                    self.maxima.failed(clock().saturating_sub(begin));
                    self.error = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        self.so_far.highest = now.peak.max(self.maxima.highest());
        Ok(true)
    }

    /// Whether the process has ended, which is then noted.
    fn notes_end(&mut self, clock: &dyn Fn() -> Duration) -> bool {
        let has_ended = self.memory.has_ended(self.process);
        if has_ended {
            self.memory.end(self.process, clock());
        }
        has_ended
    }

    fn finish(mut self, clock: &dyn Fn() -> Duration) -> Result<Peak> {
        self.notes_end(clock);
        let ending = self.memory.processes().next();
        let ending = ending.and_then(|process| process.ending);
        if let Some(profile) = &mut self.last {
            let figures = [
                (PEAK, self.so_far.highest),
                ("profile.memory.snapshots", self.so_far.snapshots),
            ];
            add_numbers_to_all(profile, &figures)?;
            if let Some(ending) = ending {
                add_ending(&ending, profile)?;
            }
        }
        Ok(Peak {
            so_far: self.so_far,
            snapshot: self.last,
            error: self.error,
            ending,
        })
    }
}

fn add_ending(ending: &Ending, profile: &mut Profile) -> Result<()> {
    let mut sources = take(&mut profile.sources);
    for source in &mut sources {
        let end = attribute(END, ValueKind::String, &ending.in_words(), profile)?;
        source.attributes.try_push(end)?;
    }
    profile.sources = sources;
    Ok(())
}

#[cfg(test)]
mod tests;
