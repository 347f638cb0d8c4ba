//! The folder that agents and the helper share: locks show who is running, and the helper is started in it. Tests of
//! [`super::watch`] use another one, which follows a script.

use crate::relay::lock::{Lock, Role};
use crate::system;
use profile_core::error::{Error, Result};
use profile_core::formats::otlp::response::{self, Coding};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The file with the output of the helper, and the maximum number of bytes read from it.
const LOG: &str = "log";
const MOST_LOG: u64 = 1000;

pub trait Site {
    fn folder(&self) -> &Path;

    /// Takes or keeps the lock of an agent, which keeps the folder from being removed. Returns `false` while the helper
    /// removes the folder.
    fn enter(&mut self) -> Result<bool>;

    /// Whether a helper is running.
    fn is_helped(&self) -> Result<bool>;

    /// Makes this agent the only one that may start the helper. Returns `false` if another agent is.
    fn take_turn(&self) -> Result<bool>;

    /// Lets other agents start the helper.
    fn end_turn(&self) -> Result<()>;

    fn start(&mut self) -> io::Result<()>;

    /// The output of the helper before it ended, after a colon.
    fn said(&self) -> String;
}

pub struct SharedFolder {
    folder: PathBuf,
    command: Vec<u8>,
    environment: Vec<u8>,
    lock: Option<Lock>,
    /// The child process that was started, until it has ended. It ends at once and leaves the helper to the system:
    /// otherwise, helpers that end after the agent would remain as zombies.
    child: Option<i32>,
}

impl SharedFolder {
    /// `command` and `environment` of the helper: strings that are each terminated by NUL.
    pub fn new(folder: PathBuf, command: Vec<u8>, environment: Vec<u8>) -> SharedFolder {
        SharedFolder {
            folder,
            command,
            environment,
            lock: None,
            child: None,
        }
    }

    fn has_child(&mut self) -> bool {
        self.child = self.child.filter(|&child| !system::has_ended(child));
        self.child.is_some()
    }
}

impl Site for SharedFolder {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn enter(&mut self) -> Result<bool> {
        self.has_child();
        let is_in = |lock: &Lock| Ok::<_, Error>(lock.take(Role::Agent)? && lock.is_current());
        let remains = match &self.lock {
            Some(lock) => is_in(lock)?,
            None => false,
        };
        if !remains {
            // The old file is closed first: closing it later would release the locks of the new one.
            self.lock = None;
            let lock = Lock::open(&self.folder)?;
            if is_in(&lock)? {
                self.lock = Some(lock);
            }
        }
        Ok(self.lock.is_some())
    }

    fn is_helped(&self) -> Result<bool> {
        self.lock
            .as_ref()
            .map_or(Ok(false), |lock| lock.is_taken(Role::Helper))
    }

    fn take_turn(&self) -> Result<bool> {
        self.lock
            .as_ref()
            .map_or(Ok(false), |lock| lock.take(Role::Starter))
    }

    fn end_turn(&self) -> Result<()> {
        self.lock
            .as_ref()
            .map_or(Ok(()), |lock| lock.release(Role::Starter))
    }

    fn start(&mut self) -> io::Result<()> {
        let log = self.folder.join(LOG);
        self.child = Some(system::start(&self.command, &self.environment, &log)?);
        Ok(())
    }

    fn said(&self) -> String {
        let mut bytes = Vec::new();
        if let Ok(file) = File::open(self.folder.join(LOG)) {
            let mut buffer = [0; MOST_LOG as usize];
            let mut file = file.take(MOST_LOG);
            while let Ok(count @ 1..) = file.read(&mut buffer) {
                let read = buffer.get(..count).unwrap_or_default();
                if bytes.try_extend(read).is_err() {
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

impl Drop for SharedFolder {
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
    use std::fs;

    #[test]
    fn a_folder_that_was_removed_is_created_again() {
        let path = std::env::temp_dir().join(format!("profile-site-{}", std::process::id()));
        let command = b"/bin/sh\0-c\0echo '100% broken'\0".to_vec();
        let mut site = SharedFolder::new(path.clone(), command, Vec::new());
        assert!(!site.is_helped().unwrap() && !site.take_turn().unwrap());
        assert!(site.enter().unwrap() && site.enter().unwrap());
        assert!(!site.is_helped().unwrap() && site.take_turn().unwrap());
        site.end_turn().unwrap();
        assert_eq!(site.said(), "");
        site.start().unwrap();
        while site.has_child() {
            thread::yield_now();
        }
        assert_eq!(site.said(), ": 100% broken");
        fs::remove_dir_all(&path).unwrap();
        assert!(site.start().is_err());
        assert_eq!(site.said(), "");
        assert!(site.enter().unwrap());
        assert!(path.is_dir());
        drop(site);
        fs::remove_dir_all(&path).unwrap();
        // Nothing can be created in a file.
        fs::write(&path, "").unwrap();
        assert!(
            SharedFolder::new(path.clone(), Vec::new(), Vec::new())
                .enter()
                .is_err()
        );
        fs::remove_file(&path).unwrap();
    }
}
