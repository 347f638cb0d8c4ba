//! Groups the samples of a session into chunks. Each chunk is a profile of a few seconds.

use crate::now::Now;
use crate::recorder::{GAP, Recorder, Timing};
use crate::session::Session;
use crate::sink::Encoder;
use crate::state::State;
use profile_core::analysis::label_frames::take_labels;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_core::model::Profile;
use profile_reader::recorded::result::Tick;
use profile_reader::recorded::ticks;
use std::time::{Duration, Instant};

/// How often the session is reopened.
const REOPEN: Duration = Duration::from_secs(600);

pub struct Chunks<'a, S> {
    timing: Timing,
    state: &'a State,
    encoder: &'a Encoder,
    session: S,
    /// The open chunk.
    profile: Profile,
    begin: Instant,
    opened: Instant,
    /// The last tick.
    last: Now,
    /// Whether it was reported that waits cannot be seen.
    is_reported: bool,
}

const REFUSED: &str = "What samples wait for is unknown, because this process may not read its own file `syscall` in \
                       `/proc`: it is not dumpable, see prctl(2).";

impl<'a, S: Session> Chunks<'a, S> {
    /// The session was opened for the first chunk, `profile`.
    pub fn new(
        timing: Timing,
        state: &'a State,
        encoder: &'a Encoder,
        session: S,
        profile: Profile,
        now: Now,
    ) -> Chunks<'a, S> {
        Chunks {
            timing,
            state,
            encoder,
            session,
            profile,
            begin: now.instant,
            opened: now.instant,
            last: now,
            is_reported: false,
        }
    }

    /// Ends the current chunk and starts a new one.
    fn cut(&mut self, end: Instant, now: Now) -> Result<()> {
        self.session.finish_at(end, &mut self.profile)?;
        let mut complete = std::mem::take(&mut self.profile);
        if !complete.samples.is_empty() {
            let labelled = take_labels(&mut complete, &|| false);
            let encoded = labelled.and_then(|()| self.encoder.encode_chunk(&mut complete));
            self.state.add(encoded, now);
        }
        drop(complete);
        self.begin = now.instant;
        if now.instant.saturating_duration_since(self.opened) < REOPEN {
            return self.session.continue_in(&mut self.profile);
        }
        self.session.reopen(&mut self.profile)?;
        self.opened = now.instant;
        self.session.prepare()
    }
}

impl<S: Session> Recorder for Chunks<'_, S> {
    fn pause(&self, chance: f64) -> Duration {
        ticks::until_next(self.timing.interval, chance)
    }

    fn prepare(&mut self) -> Result<()> {
        self.session.prepare()
    }

    fn tick(&mut self, now: Now) -> Result<()> {
        self.encoder.figures.look();
        let last = std::mem::replace(&mut self.last, now);
        if now.boot.saturating_sub(last.boot) > GAP + self.timing.interval {
            self.cut(last.instant, now)?;
            self.session.skip_gap();
        } else if now.instant.saturating_duration_since(self.begin) >= self.timing.every {
            self.cut(now.instant, now)?;
        }
        match self.session.tick(&mut self.profile)? {
            Tick::Taken { cut, .. } => self.state.took(cut.is_some()),
            Tick::Unread => self.state.missed(),
            Tick::Idle | Tick::Ended | Tick::Left => {}
        }
        if !self.is_reported && self.session.is_wait_refused() {
            self.is_reported = true;
            self.state.note(message!("{REFUSED}"), now);
        }
        Ok(())
    }

    fn recover(&mut self, error: Error, now: Now) -> Result<()> {
        self.state.add(Err(error), now);
        self.profile = Profile::default();
        self.session.reopen(&mut self.profile)?;
        self.begin = now.instant;
        Ok(())
    }

    fn finish(&mut self, now: Now) -> Result<()> {
        self.cut(now.instant, now)
    }
}

#[cfg(test)]
mod tests;
