//! Where samples come from.

use crate::chunks::{Chunks, Timing};
use crate::queue::Queue;
use crate::rprof::Rprof;
use crate::sink::Encoder;
use crate::system::{Alarm, Log};
use profile_core::error::{Error, Result};
use profile_core::joint::Files;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// Signals when the next tick is needed, if R is idle.
    fn alarm(&self) -> Option<&Alarm>;
    /// Preparations before the first tick that need R to run.
    fn prepare(&mut self) -> Result<()>;
    /// Takes the samples that are available, and starts a new chunk if the current one is complete.
    fn tick(&mut self) -> Result<()>;
    /// After an error: discards the open chunk and starts a new one.
    fn recover(&mut self, error: Error) -> Result<()>;
    /// Takes the last samples and ends the last chunk.
    fn finish(&mut self) -> Result<()>;
}

impl Source {
    /// Fails if no samples can be taken, with the reason.
    pub fn open<'a>(
        &self,
        timing: Timing,
        queue: &'a Queue,
        encoder: &'a Encoder,
        files: &'a Files,
    ) -> Result<Box<dyn Recorder + 'a>> {
        Ok(match self {
            Source::Reader => Box::new(Chunks::open(timing, queue, encoder, files)?),
            Source::Rprof(log) => Box::new(Rprof::open(timing, queue, encoder, Arc::clone(log))),
        })
    }
}

impl Recorder for Chunks<'_> {
    fn pause(&self) -> Duration {
        self.interval()
    }

    fn alarm(&self) -> Option<&Alarm> {
        Chunks::alarm(self)
    }

    fn prepare(&mut self) -> Result<()> {
        Chunks::prepare(self)
    }

    fn tick(&mut self) -> Result<()> {
        Chunks::tick(self)
    }

    fn recover(&mut self, error: Error) -> Result<()> {
        Chunks::recover(self, error)
    }

    fn finish(&mut self) -> Result<()> {
        self.cut(Instant::now())
    }
}
