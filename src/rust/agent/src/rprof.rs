//! Makes chunks of the output of R's own profiler.
//!
//! R's thread starts `Rprof()`, which writes a line at each tick. The agent's thread reads complete lines, frees
//! their memory, and lets the core parse them. Any other call of `Rprof()` ends the agent's profile; only R's thread
//! can start it again.

use crate::now::Now;
use crate::recorder::{GAP, Recorder, Timing};
use crate::sink::Encoder;
use crate::state::State;
use crate::system::Log;
use profile_core::analysis::label_frames::take_labels;
use profile_core::error::{Error, Result};
use profile_core::formats::rprof::Follower;
use profile_core::limits::memory::{TryGrow, filled};
use profile_core::message;
use profile_core::model::known_types::SAMPLES;
use profile_core::model::{Period, Profile, Values};
use profile_reader::recorded::source::own_source;
use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time between two reads of the file. A line can have up to 10 kB.
const LOOK: Duration = Duration::from_secs(1);
/// The number of bytes that are read at once.
const PIECE: usize = 64 << 10;
/// The count of each sample. Its other value is the interval, as the time of the clock.
const COUNT: (&str, &str) = SAMPLES.key();

pub struct Rprof<'a> {
    log: Arc<Log>,
    timing: Timing,
    /// The time between two reads of the file.
    look: Duration,
    state: &'a State,
    encoder: &'a Encoder,
    /// The file was read, and is freed, up to this offset.
    offset: u64,
    /// The start of a line that is not complete yet.
    text: Vec<u8>,
    follower: Follower,
    /// The number of samples of this chunk that the state has counted.
    counted: usize,
    begin: Now,
    /// Whether R has opened the file.
    has_begun: bool,
    /// The last tick.
    last: Now,
}

impl<'a> Rprof<'a> {
    pub fn open(
        timing: Timing,
        state: &'a State,
        encoder: &'a Encoder,
        log: Arc<Log>,
        now: Now,
    ) -> Rprof<'a> {
        Rprof {
            log,
            timing,
            look: timing.every.min(LOOK),
            state,
            encoder,
            offset: 0,
            text: Vec::new(),
            follower: Follower::default(),
            counted: 0,
            begin: now,
            has_begun: false,
            last: now,
        }
    }

    /// Reads what R has written.
    fn drain(&mut self, now: Now) -> Result<()> {
        let mut room = filled(PIECE, 0)?;
        let before = self.offset;
        loop {
            let read = self.log.read(self.offset, &mut room);
            let count = read.map_err(|error| failed(&error))?;
            if count == 0 {
                break;
            }
            self.offset += count as u64;
            self.text
                .try_extend(room.get(..count).unwrap_or_default())?;
            self.take_lines(now)?;
        }
        if self.offset > before {
            self.log.free(self.offset).map_err(|error| failed(&error))
        } else {
            Ok(())
        }
    }

    fn take_lines(&mut self, now: Now) -> Result<()> {
        loop {
            let followed = self.follower.take(&self.text)?;
            self.text.drain(..followed.bytes);
            self.count(self.follower.samples());
            if !followed.is_end {
                return Ok(());
            }
            // R's profiler was restarted.
            self.cut(now.instant, now)?;
        }
    }

    fn count(&mut self, samples: usize) {
        for _ in self.counted..samples {
            self.state.took(false);
        }
        self.counted = self.counted.max(samples);
    }

    /// Ends the current chunk and starts a new one.
    fn cut(&mut self, end: Instant, now: Now) -> Result<()> {
        if !self.follower.is_empty() {
            let mut profile = self.follower.part()?;
            // There is no sample if the only line is incomplete.
            if !profile.samples.is_empty() {
                self.count(profile.samples.len());
                let complete = self.complete(&mut profile, end);
                let encoded = complete.and_then(|()| self.encoder.encode_chunk(&mut profile));
                self.state.add(encoded, now);
            }
        }
        self.start(now);
        Ok(())
    }

    fn start(&mut self, now: Now) {
        self.counted = 0;
        self.begin = now;
    }

    /// Adds the source and the times, in the same form as the reader does.
    fn complete(&self, profile: &mut Profile, end: Instant) -> Result<()> {
        take_labels(profile, &|| false)?;
        let clock = self.timing.clock;
        let types = [COUNT, (clock.name(), "nanoseconds")];
        // R may have rounded the interval.
        let period = profile
            .sources
            .first()
            .and_then(|source| source.period.as_ref());
        let period = period.and_then(Period::nanoseconds);
        let period = period.unwrap_or(self.timing.interval.as_nanos() as f64);
        let pid = i32::try_from(process::id()).unwrap_or(0);
        let mut source = own_source(pid, clock, period, &types, profile)?;
        source.timestamp = self.begin.unix();
        let duration = end.saturating_duration_since(self.begin.instant).as_nanos();
        source.duration = i64::try_from(duration).ok();
        if let Some(only) = profile.sources.first_mut() {
            *only = source;
        }
        let mut times = Values::absent(clock.name(), "nanoseconds", 0)?;
        times.column.try_fill(profile.samples.len(), period)?;
        profile.values.try_push(times)
    }
}

fn failed(error: &std::io::Error) -> Error {
    Error::Process(message!("The lines of `Rprof()` cannot be read: {error}."))
}

impl Recorder for Rprof<'_> {
    /// R takes the samples, so the ticks of the agent may be regular.
    fn pause(&self, _: f64) -> Duration {
        self.look
    }

    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn tick(&mut self, now: Now) -> Result<()> {
        self.encoder.figures.look();
        let last = std::mem::replace(&mut self.last, now);
        let is_written = self.log.is_written();
        self.has_begun |= is_written;
        self.drain(now)?;
        if self.has_begun && !is_written {
            self.state
                .paused(now.instant.saturating_duration_since(last.instant));
        }
        // Ticks may be slightly early or late.
        let elapsed = now.instant.saturating_duration_since(self.begin.instant);
        let is_time = elapsed + self.look / 2 >= self.timing.every;
        if now.boot.saturating_sub(last.boot) > GAP + self.look {
            self.cut(last.instant, now)?;
        } else if is_time && !self.follower.is_pending() {
            self.cut(now.instant, now)?;
        }
        Ok(())
    }

    fn recover(&mut self, error: Error, now: Now) -> Result<()> {
        self.state.add(Err(error), now);
        self.text = Vec::new();
        self.start(now);
        self.follower.skip()
    }

    fn finish(&mut self, now: Now) -> Result<()> {
        self.drain(now)?;
        self.cut(now.instant, now)
    }
}

impl Drop for Rprof<'_> {
    fn drop(&mut self) {
        self.log.seal();
    }
}

#[cfg(test)]
mod tests;
