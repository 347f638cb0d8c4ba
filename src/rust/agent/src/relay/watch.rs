//! Ensures that a helper is running as long as there is an agent.

use crate::relay::lock::{Lock, Role};
use crate::system;
use profile_core::error::{Error, Result};
use profile_core::formats::otlp::response::{self, Coding};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_core::retry;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How often to check whether a helper is running.
const LOOK: Duration = Duration::from_secs(1);
/// The first delay before a restart: of a helper that was running, and of one that has not come up, which may still
/// be loading packages on a busy machine.
const AGAIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);
/// A helper that has run for this long counts as successful.
const GOOD: Duration = Duration::from_secs(60);
/// The file with the output of the helper, and the maximum number of bytes read from it.
const LOG: &str = "log";
const MOST_LOG: u64 = 1000;

pub struct Watch {
    folder: PathBuf,
    command: Vec<u8>,
    environment: Vec<u8>,
    lock: Option<Lock>,
    is_running: bool,
    next: Instant,
    /// How often this agent has started a helper since one ran long enough, and when it last did so.
    starts: u32,
    started: Instant,
    /// Whether a helper was running since then.
    has_run: bool,
    /// Randomises the next delay.
    chance: f64,
    /// The child process that was started, until it has ended. It ends at once and leaves the helper to the system:
    /// otherwise, helpers that end after the agent would remain as zombies.
    child: Option<i32>,
}

impl Watch {
    pub fn new(folder: PathBuf, command: Vec<u8>, environment: Vec<u8>) -> Watch {
        let now = Instant::now();
        Watch {
            folder,
            command,
            environment,
            lock: None,
            is_running: false,
            next: now,
            starts: 0,
            started: now,
            has_run: false,
            chance: 0.0,
            child: None,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether a helper was running at the last check.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether the folder exists and is not being removed.
    pub fn is_ready(&self) -> bool {
        self.lock.is_some()
    }

    /// Checks for the helper, if a check is due, and starts it if necessary. Fails if that is not possible, with the
    /// reason.
    pub fn look(&mut self) -> Result<()> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + LOOK;
        self.child = self.child.filter(|&child| !system::has_ended(child));
        self.enter()?;
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        if lock.is_taken(Role::Helper)? {
            lock.release(Role::Starter)?;
            self.is_running = true;
            self.has_run = true;
            if now.saturating_duration_since(self.started) > GOOD {
                self.starts = 0;
            }
            return Ok(());
        }
        self.is_running = false;
        let first = if self.has_run { AGAIN } else { PATIENCE };
        let pause = match self.starts {
            0 => Duration::ZERO,
            starts => retry::delay(starts, first, self.chance),
        };
        if now < self.started + pause || !lock.take(Role::Starter)? {
            return Ok(());
        }
        let is_failure = self.starts > 0 && !self.has_run;
        let said = match is_failure {
            true => self.said(),
            false => String::new(),
        };
        self.starts = self.starts.saturating_add(1);
        self.started = now;
        self.chance = retry::chance();
        self.has_run = false;
        let log = self.folder.join(LOG);
        match system::start(&self.command, &self.environment, &log) {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                return Err(Error::Process(message!(
                    "The helper process cannot be started: {error}."
                )));
            }
        }
        match is_failure {
            true => Err(Error::Process(message!(
                "The helper process did not start{said}."
            ))),
            false => Ok(()),
        }
    }

    /// Takes the lock of an agent, which keeps the folder from being removed. This has to wait while the helper
    /// removes the folder.
    pub fn enter(&mut self) -> Result<()> {
        let is_in = |lock: &Lock| Ok::<_, Error>(lock.take(Role::Agent)? && lock.is_current());
        let remains = match &self.lock {
            Some(lock) => is_in(lock)?,
            None => false,
        };
        if !remains {
            // The old file is closed first: closing it later would release the locks of the new one.
            self.lock = None;
            self.is_running = false;
            let lock = Lock::open(&self.folder)?;
            if is_in(&lock)? {
                self.lock = Some(lock);
            }
        }
        Ok(())
    }

    /// The output of the helper before it ended, after a colon.
    fn said(&self) -> String {
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(self.folder.join(LOG)) {
            let mut buffer = [0; MOST_LOG as usize];
            let mut file = file.take(MOST_LOG);
            while let Ok(count @ 1..) = file.read(&mut buffer) {
                let read = buffer.get(..count).unwrap_or_default();
                if bytes.try_extend(read, "a log").is_err() {
                    break;
                }
            }
        }
        match response::failure(&bytes, Coding::Text) {
            Ok(said) if !said.is_empty() => message!(": {said}"),
            _ => String::new(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The child ends at once.
        for _ in 0..20 {
            self.child = self.child.filter(|&child| !system::has_ended(child));
            if self.child.is_none() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}
