//! Where samples come from.

use crate::chunks::{Chunks, Timing};
use crate::now::Now;
use crate::queue::Queue;
use crate::rprof::Rprof;
use crate::session::OwnSession;
use crate::sink::Encoder;
use crate::system::Log;
use profile_core::error::{Error, Result};
use profile_core::joint::Files;
use profile_core::model::Profile;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub enum Source {
    /// The reader, which reads R's memory.
    Reader,
    /// R's own profiler, which writes to this file.
    Rprof(Arc<Log>),
}

/// Takes samples and groups them into chunks.
pub trait Recorder {
    /// The time between two ticks.
    fn pause(&self) -> Duration;
    /// Whether R is waiting, so that no tick is needed until it computes.
    fn is_idle(&self) -> bool;
    /// Preparations before the first tick that need R to run.
    fn prepare(&mut self) -> Result<()>;
    /// Takes the samples that are available, and starts a new chunk if the current one is complete. `has_rested` if
    /// R was idle for most of the time since the last tick.
    fn tick(&mut self, now: Now, has_rested: bool) -> Result<()>;
    /// After an error: discards the open chunk and starts a new one.
    fn recover(&mut self, error: Error, now: Now) -> Result<()>;
    /// Takes the last samples and ends the last chunk.
    fn finish(&mut self, now: Now) -> Result<()>;
}

impl Source {
    /// Fails if no samples can be taken, with the reason.
    pub fn open<'a>(
        &self,
        timing: Timing,
        queue: &'a Queue,
        encoder: &'a Encoder,
        files: &'a Files,
        now: Now,
    ) -> Result<Box<dyn Recorder + 'a>> {
        Ok(match self {
            Source::Reader => {
                let mut profile = Profile::default();
                let session = OwnSession::open(timing, files, &mut profile)?;
                Box::new(Chunks::new(timing, queue, encoder, session, profile, now))
            }
            Source::Rprof(log) => {
                Box::new(Rprof::open(timing, queue, encoder, Arc::clone(log), now))
            }
        })
    }
}
