//! The chunks that wait to be sent, and the counts of samples.
//!
//! Each sample that was taken is in exactly one state: in the open chunk, in a queued chunk, sent, or dropped. All
//! counts change under one lock, so their sum is always consistent.

use crate::now::Now;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The encoded samples of a few seconds.
#[derive(Debug, Clone)]
pub struct Chunk {
    pub number: u64,
    pub samples: u64,
    pub bytes: Arc<Vec<u8>>,
}

/// Why samples are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The queue was full.
    Full,
    /// They were rejected, or it is unknown whether they arrived.
    Refused,
    /// They could not be encoded, or were not sent when the agent ended.
    Lost,
}

/// The counts since the start of the agent.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub taken: u64,
    /// Samples in the open chunk.
    pub open: u64,
    pub sent: u64,
    pub full: u64,
    pub refused: u64,
    pub lost: u64,
    /// Stacks that could not be read. They do not count as samples.
    pub unread: u64,
    /// How long R's profiler was not running for the agent.
    pub paused: Duration,
    /// Samples whose outermost calls were omitted.
    pub cut: u64,
    pub chunks_sent: u64,
    /// Profiles that a server rejected from chunks that it accepted.
    pub rejected: u64,
    /// The CPU time of the thread, in nanoseconds.
    pub cpu: u64,
    pub last_sent: Option<f64>,
    pub last_error: Option<(String, f64)>,
    /// Whether the thread has ended.
    pub ended: bool,
}

impl Counts {
    pub fn dropped(&self) -> u64 {
        self.full + self.refused + self.lost
    }
}

#[derive(Debug, Default)]
struct Inner {
    counts: Counts,
    chunks: Vec<Chunk>,
    bytes: usize,
    next: u64,
    /// The chunk that is being sent, which must not be dropped.
    in_flight: Option<u64>,
    /// The deadline for sending, set when the agent is asked to stop.
    deadline: Option<Instant>,
}

/// The state shared by the agent's thread and R's thread.
#[derive(Debug)]
pub struct Queue {
    /// The maximum size of all chunks, in bytes.
    limit: usize,
    inner: Mutex<Inner>,
    is_stopped: AtomicBool,
}

impl Queue {
    pub fn new(limit: usize) -> Queue {
        Queue {
            limit,
            inner: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is locked.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }

    /// The counts, and the number of queued chunks, samples and bytes.
    pub fn all(&self) -> (Counts, usize, u64, usize) {
        let inner = self.lock();
        let samples = inner.chunks.iter().map(|chunk| chunk.samples).sum();
        (
            inner.counts.clone(),
            inner.chunks.len(),
            samples,
            inner.bytes,
        )
    }

    pub fn is_empty(&self) -> bool {
        self.lock().chunks.is_empty()
    }

    // ---- Samples ---------------------------------------------------------------

    pub fn took(&self, is_cut: bool) {
        let counts = &mut self.lock().counts;
        counts.taken += 1;
        counts.open += 1;
        counts.cut += u64::from(is_cut);
    }

    pub fn missed(&self) {
        self.lock().counts.unread += 1;
    }

    pub fn paused(&self, time: Duration) {
        self.lock().counts.paused += time;
    }

    pub fn used(&self, cpu: u64) {
        self.lock().counts.cpu = cpu;
    }

    /// Adds the open chunk to the queue, encoded.
    pub fn add(&self, bytes: Result<Vec<u8>>, now: Now) {
        let mut inner = self.lock();
        let samples = std::mem::take(&mut inner.counts.open);
        let number = inner.next;
        inner.next += 1;
        let size = bytes.as_ref().map_or(0, Vec::len);
        let chunk = bytes.and_then(|bytes| {
            let bytes = Arc::new(bytes);
            inner.chunks.try_push(Chunk {
                number,
                samples,
                bytes,
            })
        });
        match chunk {
            Ok(()) => inner.bytes += size,
            Err(error) => {
                inner.counts.lost += samples;
                inner.note(message!("{error}"), now);
            }
        }
        while inner.bytes > self.limit {
            let oldest = |chunk: &Chunk| Some(chunk.number) != inner.in_flight;
            let Some(oldest) = inner.chunks.iter().position(oldest) else {
                break;
            };
            let number = inner.chunks[oldest].number;
            inner.discard(number, Why::Full);
        }
    }

    // ---- Sending ---------------------------------------------------------------

    /// The oldest chunk, which is marked as being sent.
    pub fn front(&self) -> Option<Chunk> {
        let mut inner = self.lock();
        let chunk = inner.chunks.first().cloned();
        inner.in_flight = chunk.as_ref().map(|chunk| chunk.number);
        chunk
    }

    pub fn sent(&self, number: u64, rejected: u64, now: Now) {
        let mut inner = self.lock();
        inner.in_flight = None;
        if let Some(chunk) = inner.take(number) {
            inner.counts.sent += chunk.samples;
            inner.counts.chunks_sent += 1;
            inner.counts.rejected += rejected;
            inner.counts.last_sent = now.unix();
        }
    }

    /// The attempt to send failed and will be repeated.
    pub fn failed(&self, why: String, now: Now) {
        let mut inner = self.lock();
        inner.in_flight = None;
        inner.note(why, now);
    }

    pub fn refused(&self, number: u64, why: String, now: Now) {
        let mut inner = self.lock();
        inner.in_flight = None;
        inner.discard(number, Why::Refused);
        inner.note(why, now);
    }

    pub fn note(&self, why: String, now: Now) {
        self.lock().note(why, now);
    }

    // ---- The end ---------------------------------------------------------------

    /// Asks the thread to stop, and to send the queued chunks until the deadline.
    pub fn stop(&self, deadline: Instant) {
        self.lock().deadline = Some(deadline);
        self.is_stopped.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.lock().deadline
    }

    /// Records that the thread has ended.
    pub fn end(&self, why: Option<String>, now: Now) {
        let mut inner = self.lock();
        inner.counts.ended = true;
        inner.in_flight = None;
        inner.counts.lost += std::mem::take(&mut inner.counts.open);
        if let Some(why) = why {
            inner.note(why, now);
        }
    }

    /// Drops the queued chunks, since nobody will send them.
    pub fn clear(&self) {
        let mut inner = self.lock();
        while let Some(number) = inner.chunks.last().map(|chunk| chunk.number) {
            inner.discard(number, Why::Lost);
        }
    }
}

impl Inner {
    fn take(&mut self, number: u64) -> Option<Chunk> {
        let row = self.chunks.iter().position(|c| c.number == number)?;
        let chunk = self.chunks.remove(row);
        self.bytes -= chunk.bytes.len();
        Some(chunk)
    }

