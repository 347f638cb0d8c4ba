//! When snapshots of R's heap are taken: at regular times, or whenever the memory is higher than ever.

use crate::figures::Figures;
use crate::now::Now;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_reader::heap::maxima::{Bounds, Maxima};
use profile_reader::live::memory_left;
use std::time::{Duration, Instant};

/// The time between two looks at the memory.
const LOOK: Duration = Duration::from_millis(20);
/// Snapshots of peaks take one of twenty parts of the CPU time at most, and one more second.
const BOUNDS: Bounds = Bounds {
    percent: 110,
    share: 0.05,
    allowance: Duration::from_secs(1),
};
/// What a snapshot needs: bytes for each object; and this part of the memory of the process, which R may copy meanwhile by
/// changing it.
const PER_OBJECT: u64 = 160;
const COPIED: u64 = 10;
/// The same if the number of objects is unknown.
const UNKNOWN: u64 = 2;

/// What the user has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Every(Duration),
    AtPeaks,
}

pub enum Schedule {
    Every {
        every: Duration,
        next: Instant,
    },
    AtPeaks {
        begin: Instant,
        looked: Option<Instant>,
        maxima: Maxima,
        /// The memory when the last snapshot began.
        bytes: u64,
        /// The bytes that can still be used, if that is known.
        left: fn() -> Option<u64>,
    },
}

impl Schedule {
    pub fn new(when: When, now: Now) -> Schedule {
        Schedule::with(when, memory_left, now)
    }

    pub fn with(when: When, left: fn() -> Option<u64>, now: Now) -> Schedule {
        match when {
            When::Every(every) => Schedule::Every {
                every,
                next: now.instant + every,
            },
            When::AtPeaks => Schedule::AtPeaks {
                begin: now.instant,
                looked: None,
                maxima: Maxima::new(BOUNDS),
                bytes: 0,
                left,
            },
        }
    }

    /// Whether a snapshot is to begin now. Fails if it could need more memory than there is.
    pub fn is_due(&mut self, figures: &Figures, now: Now) -> Result<bool> {
        match self {
            Schedule::Every { every, next } => {
                let is_due = now.instant >= *next;
                if is_due {
                    // One that takes longer than this delays the next one.
                    *next = now.instant + *every;
                }
                Ok(is_due)
            }
            Schedule::AtPeaks {
                begin,
                looked,
                maxima,
                bytes,
                left,
            } => {
                let since = |time| now.instant.saturating_duration_since(time);
                if looked.is_some_and(|looked| since(looked) < LOOK) {
                    return Ok(false);
                }
                *looked = Some(now.instant);
                let Some(resident) = figures.resident() else {
                    return Ok(false);
                };
                if !maxima.is_due(resident, since(*begin)) {
                    return Ok(false);
                }
                *bytes = resident;
                check_room(resident, figures, left()).inspect_err(|_| {
                    // It is tried again when the memory is another tenth higher.
                    maxima.took(resident, Duration::ZERO);
                })?;
                Ok(true)
            }
        }
    }

    /// A snapshot has ended, which has used this CPU time, in nanoseconds.
    pub fn ended(&mut self, cpu: u64) {
        if let Schedule::AtPeaks { maxima, bytes, .. } = self {
            maxima.took(*bytes, Duration::from_nanos(cpu));
        }
    }
}

/// The process, or another one of its cgroup, must not be killed because of a snapshot.
fn check_room(resident: u64, figures: &Figures, left: Option<u64>) -> Result<()> {
    let objects = figures.look().map(|usage| usage.objects);
    let needed = match objects {
        Some(objects) => objects.saturating_mul(PER_OBJECT) + resident / COPIED,
        None => resident / UNKNOWN,
    };
    match left {
        Some(left) if left < needed => Err(Error::Process(message!(
            "No snapshot was taken at {} MB of memory: it could need {} MB, and {} MB are left.",
            resident >> 20,
            needed >> 20,
            left >> 20
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::beginning;
    use profile_reader::heap::counts::Usage;
    use std::cell::Cell;

    const MB: u64 = 1 << 20;

    thread_local! {
        static RESIDENT: Cell<u64> = const { Cell::new(0) };
        static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    struct World {
        schedule: Schedule,
        figures: Figures,
        start: Now,
    }

    fn at_peaks(objects: Option<u64>) -> World {
        let usage = move || {
            objects.map(|objects| Usage {
                objects,
                data: 0,
                used: 0,
                free: 0,
            })
        };
        let start = beginning();
        LEFT.set(None);
        World {
            schedule: Schedule::with(When::AtPeaks, || LEFT.get(), start),
            figures: Figures::new(Box::new(usage), || Some(RESIDENT.get())),
            start,
        }
    }

    impl World {
        /// Whether a snapshot begins at this time, in seconds, with so many MB.
        fn is_due(&mut self, time: f64, resident: u64) -> Result<bool> {
            RESIDENT.set(resident * MB);
            self.schedule.is_due(&self.figures, self.start.after(time))
        }

        /// Those of these MB at which a snapshot is taken that uses this CPU time in seconds; a look each second.
        fn taken(&mut self, readings: impl IntoIterator<Item = u64>, cpu: f64) -> Vec<u64> {
            let mut taken = Vec::new();
            for (resident, time) in readings.into_iter().zip(1_u32..) {
                if self.is_due(f64::from(time), resident).unwrap() {
                    self.schedule.ended((cpu * 1e9) as u64);
                    taken.push(resident);
                }
            }
            taken
        }
    }

    #[test]
    fn a_snapshot_is_taken_at_each_new_maximum() {
        let mut world = at_peaks(Some(1));
        let taken = world.taken([100, 105, 60, 111, 120, 123, 100], 0.01);
        assert_eq!(taken, [100, 111, 123]);
    }

    #[test]
    fn they_take_a_share_of_the_cpu_time() {
        let mut world = at_peaks(Some(1));
        let taken = world.taken((1..=60).map(|time| time * time), 0.5);
        // Two of them at once, and then one in ten seconds.
        assert_eq!(taken, [1, 4, 100, 400, 900, 1600, 2500, 3600]);
    }

    #[test]
    fn the_memory_is_not_read_at_each_tick() {
        let mut world = at_peaks(Some(1));
        assert!(world.is_due(0.0, 100).unwrap());
        world.schedule.ended(0);
        assert!(!world.is_due(0.019, 200).unwrap());
        assert!(world.is_due(0.021, 200).unwrap());
    }

    #[test]
    fn one_that_could_need_more_memory_than_there_is_is_refused() {
        let mut world = at_peaks(Some(MB));
        // 160 MB for the objects, and 20 MB that R may copy.
        LEFT.set(Some(179 * MB));
        let why = world.is_due(0.0, 200).unwrap_err().to_string();
        let expected =
            "No snapshot was taken at 200 MB of memory: it could need 180 MB, and 179 MB are left.";
        assert!(why.contains(expected), "{why}");
        // It is tried again, and reported, when the memory is a tenth higher.
        assert!(!world.is_due(1.0, 219).unwrap());
        assert!(world.is_due(2.0, 220).is_err());
        LEFT.set(Some(200 * MB));
        assert!(world.is_due(3.0, 242).unwrap());

        let mut world = at_peaks(None);
        LEFT.set(Some(99 * MB));
        assert!(world.is_due(0.0, 200).is_err());
        LEFT.set(Some(110 * MB));
        assert!(world.is_due(1.0, 220).unwrap());
    }
}
