//! About how much time a recording takes itself: new stacks and the reasons of copies are timed, of all other events only a
//! few, since reading the clock takes as long as a part of one.

use std::time::Instant;

/// One of so many events is timed. It is a prime number, since events of a loop repeat with a period.
const EACH: u64 = 61;

/// More nanoseconds than an ordinary event takes. Another process has run meanwhile, or a table has grown: this does not
/// stand for other events.
const LONG: u64 = 20_000;

#[derive(Debug, Default)]
pub struct Cost {
    /// The number of events, except for new stacks and the like.
    events: u64,
    /// What these took, as far as they were timed, and what the others took, in nanoseconds.
    sampled: u64,
    timed: u64,
}

/// The start of an event that is timed.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    at: Instant,
    timed: u64,
}

impl Cost {
    /// Begins an event.
    pub fn begin(&mut self) -> Option<Start> {
        self.begin_at(Instant::now)
    }

    /// Ends it. What was added meanwhile is not part of it.
    pub fn end(&mut self, start: Option<Start>) {
        if let Some(start) = start {
            self.end_after(start, nanoseconds_since(start.at));
        }
    }

    /// Adds what has taken time since this moment.
    pub fn add(&mut self, since: Instant) {
        self.timed = self.timed.saturating_add(nanoseconds_since(since));
    }

    /// The time of all events, in nanoseconds.
    pub fn nanoseconds(&self) -> u64 {
        self.timed.saturating_add(self.sampled.saturating_mul(EACH))
    }

    fn begin_at(&mut self, now: impl FnOnce() -> Instant) -> Option<Start> {
        self.events = self.events.wrapping_add(1);
        (self.events % EACH == 0).then(|| Start {
            at: now(),
            timed: self.timed,
        })
    }

    fn end_after(&mut self, start: Start, nanoseconds: u64) {
        let own = nanoseconds.saturating_sub(self.timed - start.timed);
        if own > LONG {
            self.timed = self.timed.saturating_add(own);
        } else {
            self.sampled = self.sampled.saturating_add(own);
        }
    }
}

pub fn nanoseconds_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_events_are_timed_and_stand_for_all() {
        let mut cost = Cost::default();
        let now = Instant::now();
        let starts: Vec<_> = (0..610).filter_map(|_| cost.begin_at(|| now)).collect();
        assert_eq!(starts.len(), 10);
        for start in starts {
            cost.end_after(start, 100);
        }
        assert_eq!(cost.nanoseconds(), 61_000);
    }

    #[test]
    fn a_new_stack_counts_once() {
        let mut cost = Cost::default();
        let now = Instant::now();
        let start = (0..61).find_map(|_| cost.begin_at(|| now)).unwrap();
        // The stack takes 5,000 ns of these.
        cost.timed += 5_000;
        cost.end_after(start, 5_100);
        assert_eq!(cost.nanoseconds(), 5_000 + 61 * 100);
        // An interruption does not stand for others.
        let start = Start {
            at: now,
            timed: 5_000,
        };
        cost.end_after(start, 1_000_000);
        assert_eq!(cost.nanoseconds(), 1_005_000 + 61 * 100);
        // The clock has been read later for the whole than for the part.
        let start = Start { at: now, timed: 0 };
        cost.end_after(start, 10);
        assert_eq!(cost.nanoseconds(), 1_005_000 + 61 * 100);
    }
}
