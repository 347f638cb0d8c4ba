//! The session of the reader that takes the samples of this process.

use crate::chunks::Chunks;
use crate::now::Now;
use crate::recorder::{Recorder, Timing};
use crate::session::Session;
use crate::sink::Encoder;
use crate::state::State;
use profile_core::error::Result;
use profile_core::joint::Files;
use profile_core::model::Profile;
use profile_reader::process::{Placement, Process};
use profile_reader::record::session;
use profile_reader::recorded::result::Tick;
use profile_reader::recorded::settings::Settings;
use profile_reader::recorded::source::declare_types;
use std::process;
use std::time::{Duration, Instant};

/// Fails if R's memory cannot be read, with the reason.
pub fn open<'a>(
    timing: Timing,
    state: &'a State,
    encoder: &'a Encoder,
    files: &'a Files,
    now: Now,
) -> Result<Box<dyn Recorder + 'a>> {
    let mut profile = Profile::default();
    let session = OwnSession::open(timing, files, &mut profile)?;
    Ok(Box::new(Chunks::new(
        timing, state, encoder, session, profile, now,
    )))
}

/// The session of the calling thread.
struct OwnSession<'a> {
    settings: Settings,
    files: &'a Files,
    placement: Placement,
    session: session::Session<'a>,
}

impl<'a> OwnSession<'a> {
    fn open(timing: Timing, files: &'a Files, profile: &mut Profile) -> Result<OwnSession<'a>> {
        let settings = Settings {
            interval: timing.interval,
            duration: Duration::MAX,
            clock: timing.clock,
            children: false,
            pause: true,
            native: false,
            names: timing.names,
            own: true,
            positions: timing.positions,
        };
        Ok(OwnSession {
            session: open_session(&settings, files, profile)?,
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

    fn is_wait_refused(&self) -> bool {
        self.session.is_wait_refused()
    }

    fn continue_in(&mut self, profile: &mut Profile) -> Result<()> {
        self.session.continue_in(&self.settings, profile)
    }

    fn reopen(&mut self, profile: &mut Profile) -> Result<()> {
        let mut session = open_session(&self.settings, self.files, profile)?;
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

fn open_session<'a>(
    settings: &Settings,
    files: &'a Files,
    profile: &mut Profile,
) -> Result<session::Session<'a>> {
    declare_types(profile)?;
    let process = Process::find(i32::try_from(process::id()).unwrap_or(0))?;
    session::Session::open(&process, None, settings, files, 0, profile)
}
