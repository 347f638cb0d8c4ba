//! At which moments to take a snapshot of the memory, so that the last one shows what the memory was used for when it was
//! highest: whenever it has grown by a tenth since the last snapshot. Each snapshot takes time, in which the process stands
//! still, so snapshots have a share of the time. One that is not taken for this reason is taken later, if the memory is
//! still as high.

use std::time::Duration;

/// How many snapshots are taken.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The memory must be so many percent of that at the last snapshot.
    pub percent: u32,
    /// The share of the time that all snapshots may take, and how much they may take in addition: a process that grows at
    /// once has a snapshot as well.
    pub share: f64,
    pub allowance: Duration,
}

/// The memory as it was measured, and the snapshots that were taken. All times begin at the same moment.
#[derive(Debug)]
pub struct Maxima {
    bounds: Bounds,
    highest: u64,
    /// The memory at the last snapshot; 0 before the first one.
    taken: u64,
    /// How long all snapshots, and the longest one, took.
    spent: Duration,
    longest: Duration,
}

impl Maxima {
    pub fn new(bounds: Bounds) -> Maxima {
        Maxima {
            bounds,
            highest: 0,
            taken: 0,
            spent: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    /// Notes how many bytes are used now, and returns whether to take a snapshot.
    pub fn is_due(&mut self, bytes: u64, now: Duration) -> bool {
        self.highest = self.highest.max(bytes);
        self.has_grown(bytes) && self.has_time(now)
    }

    /// Whether the memory has grown enough, which costs less to know than the time.
    pub fn has_grown(&self, bytes: u64) -> bool {
        let least = u128::from(self.taken) * u128::from(self.bounds.percent);
        bytes > 0 && u128::from(bytes) * 100 >= least
    }

    /// The next snapshot is expected to take as long as the longest one.
    fn has_time(&self, now: Duration) -> bool {
        let most = self.bounds.allowance.as_secs_f64() + now.as_secs_f64() * self.bounds.share;
        self.spent.saturating_add(self.longest).as_secs_f64() <= most
    }

    /// A snapshot was taken, at so many bytes. The process stood still for `pause`.
    pub fn took(&mut self, bytes: u64, pause: Duration) {
        self.highest = self.highest.max(bytes);
        self.taken = bytes;
        self.spend(pause);
    }

    /// No snapshot could be taken. The process stood still for `pause` nevertheless.
    pub fn failed(&mut self, pause: Duration) {
        self.spend(pause);
    }

    fn spend(&mut self, pause: Duration) {
        self.spent = self.spent.saturating_add(pause);
        self.longest = self.longest.max(pause);
    }

    /// The most bytes that were used when they were measured.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The bytes at the last snapshot; `None` before the first one.
    pub fn taken(&self) -> Option<u64> {
        (self.taken > 0).then_some(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        percent: 110,
        share: 0.1,
        allowance: Duration::from_secs(1),
    };

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// The readings at which snapshots are taken, which last so many milliseconds; a reading each millisecond.
    fn taken(readings: impl IntoIterator<Item = u64>, pause: u64) -> (Maxima, Vec<u64>) {
        let mut maxima = Maxima::new(BOUNDS);
        let mut taken = Vec::new();
        for (bytes, now) in readings.into_iter().zip(0..) {
            if maxima.is_due(bytes, millis(now)) {
                maxima.took(bytes, millis(pause));
                taken.push(bytes);
            }
        }
        (maxima, taken)
    }

    #[test]
    fn a_snapshot_is_due_when_the_memory_has_grown_by_a_tenth() {
        let (maxima, found) = taken([100, 109, 110, 50, 120, 121, 122, 60, 134], 0);
        assert_eq!(found, [100, 110, 121, 134]);
        assert_eq!(maxima.taken(), Some(134));
        let (_, found) = taken((60..=600).map(|size| size * 1_000_000), 1);
        assert_eq!(found.len(), 24);
        assert!(found.last().is_some_and(|&last| last > 545_000_000));
    }

    #[test]
    fn the_highest_reading_is_kept_whether_or_not_it_has_a_snapshot() {
        let (maxima, found) = taken([100, 105, 90], 0);
        assert_eq!((maxima.highest(), found), (105, vec![100]));
        assert_eq!(Maxima::new(BOUNDS).taken(), None);
    }

    #[test]
    fn without_memory_there_is_nothing_to_take() {
        assert!(taken([0, 0], 0).1.is_empty());
    }

    #[test]
    fn snapshots_have_a_share_of_the_time() {
        // Three snapshots of 300 ms are allowed at once, and then one every three seconds.
        let (_, found) = taken((1..=9001).map(|size| size * size), 300);
        let times = found.iter().map(|&size| size.isqrt());
        assert_eq!(times.collect::<Vec<_>>(), [1, 2, 3, 2001, 5001, 8001]);
    }

    #[test]
    fn one_that_was_not_taken_is_taken_later_if_the_memory_is_still_as_high() {
        let mut maxima = Maxima::new(BOUNDS);
        maxima.took(100, millis(600));
        assert!(!maxima.is_due(200, millis(1999)));
        assert!(!maxima.is_due(100, millis(2001)));
        assert!(maxima.is_due(200, millis(2002)));
    }

    #[test]
    fn failed_attempts_take_time_as_well() {
        let mut maxima = Maxima::new(BOUNDS);
        assert!(maxima.is_due(100, millis(0)));
        maxima.failed(millis(700));
        assert_eq!(maxima.taken(), None);
        assert!(!maxima.is_due(100, millis(1000)));
        assert!(maxima.is_due(100, millis(4001)));
    }
}
