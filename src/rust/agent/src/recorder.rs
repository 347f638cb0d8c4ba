//! What takes samples: the interface of the main loop to [`crate::chunks`] and [`crate::rprof`].

use crate::now::Now;
use profile_core::error::{Error, Result};
use profile_reader::recorded::settings::Clock;
use profile_reader::recorded::waits::WaitNames;
use std::time::Duration;

/// If more time passes between two ticks, the system was suspended or the process was stopped, and it is unknown what
/// happened meanwhile. A chunk ends at such a gap. Even on a busy machine, the thread is late by no more than a tenth
/// of this.
pub const GAP: Duration = Duration::from_secs(2);

/// When samples are taken, and how long a chunk is.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub interval: Duration,
    pub every: Duration,
    pub clock: Clock,
    /// Of what samples wait for.
    pub names: WaitNames,
    /// Whether positions in byte code without source references are recorded.
    pub positions: bool,
}

/// Takes samples and groups them into chunks.
pub trait Recorder {
    /// The time until the next tick, for a random number between 0 and 1.
    fn pause(&self, chance: f64) -> Duration;
    /// Preparations before the first tick that need R to run.
    fn prepare(&mut self) -> Result<()>;
    /// Takes the samples that are available, and starts a new chunk if the current one is complete.
    fn tick(&mut self, now: Now) -> Result<()>;
    /// After an error: discards the open chunk and starts a new one.
    fn recover(&mut self, error: Error, now: Now) -> Result<()>;
    /// Takes the last samples and ends the last chunk.
    fn finish(&mut self, now: Now) -> Result<()>;
}
