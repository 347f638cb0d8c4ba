//! Has the chunks in the spool sent by a forwarder: an R process that sends them with curl, and with encryption, for all
//! agents with the same target. `R/forwarder.R` contains its code. An agent starts it, and starts it again if it ends.

use crate::counts::Moves;
use crate::lock::Role;
use crate::now::Now;
use crate::spool::{Spool, read};
use crate::state::State;
use crate::system;
use crate::watch::Watch;
use profile_core::error::{Error, Result};
use profile_core::formats::otlp::response::{self, Coding};
use profile_core::message;
use std::fs;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// How often to look for what the forwarder has sent, and whether it is running: usually, and at the end.
const LOOK: Duration = Duration::from_secs(1);
const HURRY: Duration = Duration::from_millis(50);
/// The file with the output of the forwarder, and the maximum number of bytes read from it.
const LOG: &str = "log";
const MOST_LOG: u64 = 1000;
/// The file that tells a forwarder where to send. It contains secrets, so the forwarder removes it when it starts.
const TARGET: &str = "target";

/// How to start a forwarder, as specified by R.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The contents of the file `target`.
    pub target: Vec<u8>,
    /// The command, and its environment. Each string is terminated by NUL.
    pub command: Vec<u8>,
    pub environment: Vec<u8>,
}

pub struct Forward {
    settings: Settings,
    watch: Watch,
    next: Instant,
    pause: Duration,
    is_unavailable: bool,
    /// The child process that was started, until it has ended. It ends at once and leaves the forwarder to the system:
    /// otherwise, forwarders that end after the agent would remain as zombies.
    child: Option<i32>,
}

impl Forward {
    pub fn new(settings: Settings, now: Now) -> Forward {
        Forward {
            settings,
            watch: Watch::new(now.instant),
            next: now.instant,
            pause: LOOK,
            is_unavailable: false,
            child: None,
        }
    }

    pub fn step(&mut self, state: &State, now: Now) {
        if now.instant < self.next {
            return;
        }
        self.next = now.instant + self.pause;
        state.spool(now, |spool| spool.scan());
        state.spool(now, |spool| {
            self.is_unavailable = spool.is_unavailable;
            let failure = self.look(spool, now.instant)?;
            Ok(Moves::lost(0, failure))
        });
    }

    /// Starts the forwarder if necessary. Returns why an earlier one has failed.
    fn look(&mut self, spool: &mut Spool, now: Instant) -> Result<Option<String>> {
        self.has_child();
        // A forwarder removes the target when it begins to send, and says something only if it fails.
        let has_begun = !spool.folder().join(TARGET).exists() && said(spool).is_empty();
        let lock = spool.enter()?;
        if lock.is_taken(Role::Forwarder)? {
            lock.release(Role::Starter)?;
            self.watch.runs(now);
            return Ok(None);
        }
        if has_begun {
            self.watch.has_run();
        }
        if !self.watch.is_due(now) || !lock.take(Role::Starter)? {
            return Ok(None);
        }
        let why = if self.watch.starts(now) {
            Some(message!("The forwarder did not start{}.", said(spool)))
        } else {
            None
        };
        self.start(spool).map_err(|error| {
            Error::Process(message!("The forwarder cannot be started: {error}."))
        })?;
        Ok(why)
    }

    fn start(&mut self, spool: &Spool) -> io::Result<()> {
        let target = spool.folder().join(TARGET);
        let new = target.with_extension("new");
        let _ = fs::remove_file(&new);
        system::create_private(&new)?.write_all(&self.settings.target)?;
        fs::rename(new, target)?;
        let (settings, log) = (&self.settings, spool.folder().join(LOG));
        let child = system::start(&settings.command, &settings.environment, &log)?;
        self.child = Some(child);
        Ok(())
    }

    fn has_child(&mut self) -> bool {
        self.child = self.child.filter(|&child| !system::has_ended(child));
        self.child.is_some()
    }

    /// The agent is stopping, and looks more often.
    pub fn hurry(&mut self, now: Now) {
        self.pause = HURRY;
        self.next = now.instant;
    }

    /// Whether there is nothing to wait for at the end. What remains is sent later.
    pub fn is_done(&self, state: &State) -> bool {
        self.is_unavailable || state.is_empty()
    }
}

/// The output of the forwarder before it ended, after a colon.
fn said(spool: &Spool) -> String {
    let log = read(&spool.folder().join(LOG), MOST_LOG);
    let said = log.and_then(|bytes| bytes.map_err(|_| io::ErrorKind::OutOfMemory.into()));
    match said.map(|bytes| response::failure(&bytes, Coding::Text)) {
        Ok(Ok(said)) if !said.is_empty() => message!(": {said}"),
        _ => String::new(),
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        // The child ends at once.
        for _ in 0..20 {
            if !self.has_child() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(all(
    test,
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests;
