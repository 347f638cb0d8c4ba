//! The session of the reader that takes the samples of this process. Tests of [`crate::chunks`] use another one, which
//! follows a script.

use crate::recorder::Timing;
use profile_core::error::Result;
use profile_core::joint::Files;
use profile_core::model::Profile;
use profile_reader::process::{Placement, Process};
use profile_reader::record::samples::declare_types;
use profile_reader::record::session::{self, Tick};
use profile_reader::record::settings::Settings;
use std::process;
use std::time::{Duration, Instant};

/// Takes samples, and adds them to a profile that is empty at first.
pub trait Session {
    /// Finds, while R runs, what the reader needs to report complete stacks from the first sample on.
    fn prepare(&mut self) -> Result<()>;

    /// Adds a sample, if there is one now.
    fn tick(&mut self, profile: &mut Profile) -> Result<Tick>;

    /// Continues in another profile.
    fn continue_in(&mut self, profile: &mut Profile) -> Result<()>;

    /// Continues in another profile, with a new session. This frees what the reader has cached about objects that no longer exist.
    fn reopen(&mut self, profile: &mut Profile) -> Result<()>;

    /// Excludes the time since the last tick.
    fn skip_gap(&mut self);

    /// Stores in the profile when the recording ended, and the CPU time of its samples.
    fn finish_at(&mut self, end: Instant, profile: &mut Profile) -> Result<()>;
}

/// The session of the calling thread.
pub struct OwnSession<'a> {
    settings: Settings,
    files: &'a Files,
    placement: Placement,
    session: session::Session<'a>,
}

impl<'a> OwnSession<'a> {
    /// Fails if R's memory cannot be read, with the reason.
    pub fn open(timing: Timing, files: &'a Files, profile: &mut Profile) -> Result<OwnSession<'a>> {
        let settings = Settings {
            interval: timing.interval,
            duration: Duration::MAX,
            clock: timing.clock,
            children: false,
            pause: true,
            native: false,
            own: true,
        };
        Ok(OwnSession {
            session: open(&settings, files, profile)?,
            settings,
            files,
            placement: Placement::current(),
        })
    }
}

impl Session for OwnSession<'_> {
    fn prepare(&mut self) -> Result<()> {
        self.session.prepare()
    }

    fn tick(&mut self, profile: &mut Profile) -> Result<Tick> {
        // Remains empty: the agent does not record native stacks.
        let mut natives = Vec::new();
        self.placement.begin_tick();
        self.session
            .tick(&self.settings, profile, &mut natives, &self.placement)
    }

    fn continue_in(&mut self, profile: &mut Profile) -> Result<()> {
        self.session.continue_in(&self.settings, profile)
    }

    fn reopen(&mut self, profile: &mut Profile) -> Result<()> {
        let mut session = open(&self.settings, self.files, profile)?;
        session.succeed(&mut self.session);
        self.session = session;
        Ok(())
    }

    fn skip_gap(&mut self) {
        self.session.skip_gap();
    }

    fn finish_at(&mut self, end: Instant, profile: &mut Profile) -> Result<()> {
        self.session.finish_at(end, profile)
    }
}

fn open<'a>(
    settings: &Settings,
    files: &'a Files,
    profile: &mut Profile,
) -> Result<session::Session<'a>> {
    declare_types(profile)?;
    let process = Process::find(i32::try_from(process::id()).unwrap_or(0))?;
    session::Session::open(&process, None, settings, files, 0, profile)
}
