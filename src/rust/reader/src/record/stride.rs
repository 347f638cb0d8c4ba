//! How many ticks a sample stands for.
//!
//! Reading a stack of thousands of calls takes milliseconds, for which the process is stopped. So that it is stopped for
//! about a quarter of the time at most, not every tick is used then, and a sample stands for the ticks since the last one that was
//! used. Which ticks are used depends on the durations before, but not on what the process does now, so no code has more
//! samples than others.

use std::time::Duration;

/// The process may be stopped for one of so many parts of the time, on average.
const PARTS: f64 = 4.0;
/// The mean duration is computed over about so many ticks: a single long stop, for example on a busy machine, changes nothing.
const RECENT: f64 = 16.0;

#[derive(Debug)]
pub struct Stride {
    interval: Duration,
    /// The mean time of stops at a tick that is used, in nanoseconds.
    mean: f64,
    /// The number of ticks since the last one that was used.
    passed: u32,
}

impl Stride {
    pub fn new(interval: Duration) -> Stride {
        Stride {
            interval,
            mean: 0.0,
            passed: 0,
        }
    }

    /// Called at a tick. If it is used, the number of ticks that it stands for.
    pub fn next(&mut self) -> Option<u32> {
        self.passed = self.passed.saturating_add(1);
        let least = self.mean * PARTS / self.interval.as_nanos() as f64;
        if f64::from(self.passed) < least {
            return None;
        }
        Some(std::mem::take(&mut self.passed))
    }

    /// Adds how long the process was stopped at a tick that was used, in nanoseconds.
    pub fn add(&mut self, pause: u64) {
        self.mean += (pause as f64 - self.mean) / RECENT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ticks that each sample stands for, if each of them takes so many microseconds.
    fn strides(pause: u64, samples: usize) -> Vec<u32> {
        let mut stride = Stride::new(Duration::from_millis(10));
        let mut found = Vec::new();
        while found.len() < samples {
            if let Some(ticks) = stride.next() {
                found.push(ticks);
                stride.add(pause * 1000);
            }
        }
        found
    }

    #[test]
    fn a_process_is_stopped_for_about_a_quarter_of_the_time_at_most() {
        assert_eq!(strides(2500, 1000), [1; 1000]);
        // 12 ms in each 50 ms.
        let found = strides(12_000, 200);
        assert_eq!(found[0], 1);
        assert_eq!(found[100..], [5; 100]);
        assert!(found.is_sorted());
    }

    #[test]
    fn a_single_long_stop_changes_nothing() {
        let mut stride = Stride::new(Duration::from_millis(10));
        stride.add(30_000_000);
        for _ in 0..100 {
            assert_eq!(stride.next(), Some(1));
            stride.add(50_000);
        }
    }

    #[test]
    fn every_tick_is_counted_once() {
        let mut stride = Stride::new(Duration::from_millis(1));
        let mut sum = 0;
        for tick in 1..=10_000_u32 {
            if let Some(ticks) = stride.next() {
                sum += ticks;
                stride.add(if tick % 1000 < 300 { 3_000_000 } else { 20_000 });
            }
            assert!(sum + 13 >= tick && sum <= tick);
        }
    }
}
