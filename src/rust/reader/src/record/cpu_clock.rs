//! Brings the CPU time of samples to the CPU clock of the thread.
//!
//! A tick at which the thread computes stands for one interval of CPU time. Ticks are random moments, so the shares of
//! code are right, and the sum is right on average. One factor for all samples makes it exact: the CPU time by the
//! clock, divided by the time of the ticks. It is computed from a whole recording, or from enough of its parts: if each
//! part had a factor of its own, code that is rare in most parts would shrink or grow with the chance of a few ticks.

use profile_core::analysis::cpu_clock;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::time::{Duration, Instant};

/// Parts of a recording before the last one count until they have this number of ticks. The standard error of a sum of so
/// many ticks is at most six percent.
const ENOUGH: u64 = 300;
/// How much more CPU time may pass between two readings than real time: the system updates the clocks of other processes
/// only at its own ticks, of which there are at least 100 in a second.
const LAG: Duration = Duration::from_millis(20);

/// The CPU time of a part of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Spent {
    /// By the clock, in nanoseconds.
    clock: u64,
    /// The number of ticks at which the thread computed.
    ticks: u64,
}

/// The clock of a thread, and the ticks so far.
#[derive(Debug, Default)]
pub struct CpuClock {
    last: Option<(u64, Instant)>,
    /// Whether it was read twice, so that some CPU time is known, which may be 0.
    is_known: bool,
    now: Spent,
    /// The parts that the factor is computed from. All except the last one have ticks, so there are few.
    past: Vec<Spent>,
    /// CPU time of parts without any tick, in nanoseconds.
    missed: u64,
}

/// The result for a part of a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// The number of ticks at which the thread computed.
    pub ticks: u64,
    /// The CPU time by the clock, in nanoseconds; `None` if the clock is not known.
    pub clock: Option<u64>,
    /// What a tick stands for, in intervals.
    pub factor: f64,
    /// CPU time of this part and of those before it that had no ticks, in nanoseconds.
    pub missed: u64,
}

impl CpuClock {
    /// Takes a reading of the clock. A clock that was set back, or that runs faster than time, is not believed.
    pub fn read(&mut self, cpu: Option<u64>, now: Instant) {
        let Some(cpu) = cpu else { return };
        if let Some((last, time)) = self.last {
            let most = now.saturating_duration_since(time) + LAG;
            let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
            self.now.clock += cpu.saturating_sub(last).min(most);
            self.is_known = true;
        }
        self.last = Some((cpu, now));
    }

    /// Takes a reading of the clock. What has happened since the last one is unknown, and not part of the recording.
    pub fn skip(&mut self, cpu: Option<u64>, now: Instant) {
        self.last = cpu.map(|cpu| (cpu, now));
    }

    /// Forgets the part that has begun, whose samples are lost.
    pub fn discard(&mut self) {
        self.now = Spent::default();
    }

    /// Counts ticks at which the thread computed.
    pub fn count(&mut self, ticks: u32) {
        self.now.ticks += u64::from(ticks);
    }

    /// The number of ticks of this part at which the thread computed.
    pub fn ticks(&self) -> u64 {
        self.now.ticks
    }

