//! When ticks are: random moments, one in each interval on average.

use std::time::{Duration, Instant};

/// The time until the next tick, given a random number between 0 and 1: it differs from the interval by up to a quarter.
/// Ticks at regular times may be in step with the process, such as a service that wakes up by a timer, or with a timer
/// of the kernel: with such stops, 1,000 times a second, a sixth of the signals for an `Rprof()` in the process did not
/// come.
pub fn until_next(interval: Duration, chance: f64) -> Duration {
    interval.mul_f64(0.75 + chance / 2.0)
}

/// The time of the tick after the one that was due at `last`. Ticks that were missed are skipped: there are many of them
/// after the system was suspended.
pub fn next_tick(last: Instant, pause: Duration, now: Instant) -> Instant {
    (last + pause).max(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_irregular() {
        let interval = Duration::from_millis(100);
        for (chance, milliseconds) in [(0.0, 75), (0.5, 100), (1.0, 125)] {
            assert_eq!(
                until_next(interval, chance),
                Duration::from_millis(milliseconds)
            );
        }
    }

    #[test]
    fn ticks_that_were_missed_are_skipped() {
        let pause = Duration::from_millis(10);
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        for (last, now, next) in [
            (0, 1, 10),
            (0, 10, 10),
            (10, 12, 20),
            (10, 25, 25),
            (10, 9999, 9999),
        ] {
            assert_eq!(next_tick(after(last), pause, after(now)), after(next));
        }
    }
}
