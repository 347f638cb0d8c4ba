//! Which processes are recorded, and how.

use crate::recorded::states::Stops;
use crate::recorded::waits::WaitNames;
use std::sync::OnceLock;
use std::time::Duration;

/// What to record.
#[derive(Debug, Default)]
pub struct Wanted<'a> {
    /// Processes that the user has named.
    pub pids: &'a [i32],
    /// Their workers that the user has named.
    pub workers: &'a [i32],
    /// A process that records itself, and asks for the recording of those that belong to it.
    pub master: Option<Asked<'a>>,
}

/// What a process asks for that records itself. `stop` ends the recording.
#[derive(Debug)]
pub struct Asked<'a> {
    pub pid: i32,
    /// The variable that it sets in the environment, `NAME=VALUE`.
    pub variable: String,
    /// Set when the recording begins: whether this process may look into the one that asks.
    pub begun: &'a OnceLock<bool>,
}

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
    /// Which names are recorded of what samples wait for, if they are taken at all times.
    pub names: WaitNames,
    /// Whether native frames are recorded. Processes are then stopped for each sample.
    pub native: bool,
    /// Whether a process records itself, possibly for weeks. What each chunk would repeat is then omitted: the names of its
    /// program and script, and the state, if samples are taken by CPU time.
    pub own: bool,
    /// Whether positions in byte code without source references are recorded, see [`crate::stack::codes`].
    pub positions: bool,
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