    fn discard(&mut self, number: u64, why: Why) {
        let Some(chunk) = self.take(number) else {
            return;
        };
        let count = match why {
            Why::Full => &mut self.counts.full,
            Why::Refused => &mut self.counts.refused,
            Why::Lost => &mut self.counts.lost,
        };
        *count += chunk.samples;
    }

    fn note(&mut self, why: String, now: Now) {
        self.counts.last_error = Some((why, now.unix().unwrap_or(0.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{beginning, checked};
    use profile_core::error::Error;

    fn take(queue: &Queue, samples: u64, bytes: usize) {
        for _ in 0..samples {
            queue.took(false);
        }
        queue.add(Ok(vec![0; bytes]), beginning());
    }

    #[test]
    fn the_oldest_chunks_are_dropped_but_not_the_one_that_is_sent() {
        let queue = Queue::new(100);
        take(&queue, 1, 40);
        take(&queue, 2, 40);
        let first = queue.front().unwrap();
        take(&queue, 4, 40);
        assert_eq!(checked(&queue).full, 2);
        queue.sent(first.number, 3, beginning());
        let counts = checked(&queue);
        assert_eq!(
            (counts.sent, counts.rejected, counts.chunks_sent),
            (1, 3, 1)
        );
        assert_eq!(queue.front().unwrap().samples, 4);
        // Larger than the limit of the queue.
        queue.failed("away".into(), beginning());
        take(&queue, 8, 101);
        assert_eq!(checked(&queue).full, 14);
        assert!(queue.is_empty());
        assert_eq!(queue.all().3, 0);
    }

    #[test]
    fn every_sample_is_somewhere() {
        let queue = Queue::new(100);
        queue.took(true);
        queue.add(Err(Error::Memory), beginning());
        assert_eq!(checked(&queue).lost, 1);
        take(&queue, 5, 10);
        let chunk = queue.front().unwrap();
        queue.refused(chunk.number, "no".into(), beginning());
        // It is no longer in the queue.
        queue.sent(chunk.number, 0, beginning());
        assert_eq!(checked(&queue).refused, 5);
        take(&queue, 2, 10);
        queue.took(false);
        queue.missed();
        queue.end(Some("panic".into()), beginning());
        let counts = checked(&queue);
        assert_eq!((counts.lost, counts.open, counts.unread), (2, 0, 1));
        queue.clear();
        let counts = checked(&queue);
        assert_eq!((counts.lost, counts.taken, counts.cut), (4, 9, 1));
        assert_eq!(counts.last_error.unwrap().0, "panic");
    }

    #[test]
    fn a_chunk_that_fills_the_queue_exactly_is_kept() {
        let queue = Queue::new(100);
        take(&queue, 1, 60);
        take(&queue, 2, 40);
        assert_eq!(checked(&queue).full, 0);
        let (_, chunks, samples, bytes) = queue.all();
        assert_eq!((chunks, samples, bytes), (2, 3, 100));
        take(&queue, 4, 1);
        assert_eq!(checked(&queue).full, 1);
        let (_, chunks, samples, bytes) = queue.all();
        assert_eq!((chunks, samples, bytes), (2, 6, 41));
        // After a failed attempt, the oldest chunk may be dropped again.
        queue.front().unwrap();
        queue.failed("away".into(), beginning());
        take(&queue, 8, 100);
        assert_eq!(checked(&queue).full, 7);
        assert_eq!(queue.front().unwrap().number, 3);
    }

    #[test]
    fn times_are_those_of_the_caller() {
        let (queue, now) = (Queue::new(100), beginning());
        take(&queue, 1, 1);
        assert_eq!(checked(&queue).last_sent, None);
        queue.sent(0, 0, now);
        queue.note("why".into(), now.after(2.0));
        let counts = checked(&queue);
        assert_eq!(counts.last_sent, Some(784_111_747.0));
        assert_eq!(counts.last_error, Some(("why".into(), 784_111_749.0)));
        queue.paused(Duration::from_secs(1));
        queue.paused(Duration::from_secs(2));
        queue.used(5);
        queue.used(7);
        let counts = checked(&queue);
        assert_eq!(
            (counts.paused, counts.cpu, counts.ended),
            (Duration::from_secs(3), 7, false)
        );
        assert!(!queue.is_stopped() && queue.deadline().is_none());
        queue.stop(now.instant);
        assert!(queue.is_stopped());
        assert_eq!(queue.deadline(), Some(now.instant));
        queue.end(None, now);
        assert!(checked(&queue).ended);
    }
}
