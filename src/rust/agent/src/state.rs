//! The state of an agent, which its thread and R's thread share: the counts of samples, and where chunks go.
//!
//! All counts change under one lock, so their sum is always consistent. Files have another lock, so that R need not wait
//! for a slow disk to get the status.

use crate::counts::{Content, Counts, Moves, Waiting};
use crate::folder::Folder;
use crate::now::Now;
use crate::spool::Spool;
use profile_core::error::Result;
use profile_core::message;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where complete chunks go.
#[derive(Debug)]
pub enum Store {
    /// To files of the user, which are thereby sent.
    Folder(Folder),
    Spool(Spool),
}

#[derive(Debug)]
pub struct State {
    counts: Mutex<Counts>,
    store: Mutex<Store>,
    is_stopped: AtomicBool,
    /// The deadline for sending, set when the agent is asked to stop.
    deadline: Mutex<Option<Instant>>,
}

/// What a panic of a thread says.
pub fn in_words(panic: &(dyn Any + Send)) -> String {
    let why = panic.downcast_ref::<String>().map(String::as_str);
    let why = why.or_else(|| panic.downcast_ref::<&str>().copied());
    message!("Internal error: {}.", why.unwrap_or("a panic"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is locked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub fn new(store: Store) -> State {
        State {
            counts: Mutex::default(),
            store: Mutex::new(store),
            is_stopped: AtomicBool::new(false),
            deadline: Mutex::default(),
        }
    }

    pub fn counts(&self) -> Counts {
        lock(&self.counts).clone()
    }

    // ---- Samples ---------------------------------------------------------------

    pub fn took(&self, is_cut: bool) {
        let mut counts = lock(&self.counts);
        counts.taken += 1;
        counts.open += 1;
        counts.cut += u64::from(is_cut);
    }

    pub fn missed(&self) {
        lock(&self.counts).unread += 1;
    }

    pub fn paused(&self, time: Duration) {
        lock(&self.counts).paused += time;
    }

    pub fn used(&self, cpu: u64) {
        lock(&self.counts).cpu = cpu;
    }

    pub fn note(&self, why: String, now: Now) {
        lock(&self.counts).add(Moves::lost(0, Some(why)), now);
    }

    // ---- Chunks ------------------------------------------------------------------

    /// Stores the open chunk, encoded. Only the agent's thread takes samples, so their number stays the same meanwhile.
    pub fn add(&self, bytes: Result<Vec<u8>>, now: Now) {
        let samples = lock(&self.counts).open;
        self.put(bytes, Content::Samples(samples), now);
    }

    /// Stores a snapshot of R's heap, encoded.
    pub fn add_snapshot(&self, bytes: Result<Vec<u8>>, cpu: u64, now: Now) {
        let is_stored = self.put(bytes, Content::Heap, now);
        let mut counts = lock(&self.counts);
        counts.snapshots += u64::from(is_stored);
        counts.snapshots_lost += u64::from(!is_stored);
        counts.cpu_of_snapshots += cpu;
    }

    /// Returns whether it was stored.
    fn put(&self, bytes: Result<Vec<u8>>, content: Content, now: Now) -> bool {
        let samples = content.samples();
        let mut store = lock(&self.store);
        let stored = bytes.and_then(|bytes| match &mut *store {
            Store::Folder(folder) => folder.put(&bytes, content, now),
            Store::Spool(spool) => spool.put(&bytes, samples, now),
        });
        let is_stored = stored.is_ok();
        let moves = stored.unwrap_or_else(|error| Moves::lost(samples, Some(message!("{error}"))));
        self.count(&store, moves, samples, now);
        is_stored
    }

    /// `closed` is the number of samples that have left the open chunk.
    fn count(&self, store: &Store, moves: Moves, closed: u64, now: Now) {
        let mut counts = lock(&self.counts);
        counts.open -= closed;
        counts.waiting = match store {
            Store::Folder(_) => Waiting::default(),
            Store::Spool(spool) => spool.waiting(),
        };
        counts.add(moves, now);
    }

    /// Does something with the spool, if there is one, and counts what it changes.
    pub fn spool(&self, now: Now, act: impl FnOnce(&mut Spool) -> Result<Moves>) {
        let mut store = lock(&self.store);
        if let Store::Spool(spool) = &mut *store {
            let moves = act(spool);
            let moves = moves.unwrap_or_else(|error| Moves::lost(0, Some(message!("{error}"))));
            self.count(&store, moves, 0, now);
        }
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.counts).waiting.chunks == 0
    }

    // ---- The end ---------------------------------------------------------------

    /// Asks the thread to stop, and to send the chunks in the spool until the deadline.
    pub fn stop(&self, deadline: Instant) {
        *lock(&self.deadline) = Some(deadline);
        self.is_stopped.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub fn deadline(&self) -> Option<Instant> {
        *lock(&self.deadline)
    }

    /// Records that the thread has ended.
    pub fn end(&self, why: Option<String>, now: Now) {
        let mut counts = lock(&self.counts);
        counts.ended = true;
        let lost = std::mem::take(&mut counts.open);
        counts.add(Moves::lost(lost, why), now);
    }

    /// Leaves the spool. If `clears`, drops its chunks, since nobody will send them.
    pub fn leave(&self, clears: bool, now: Now) {
        self.spool(now, |spool| {
            let lost = if clears { spool.clear() } else { 0 };
            spool.leave();
            Ok(Moves::lost(lost, None))
        });
    }
}

#[cfg(test)]
mod tests;
