//! Ensures that a helper is running as long as there is an agent.

use crate::relay::site::Site;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::retry;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often to check whether a helper is running.
const LOOK: Duration = Duration::from_secs(1);
/// The first delay before a restart: of a helper that was running, and of one that has not come up, which may still
/// be loading packages on a busy machine.
const AGAIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);
/// A helper that has run for this long counts as successful.
const GOOD: Duration = Duration::from_secs(60);

pub struct Watch {
    site: Box<dyn Site>,
    /// Whether the folder exists and is not being removed, and whether a helper was running, at the last check.
    is_ready: bool,
    is_running: bool,
    next: Instant,
    /// How often this agent has started a helper since one ran long enough, and when it last did so.
    starts: u32,
    started: Instant,
    /// Whether a helper was running since then.
    has_run: bool,
    /// Randomises delays: the number for the next one, and where numbers come from.
    drawn: f64,
    pub(super) chance: fn() -> f64,
}

impl Watch {
    pub fn new(site: Box<dyn Site>, now: Instant) -> Watch {
        Watch {
            site,
            is_ready: false,
            is_running: false,
            next: now,
            starts: 0,
            started: now,
            has_run: false,
            drawn: 0.0,
            chance: retry::chance,
        }
    }

    pub fn folder(&self) -> &Path {
        self.site.folder()
    }

