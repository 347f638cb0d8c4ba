//! How processes are recorded.

use crate::process::Stops;
use std::time::Duration;

/// When a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// If the thread has used CPU time since the last sample.
    Cpu,
    /// Always.
    Wall,
}

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub interval: Duration,
    pub duration: Duration,
    pub clock: Clock,
    /// Whether processes started by these are recorded as well.
    pub children: bool,
    /// Whether processes that run are stopped while their stacks are read.
    pub pause: bool,
    /// Whether native frames are recorded. Processes are then stopped for each sample.
    pub native: bool,
    /// Whether a process records itself, possibly for weeks. What each chunk would repeat is then omitted: the names of its
    /// program and script, and the state, if samples are taken by CPU time.
    pub own: bool,
}

impl Settings {
    /// When processes are stopped.
    pub fn stops(&self) -> Stops {
        match self {
            Settings { native: true, .. } => Stops::Always,
            Settings { pause: false, .. } => Stops::Never,
            _ => Stops::IfItRuns,
        }
    }
}

impl Clock {
    /// The name of its sample type.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Cpu => "cpu",
            Clock::Wall => "wall",
        }
    }
}
