//! The state of an agent, which its thread and R's thread share: the counts of samples, and where chunks go.
//!
//! All counts change under one lock, so their sum is always consistent. Files have another lock, so that R need not wait
//! for a slow disk to get the status.

use crate::counts::{Counts, Moves, Waiting};
use crate::folder::Folder;
use crate::now::Now;
use crate::spool::Spool;
use profile_core::error::Result;
use profile_core::message;
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
        let why = Some(why);
        lock(&self.counts).add(
            Moves {
                why,
                ..Moves::default()
            },
            now,
        );
    }

    // ---- Chunks ------------------------------------------------------------------

    /// Stores the open chunk, encoded. Only the agent's thread takes samples, so their number stays the same meanwhile.
    pub fn add(&self, bytes: Result<Vec<u8>>, now: Now) {
        let samples = lock(&self.counts).open;
        let mut store = lock(&self.store);
        let stored = bytes.and_then(|bytes| match &mut *store {
            Store::Folder(folder) => folder.put(&bytes, samples, now),
            Store::Spool(spool) => spool.put(&bytes, samples, now),
        });
        let moves = stored.unwrap_or_else(|error| Moves {
            lost: samples,
            why: Some(message!("{error}")),
            ..Moves::default()
        });
        self.count(&store, moves, samples, now);
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
            let moves = act(spool).unwrap_or_else(|error| Moves {
                why: Some(message!("{error}")),
                ..Moves::default()
            });
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
        counts.add(
            Moves {
                lost,
                why,
                ..Moves::default()
            },
            now,
        );
    }

    /// Leaves the spool. If `clears`, drops its chunks, since nobody will send them.
    pub fn leave(&self, clears: bool, now: Now) {
        self.spool(now, |spool| {
            let lost = if clears { spool.clear() } else { 0 };
            spool.leave();
            Ok(Moves {
                lost,
                ..Moves::default()
            })
        });
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use crate::script::{add_chunk, beginning, checked, spooled};
    use profile_core::error::Error;

    #[test]
    fn every_sample_is_somewhere() {
        let (state, folder) = spooled(1000);
        let now = beginning();
        state.took(true);
        state.add(Err(Error::Memory), now);
        assert_eq!(checked(&state).moves.lost, 1);
        add_chunk(&state, 5, 1, now);
        state.took(false);
        state.missed();
        state.end(Some("panic".into()), now);
        let counts = checked(&state);
        assert_eq!((counts.moves.lost, counts.open, counts.unread), (2, 0, 1));
        assert!(!state.is_empty() && counts.ended);
        state.leave(true, now);
        let counts = checked(&state);
        assert_eq!((counts.moves.lost, counts.taken, counts.cut), (7, 7, 1));
        assert_eq!(counts.last_error.unwrap().0, "panic");
        assert!(state.is_empty() && !folder.exists());
    }

    #[test]
    fn times_are_those_of_the_caller() {
        let (state, _folder) = spooled(1000);
        let now = beginning();
        let moves = |chunks_sent| Moves {
            chunks_sent,
            ..Moves::default()
        };
        state.spool(now, |_| Ok(moves(0)));
        assert_eq!(checked(&state).last_sent, None);
        state.spool(now, |_| Ok(moves(2)));
        state.note("why".into(), now.after(2.0));
        let counts = checked(&state);
        assert_eq!(
            (counts.last_sent, counts.moves.chunks_sent),
            (Some(784_111_747.0), 2)
        );
        assert_eq!(counts.last_error, Some(("why".into(), 784_111_749.0)));
        state.paused(Duration::from_secs(1));
        state.paused(Duration::from_secs(2));
        state.used(5);
        state.used(7);
        let counts = checked(&state);
        assert_eq!((counts.paused, counts.cpu), (Duration::from_secs(3), 7));
        assert!(!state.is_stopped() && state.deadline().is_none());
        state.stop(now.instant);
        assert!(state.is_stopped());
        assert_eq!(state.deadline(), Some(now.instant));
    }
}
