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
    /// R's memory.
    Reader,
    /// R's own profiler, which writes to this file.
    Rprof(Arc<Log>),
}

/// What gets samples and makes chunks of them.
pub trait Recorder {
    /// The time between two ticks.
    fn pause(&self) -> Duration;
    /// Tells when the next tick is needed, if R does nothing.
    fn alarm(&self) -> Option<&Alarm>;
    /// What can be done while R runs, before the first tick.
    fn prepare(&mut self) -> Result<()>;
    /// Gets the samples of this moment, and begins another chunk if it is time.
    fn tick(&mut self) -> Result<()>;
    /// After an error: the open chunk is lost, and the next one begins.
    fn recover(&mut self, error: Error) -> Result<()>;
    /// Gets the last samples, and ends the last chunk.
    fn finish(&mut self) -> Result<()>;
}

impl Source {
    /// An error says why there would be no samples.
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