    /// Whether a helper was running at the last check.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether the folder existed and was not being removed at the last check.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Checks for the helper, if a check is due, and starts it if necessary. Fails if that is not possible, with the
    /// reason.
    pub fn look(&mut self, now: Instant) -> Result<()> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + LOOK;
        (self.is_ready, self.is_running) = (false, false);
        self.is_ready = self.site.enter()?;
        if !self.is_ready {
            return Ok(());
        }
        self.is_running = self.site.is_helped()?;
        if self.is_running {
            self.site.end_turn()?;
            self.has_run = true;
            if now.saturating_duration_since(self.started) > GOOD {
                self.starts = 0;
            }
            return Ok(());
        }
        let first = if self.has_run { AGAIN } else { PATIENCE };
        let pause = match self.starts {
            0 => Duration::ZERO,
            starts => retry::delay(starts, first, self.drawn),
        };
        if now < self.started + pause || !self.site.take_turn()? {
            return Ok(());
        }
        let is_failure = self.starts > 0 && !self.has_run;
        let said = match is_failure {
            true => self.site.said(),
            false => String::new(),
        };
        self.starts = self.starts.saturating_add(1);
        self.started = now;
        self.drawn = (self.chance)();
        self.has_run = false;
        self.site.start().map_err(|error| {
            Error::Process(message!("The helper process cannot be started: {error}."))
        })?;
        match is_failure {
            true => Err(Error::Process(message!(
                "The helper process did not start{said}."
            ))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Helper, Place, Shared, beginning, seconds};

    struct World {
        watch: Watch,
        helper: Shared<Helper>,
        start: Instant,
    }

    impl World {
        fn new(chance: fn() -> f64) -> World {
            let (start, helper) = (beginning().instant, Shared::<Helper>::default());
            let place = Place {
                folder: "/a".into(),
                helper: helper.clone(),
            };
            let mut watch = Watch::new(Box::new(place), start);
            watch.chance = chance;
            World {
                watch,
                helper,
                start,
            }
        }

        fn look(&mut self, time: f64) -> Result<()> {
            self.watch.look(self.start + seconds(time))
        }

        /// Looks every second from `begin` to `end`. Returns when a helper was started.
        fn starts(&mut self, begin: u32, end: u32) -> Vec<u32> {
            let mut starts = Vec::new();
            for second in begin..=end {
                let before = self.helper.borrow().starts;
                let result = self.look(f64::from(second));
                if self.helper.borrow().starts > before {
                    starts.push(second);
                } else {
                    result.unwrap();
                }
            }
            starts
        }

        fn is_running(&self, is_running: bool) {
            self.helper.borrow_mut().is_running = is_running;
        }
    }

    #[test]
    fn a_helper_that_does_not_come_up_is_started_again_with_growing_delays() {
        // The delays are 5, 10, 20, 30 and 30 seconds, up to half shorter or longer.
        for (chance, expected) in [
            (half as fn() -> f64, [0, 5, 15, 35, 65, 95]),
            (never, [0, 3, 8, 18, 33, 48]),
            (always, [0, 8, 23, 53, 98, 143]),
        ] {
            let mut world = World::new(chance);
            assert_eq!(world.starts(0, expected[5]), expected);
        }
        let mut world = World::new(half);
        world.look(0.0).unwrap();
        assert!(world.watch.is_ready() && !world.watch.is_running());
        let error = world.look(5.0).unwrap_err().to_string();
        assert_eq!(error, "The helper process did not start: broken.");
    }

    fn half() -> f64 {
        0.5
    }
    fn never() -> f64 {
        0.0
    }
    fn always() -> f64 {
        1.0
    }

    #[test]
    fn a_helper_that_ends_is_started_again() {
        let mut world = World::new(half);
        assert_eq!(world.starts(0, 0), [0]);
        world.is_running(true);
        assert_eq!(world.starts(1, 4), [0; 0]);
        assert!(world.watch.is_running() && !world.helper.borrow().has_turn);
        // Three times: after 1, 2 and 4 seconds since the last start.
        for (begin, start) in [(5, 5), (7, 7), (9, 11)] {
            world.is_running(false);
            assert_eq!(world.starts(begin, start), [start]);
            assert!(world.helper.borrow().has_turn && !world.watch.is_running());
            world.is_running(true);
            assert_eq!(world.starts(start + 1, start + 1), [0; 0]);
        }
    }

    #[test]
    fn a_helper_that_has_run_for_a_minute_counts_as_successful() {
        let mut world = World::new(half);
        world.starts(0, 15);
        assert_eq!(world.helper.borrow().starts, 3);
        world.is_running(true);
        world.starts(16, 75);
        assert_eq!(world.watch.starts, 3);
        world.starts(76, 76);
        assert_eq!(world.watch.starts, 0);
        world.is_running(false);
        assert_eq!(world.starts(77, 80), [77]);
        // It does not come up, and the delays start again.
        assert_eq!(world.starts(81, 82), [82]);
    }

    #[test]
    fn one_agent_at_a_time_starts_the_helper() {
        let mut world = World::new(half);
        world.helper.borrow_mut().is_turn_of_other = true;
        assert_eq!(world.starts(0, 9), [0; 0]);
        world.helper.borrow_mut().is_turn_of_other = false;
        assert_eq!(world.starts(10, 14), [10]);
    }

    #[test]
    fn there_is_one_look_per_second() {
        let mut world = World::new(half);
        for time in [0.0, 0.0, 0.5, 0.999, 1.0, 1.5, 2.5] {
            world.look(time).unwrap();
        }
        assert_eq!(world.helper.borrow().looks, 3);
        assert_eq!(world.watch.folder(), Path::new("/a"));
    }

    #[test]
    fn nothing_is_started_while_the_folder_is_removed() {
        let mut world = World::new(half);
        assert!(!world.watch.is_ready());
        world.is_running(true);
        world.look(0.0).unwrap();
        assert!(world.watch.is_ready() && world.watch.is_running());
        world.helper.borrow_mut().is_closing = true;
        world.look(1.0).unwrap();
        assert!(!world.watch.is_ready() && !world.watch.is_running());
        assert_eq!(world.helper.borrow().starts, 0);
    }

    #[test]
    fn a_helper_that_cannot_be_started_is_an_error() {
        let mut world = World::new(half);
        world.helper.borrow_mut().cannot_start = true;
        let error = world.look(0.0).unwrap_err().to_string();
        assert_eq!(
            error,
            "The helper process cannot be started: permission denied."
        );
        // It waits before another attempt.
        assert_eq!(world.starts(1, 20), [5, 15]);
    }
}
