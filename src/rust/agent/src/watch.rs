//! When the forwarder is started: it should run as long as there is an agent.

use profile_core::retry;
use std::time::{Duration, Instant};

/// The first delay before a restart: of a forwarder that was running, and of one that has not come up, which may still
/// be loading packages on a busy machine.
const AGAIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);
/// A forwarder that has run for this long counts as successful.
const GOOD: Duration = Duration::from_secs(60);

pub struct Watch {
    /// How often this agent has started a forwarder since one ran long enough, and when it last did so.
    starts: u32,
    started: Instant,
    /// Whether a forwarder was running since then.
    has_run: bool,
    /// Randomises delays: the number for the next one, and where numbers come from.
    drawn: f64,
    chance: fn() -> f64,
}

impl Watch {
    pub fn new(now: Instant) -> Watch {
        Watch {
            starts: 0,
            started: now,
            has_run: false,
            drawn: 0.0,
            chance: retry::chance,
        }
    }

    /// A forwarder is running now.
    pub fn runs(&mut self, now: Instant) {
        self.has_run = true;
        if now.saturating_duration_since(self.started) > GOOD {
            self.starts = 0;
        }
    }

    /// The forwarder that was started did its work, and has ended, between two looks.
    pub fn has_run(&mut self) {
        self.has_run = true;
    }

    /// Whether to start a forwarder now, if none is running.
    pub fn is_due(&self, now: Instant) -> bool {
        let first = if self.has_run { AGAIN } else { PATIENCE };
        self.starts == 0 || now >= self.started + retry::delay(self.starts, first, self.drawn)
    }

    /// A forwarder is started now. Returns whether the previous one has failed to start.
    pub fn starts(&mut self, now: Instant) -> bool {
        let has_failed = self.starts > 0 && !self.has_run;
        self.starts = self.starts.saturating_add(1);
        self.started = now;
        self.drawn = (self.chance)();
        self.has_run = false;
        has_failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{beginning, seconds};

    struct World {
        watch: Watch,
        is_running: bool,
        start: Instant,
    }

    impl World {
        fn new(chance: fn() -> f64) -> World {
            let start = beginning().instant;
            let mut watch = Watch::new(start);
            watch.chance = chance;
            World {
                watch,
                is_running: false,
                start,
            }
        }

        /// Looks every second from `begin` to `end`. Returns when a forwarder was started, and whether the previous one
        /// had failed.
        fn starts(&mut self, begin: u32, end: u32) -> Vec<(u32, bool)> {
            let mut starts = Vec::new();
            for second in begin..=end {
                let now = self.start + seconds(f64::from(second));
                if self.is_running {
                    self.watch.runs(now);
                } else if self.watch.is_due(now) {
                    starts.push((second, self.watch.starts(now)));
                }
            }
            starts
        }
    }

    fn half() -> f64 {
        0.5
    }

    #[test]
    fn a_forwarder_that_does_not_come_up_is_started_again_with_growing_delays() {
        // The delays are 5, 10, 20, 30 and 30 seconds, up to half shorter or longer.
        for (chance, expected) in [
            (half as fn() -> f64, [0, 5, 15, 35, 65, 95]),
            (|| 0.0, [0, 3, 8, 18, 33, 48]),
            (|| 1.0, [0, 8, 23, 53, 98, 143]),
        ] {
            let expected = expected.map(|second| (second, second > 0));
            let mut world = World::new(chance);
            assert_eq!(world.starts(0, expected[5].0), expected);
        }
    }

    #[test]
    fn a_forwarder_that_ends_is_started_again() {
        let mut world = World::new(half);
        assert_eq!(world.starts(0, 0), [(0, false)]);
        world.is_running = true;
        assert_eq!(world.starts(1, 4), []);
        // Three times: after 1, 2 and 4 seconds since the last start.
        for (begin, start) in [(5, 5), (7, 7), (9, 11)] {
            world.is_running = false;
            assert_eq!(world.starts(begin, start), [(start, false)]);
            world.is_running = true;
            assert_eq!(world.starts(start + 1, start + 1), []);
        }
    }

    #[test]
    fn a_forwarder_that_ran_between_two_looks_has_come_up() {
        let mut world = World::new(half);
        assert_eq!(world.starts(0, 0), [(0, false)]);
        world.watch.has_run();
        assert_eq!(world.starts(1, 2), [(1, false)]);
    }

    #[test]
    fn a_forwarder_that_has_run_for_a_minute_counts_as_successful() {
        let mut world = World::new(half);
        world.starts(0, 15);
        assert_eq!(world.watch.starts, 3);
        world.is_running = true;
        world.starts(16, 75);
        assert_eq!(world.watch.starts, 3);
        world.starts(76, 76);
        assert_eq!(world.watch.starts, 0);
        world.is_running = false;
        assert_eq!(world.starts(77, 80), [(77, false)]);
        // It does not come up, and the delays start again.
        assert_eq!(world.starts(81, 82), [(82, true)]);
    }
}
