//! Samples this process and groups the samples into chunks. Each chunk is a profile of a few seconds.

use crate::queue::Queue;
use crate::sink::Encoder;
use crate::system::{self, Alarm};
use profile_core::analysis::label_frames::take_labels;
use profile_core::error::Result;
use profile_core::joint::Files;
use profile_core::model::Profile;
use profile_reader::process::{Placement, Process};
use profile_reader::recorder::{self, Event};
use profile_reader::session::{Session, Tick, declare_types};
use std::process;
use std::time::{Duration, Instant};

/// If more time passes between two ticks, the system was suspended or the process was stopped, and it is unknown what
/// happened meanwhile. A chunk ends at such a gap. Even on a busy machine, the thread is late by no more than a tenth
/// of this.
pub const GAP: Duration = Duration::from_secs(2);
/// How often the session is reopened. This also frees what the reader has cached about objects that no longer exist.
const REOPEN: Duration = Duration::from_secs(600);
/// After this many ticks without CPU time, R is assumed to be waiting for something.
const IDLE: u32 = 3;

/// When samples are taken, and how long a chunk is.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub interval: Duration,
    pub every: Duration,
    pub event: Event,
}

pub struct Chunks<'a> {
    settings: recorder::Settings,
    every: Duration,
    queue: &'a Queue,
    encoder: &'a Encoder,
    files: &'a Files,
    placement: Placement,
    session: Session<'a>,
    profile: Profile,
    begin: Instant,
    opened: Instant,
    /// The time of the last tick, on two clocks: the second one also runs while the system is suspended.
    last: (Instant, Duration),
    /// The number of ticks since R used CPU time.
    idle: u32,
    alarm: Option<Alarm>,
}

impl<'a> Chunks<'a> {
    /// Opens a session on R in this process, for the calling thread. Fails if R's memory cannot be read, with the
    /// reason.
    pub fn open(
        timing: Timing,
        queue: &'a Queue,
        encoder: &'a Encoder,
        files: &'a Files,
    ) -> Result<Chunks<'a>> {
        let settings = recorder::Settings {
            interval: timing.interval,
            duration: Duration::MAX,
            event: timing.event,
            children: false,
            pause: false,
            check: true,
            own: true,
        };
        let mut profile = Profile::default();
        let session = open(&settings, files, &mut profile)?;
        let now = Instant::now();
        Ok(Chunks {
            settings,
            every: timing.every,
            queue,
            encoder,
            files,
            placement: Placement::of_this_thread(),
            session,
            profile,
            begin: now,
            opened: now,
            last: (now, system::boot_time()),
            idle: 0,
            alarm: Alarm::new(),
        })
    }

    pub fn interval(&self) -> Duration {
        self.settings.interval
    }

    pub fn alarm(&self) -> Option<&Alarm> {
        self.alarm.as_ref().filter(|_| self.idle >= IDLE)
    }

    /// Finds, while R runs, what the reader needs to report complete stacks from the first sample on.
    pub fn prepare(&mut self) -> Result<()> {
        self.session.prepare()
    }

    /// Takes a sample if there is one, and starts a new chunk if the current one is complete.
    pub fn tick(&mut self) -> Result<()> {
        let (now, boot) = (Instant::now(), system::boot_time());
        let (last, last_boot) = self.last;
        self.last = (now, boot);
        if boot.saturating_sub(last_boot) > GAP + self.settings.interval {
            self.cut(last)?;
            self.session.skip_time();
        } else if now.saturating_duration_since(self.begin) >= self.every {
            self.cut(now)?;
        }
        if self.alarm().is_some() {
            // R was idle for most of the time since the last tick.
            self.session.skip_time();
        }
        // Remains empty: the agent does not record native stacks.
        let mut natives = Vec::new();
        let profile = &mut self.profile;
        let tick = self
            .session
            .tick(&self.settings, profile, &mut natives, &self.placement)?;
        self.idle = match tick {
            Tick::Idle => self.idle.saturating_add(1),
            _ => 0,
        };
        match tick {
            Tick::Taken { is_cut, .. } => self.queue.took(is_cut),
            Tick::Unread => self.queue.missed(),
            Tick::Idle | Tick::Ended => {}
        }
        Ok(())
    }

    /// Ends the current chunk and starts a new one.
    pub fn cut(&mut self, end: Instant) -> Result<()> {
        self.session.finish_at(end, &mut self.profile);
        let mut complete = std::mem::take(&mut self.profile);
        if !complete.samples.is_empty() {
            let labelled = take_labels(&mut complete, &|| false);
            let encoded = labelled.and_then(|()| self.encoder.encode(&complete));
            self.queue.add(encoded);
        }
        drop(complete);
        self.begin = Instant::now();
        if self.opened.elapsed() < REOPEN {
            return self.session.continue_in(&self.settings, &mut self.profile);
        }
        self.session = open(&self.settings, self.files, &mut self.profile)?;
        self.opened = self.begin;
        self.session.prepare()
    }

    /// After an error: discards the open chunk and starts a new one.
    pub fn recover(&mut self, error: profile_core::Error) -> Result<()> {
        self.queue.add(Err(error));
        self.profile = Profile::default();
        self.session = open(&self.settings, self.files, &mut self.profile)?;
        self.begin = Instant::now();
        Ok(())
    }
}

fn open<'a>(
    settings: &recorder::Settings,
    files: &'a Files,
    profile: &mut Profile,
) -> Result<Session<'a>> {
    declare_types(profile)?;
    let process = Process::find(i32::try_from(process::id()).unwrap_or(0))?;
    Session::open(&process, settings, files, 0, profile)
}
