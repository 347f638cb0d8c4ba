//! Has the chunks in the spool sent by a forwarder: an R process that sends them with curl, and with encryption, for all
//! agents with the same target. `R/forward.R` contains its code. An agent starts it, and starts it again if it ends.

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
            let started = self.look(spool, now.instant);
            started.map(|why| Moves {
                why,
                ..Moves::default()
            })
        });
    }

    /// Starts the forwarder if necessary. Returns why an earlier one has failed.
    fn look(&mut self, spool: &mut Spool, now: Instant) -> Result<Option<String>> {
        self.has_child();
        let lock = spool.enter()?;
        if lock.is_taken(Role::Forwarder)? {
            lock.release(Role::Starter)?;
            self.watch.runs(now);
            return Ok(None);
        }
        if !self.watch.is_due(now) || !lock.take(Role::Starter)? {
            return Ok(None);
        }
        let why = match self.watch.starts(now) {
            true => Some(message!("The forwarder did not start{}.", said(spool))),
            false => None,
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
        let Settings {
            command,
            environment,
            ..
        } = &self.settings;
        let log = spool.folder().join(LOG);
        self.child = Some(system::start(command, environment, &log)?);
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

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::script::{add_chunk, beginning, checked, last_error, spooled};

    #[test]
    fn a_forwarder_is_started_and_its_results_are_counted() {
        let (state, folder) = spooled(1000);
        let now = beginning();
        let settings = Settings {
            target: b"secret".to_vec(),
            command: b"/bin/sh\0-c\0echo '100% broken'; echo $A\0".to_vec(),
            environment: b"A=1\0".to_vec(),
        };
        let mut forward = Forward::new(settings, now);
        add_chunk(&state, 3, 1, now);
        add_chunk(&state, 4, 2, now.after(1.0));
        add_chunk(&state, 5, 3, now.after(2.0));
        forward.step(&state, now);
        while forward.has_child() {
            thread::yield_now();
        }
        assert_eq!(fs::read(folder.join("target")).unwrap(), b"secret");
        assert_eq!(fs::read(folder.join("log")).unwrap(), b"100% broken\n1\n");
        assert_eq!(checked(&state).waiting.chunks, 3);
        let mut files = fs::read_dir(&*folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
            .map(|path| path.with_extension("").with_extension(""))
            .collect::<Vec<_>>();
        files.sort();
        for (file, outcome) in files.iter().zip(["sent", "refused", "sent-300"]) {
            fs::rename(file.with_extension("otlp.gz"), file.with_extension(outcome)).unwrap();
        }
        fs::write(folder.join("report"), "http://a: HTTP 503").unwrap();
        forward.step(&state, now.after(0.9));
        assert_eq!(checked(&state).waiting.chunks, 3);
        forward.step(&state, now.after(1.0));
        let counts = checked(&state);
        assert_eq!(
            (
                counts.moves.sent,
                counts.moves.refused,
                counts.moves.rejected
            ),
            (8, 4, 300)
        );
        assert_eq!(last_error(&state), "http://a: HTTP 503");
        // It has ended without having been there.
        forward.step(&state, now.after(20.0));
        assert_eq!(
            last_error(&state),
            "The forwarder did not start: 100% broken 1."
        );
        state.leave(false, now);
        assert!(!folder.exists());
    }

    #[test]
    fn a_forwarder_that_cannot_be_started_is_an_error() {
        let (state, folder) = spooled(1000);
        let now = beginning();
        let settings = Settings {
            target: Vec::new(),
            command: b"/no/such/program\0".to_vec(),
            environment: Vec::new(),
        };
        Forward::new(settings, now).step(&state, now);
        let error = last_error(&state);
        assert!(
            error.starts_with("The forwarder cannot be started: "),
            "{error}"
        );
        state.leave(false, now);
        assert!(!folder.exists());
    }
}
