//! Control groups of recorded processes: how much memory is left, and how many of their processes the kernel has killed.

use crate::process::{Cgroup, MemoryLimit};
use std::time::Duration;

/// A process that ends may have been killed if the kernel has counted a kill within this time: a process with much memory
/// needs seconds to end. If it is unknown how it has ended, the time is shorter.
pub const RECENTLY: Duration = Duration::from_secs(10);
pub const JUST_NOW: Duration = Duration::from_secs(1);

/// A control group.
#[derive(Debug)]
pub struct Group {
    pub cgroup: Cgroup,
    pub kills: Kills,
    /// The limit when it was found, and at the last reading.
    first: Option<MemoryLimit>,
    pub limit: Option<MemoryLimit>,
}

impl Group {
    pub fn new(cgroup: Cgroup) -> Group {
        let limit = cgroup.limit();
        let mut kills = Kills::default();
        kills.read(cgroup.kills(), Duration::ZERO);
        Group {
            cgroup,
            kills,
            first: limit,
            limit,
        }
    }

    pub fn read(&mut self, now: Duration) {
        self.limit = self.cgroup.limit().or(self.limit);
        self.read_kills(now);
    }

    pub fn read_kills(&mut self, now: Duration) {
        self.kills.read(self.cgroup.kills(), now);
    }

    pub fn figures(&self) -> OfGroup {
        let highest = |limit: Option<MemoryLimit>| limit.and_then(|limit| limit.highest);
        let before = highest(self.first);
        OfGroup {
            limit: self.limit.map(|limit| limit.bytes),
            peak: highest(self.limit).filter(|&peak| Some(peak) > before),
            kills: self.kills.count(),
        }
    }
}

/// How many processes the kernel has killed.
#[derive(Debug, Default)]
pub struct Kills {
    first: Option<u64>,
    last: Option<u64>,
    /// How many of these are known to be processes of the recording.
    known: u64,
    /// When the last one was noticed.
    noticed: Option<Duration>,
}

impl Kills {
    pub fn read(&mut self, count: Option<u64>, now: Duration) {
        if self.first.is_some() && count > self.last {
            self.noticed = Some(now);
        }
        self.first = self.first.or(count);
        self.last = count.or(self.last);
    }

    /// How many there were during the recording.
    pub fn count(&self) -> u64 {
        self.last
            .unwrap_or(0)
            .saturating_sub(self.first.unwrap_or(0))
    }

    /// Whether one of them, not longer ago than this, may be a process that has just ended.
    pub fn explains(&mut self, within: Duration, now: Duration) -> bool {
        let is_recent = |noticed| now.saturating_sub(noticed) <= within;
        let explains = self.count() > self.known && self.noticed.is_some_and(is_recent);
        self.known += u64::from(explains);
        explains
    }
}

/// What is known about the control group of the first process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfGroup {
    pub limit: Option<u64>,
    /// The highest memory of its processes, if this was during the recording.
    pub peak: Option<u64>,
    /// The number of processes that the kernel has killed.
    pub kills: u64,
}