    /// Ends a part. If its samples are kept, so is the count of what was missed.
    pub fn end(&mut self, interval: Duration, is_kept: bool) -> Result<Balance> {
        let part = std::mem::take(&mut self.now);
        match self.past.last_mut().filter(|last| last.ticks == 0) {
            Some(last) => {
                last.clock += part.clock;
                last.ticks = part.ticks;
            }
            None => self.past.try_push(part)?,
        }
        let sum = |parts: &[Spent]| parts.iter().map(|part| part.ticks).sum::<u64>();
        let mut first = 0;
        while sum(self.past.get(first + 1..).unwrap_or_default()) >= ENOUGH {
            first += 1;
        }
        self.past.drain(..first);
        if part.ticks == 0 {
            self.missed += part.clock;
        }
        let clock: u64 = self.past.iter().map(|part| part.clock).sum();
        let ticks = sum(&self.past);
        let factor = if self.is_known && ticks > 0 {
            cpu_clock::factor(clock, ticks, interval.as_nanos() as f64)
        } else {
            1.0
        };
        let balance = Balance {
            ticks: part.ticks,
            clock: self.is_known.then_some(part.clock),
            factor,
            missed: self.missed,
        };
        if is_kept {
            self.missed = 0;
        }
        Ok(balance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const INTERVAL: Duration = Duration::from_millis(10);

    /// A clock of which so many milliseconds and ticks are counted in each part. Returns the factors.
    fn factors(parts: &[(u64, u32)]) -> Vec<f64> {
        let mut clock = CpuClock::default();
        let (mut now, mut cpu) = (Instant::now(), 0);
        clock.read(Some(cpu), now);
        let mut factors = Vec::new();
        for &(time, ticks) in parts {
            now += Duration::from_millis(time);
            cpu += time * MS;
            clock.read(Some(cpu), now);
            clock.count(ticks);
            factors.push(clock.end(INTERVAL, true).unwrap().factor);
        }
        factors
    }

    #[test]
    fn the_factor_is_that_of_the_recording_so_far() {
        assert_eq!(factors(&[(100, 10), (300, 10), (0, 0)]), [1.0, 2.0, 2.0]);
        // It had no processor.
        assert_eq!(factors(&[(0, 10)]), [1e-7]);
        // Until there is a tick, nothing is known.
        assert_eq!(factors(&[(100, 0), (100, 10)]), [1.0, 2.0]);
    }

    #[test]
    fn parts_that_are_not_needed_any_more_do_not_count() {
        // 300 ticks are enough, also if the last part alone has them.
        let parts = [(1000, 200), (3000, 100), (1000, 200), (6000, 300)];
        assert_eq!(factors(&parts), [0.5, 4.0 / 3.0, 4.0 / 3.0, 2.0]);
    }

    #[test]
    fn a_process_that_waits_for_weeks_takes_no_memory() {
        let mut clock = CpuClock::default();
        for part in 0..10_000_u64 {
            if part % 10 == 0 {
                clock.count(1);
            }
            clock.end(INTERVAL, true).unwrap();
        }
        assert_eq!(clock.past.len() as u64, ENOUGH + 1);
    }

    #[test]
    fn ticks_of_samples_that_are_lost_do_not_count() {
        let start = Instant::now();
        let mut clock = CpuClock::default();
        for (time, is_lost) in [(10, false), (20, true), (30, false)] {
            clock.read(Some(time * MS), start + Duration::from_millis(time));
            clock.count(1);
            if is_lost {
                clock.discard();
            }
        }
        let balance = clock.end(INTERVAL, true).unwrap();
        assert_eq!((balance.ticks, balance.clock), (1, Some(10 * MS)));
    }

    #[test]
    fn a_clock_that_jumps_is_not_believed() {
        let start = Instant::now();
        let at = |time| start + Duration::from_millis(time);
        let mut clock = CpuClock::default();
        for (time, cpu) in [(0, 500), (100, 600), (200, 100), (300, 200), (400, 90_000)] {
            clock.read(Some(cpu * MS), at(time));
            clock.count(1);
        }
        let balance = clock.end(INTERVAL, true).unwrap();
        assert_eq!(
            (balance.ticks, balance.clock),
            (5, Some((100 + 100 + 120) * MS))
        );
    }

    #[test]
    fn without_a_clock_a_tick_stands_for_an_interval() {
        let mut clock = CpuClock::default();
        clock.read(None, Instant::now());
        clock.count(1);
        let balance = clock.end(INTERVAL, true).unwrap();
        assert_eq!(
            (balance.ticks, balance.clock, balance.factor),
            (1, None, 1.0)
        );
    }

    #[test]
    fn cpu_time_without_a_tick_is_counted_until_samples_are_kept() {
        let start = Instant::now();
        let at = |time| start + Duration::from_millis(time);
        let mut clock = CpuClock::default();
        clock.read(Some(0), at(0));
        let mut missed = Vec::new();
        for part in 1..=3 {
            clock.read(Some(5 * part * MS), at(15_000 * part));
            if part == 3 {
                clock.count(1);
            }
            missed.push(clock.end(INTERVAL, part == 3).unwrap().missed / MS);
        }
        missed.push(clock.end(INTERVAL, true).unwrap().missed / MS);
        assert_eq!(missed, [5, 10, 10, 0]);
    }

    #[test]
    fn what_happens_in_a_gap_does_not_count() {
        let start = Instant::now();
        let at = |time| start + Duration::from_millis(time);
        let mut clock = CpuClock::default();
        clock.read(Some(0), at(0));
        clock.read(Some(10 * MS), at(10));
        clock.skip(Some(3000 * MS), at(3600));
        clock.read(Some(3004 * MS), at(3610));
        assert_eq!(clock.end(INTERVAL, true).unwrap().clock, Some(14 * MS));
    }
}
