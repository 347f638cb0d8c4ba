//! Where samples come from.

use crate::now::Now;
use crate::own_session;
use crate::recorder::{Recorder, Timing};
use crate::rprof::Rprof;
use crate::sink::Encoder;
use crate::state::State;
use crate::system::Log;
use profile_core::error::Result;
use profile_core::joint::Files;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum Source {
    /// The reader, which reads R's memory.
    Reader,
    /// R's own profiler, which writes to this file.
    Rprof(Arc<Log>),
}

impl Source {
    /// Fails if no samples can be taken, with the reason.
    pub fn open<'a>(
        &self,
        timing: Timing,
        state: &'a State,
        encoder: &'a Encoder,
        files: &'a Files,
        now: Now,
    ) -> Result<Box<dyn Recorder + 'a>> {
        Ok(match self {
            Source::Reader => own_session::open(timing, state, encoder, files, now)?,
            Source::Rprof(log) => {
                Box::new(Rprof::open(timing, state, encoder, Arc::clone(log), now))
            }
        })
    }
}
