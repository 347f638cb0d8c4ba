//! Shows which processes use a spool folder: each holds locks on bytes of a file until it ends.
//!
//! The locks belong to processes: the kernel releases them however a process ends, and a forked process does not
//! inherit them. However, a process loses all its locks on a file when it closes any of its descriptors for that
//! file. Each user of a folder therefore takes its locks again from time to time.

use crate::system;
use profile_core::error::{Error, Result};
use profile_core::message;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

const NAME: &str = "lock";
/// The start of the names of parent folders that this package creates.
const OURS: &str = "profile-";
/// Agents lock bytes from here on, one for each id.
const AGENTS: u64 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The only process that sends chunks of this folder with curl.
    Forwarder,
    /// The only agent that may start the forwarder.
    Starter,
    /// The owner of the chunks with this id.
    Agent(u64),
    /// All agents.
    Agents,
}

impl Role {
    /// The first byte and the number of bytes; 0 for all bytes that follow.
    fn bytes(self) -> (u64, u64) {
        match self {
            Role::Forwarder => (0, 1),
            Role::Starter => (1, 1),
            Role::Agent(id) => (AGENTS + id, 1),
            Role::Agents => (AGENTS, 0),
        }
    }
}

#[derive(Debug)]
pub struct Lock {
    folder: PathBuf,
    file: File,
}

impl Lock {
    /// Creates the folder and its parent if they are missing. Chunks contain the names of files and functions, so other
    /// users must not be able to read them.
    pub fn open(folder: &Path) -> Result<Lock> {
        let failed = |source| Error::Write {
            path: folder.to_path_buf(),
            source,
        };
        for folder in [folder.parent().unwrap_or(folder), folder] {
            if !system::make_private_folder(folder).map_err(failed)? {
                return Err(Error::Unsupported(message!(
                    "The folder `{}` must belong to this user, and be closed to others.",
                    folder.display()
                )));
            }
        }
        let file = system::open_private(&folder.join(NAME)).map_err(failed)?;
        Ok(Lock {
            folder: folder.to_path_buf(),
            file,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the path still refers to the file that is open here. It may have been removed.
    pub fn is_current(&self) -> bool {
        system::is_same_file(&self.file, &self.folder.join(NAME))
    }

    /// Takes or keeps a role, unless another process has it.
    pub fn take(&self, role: Role) -> Result<bool> {
        let (start, count) = role.bytes();
        system::lock(&self.file, start, count).map_err(|error| self.failed(error))
    }

    pub fn release(&self, role: Role) -> Result<()> {
        let (start, count) = role.bytes();
        system::unlock(&self.file, start, count).map_err(|error| self.failed(error))
    }

    /// Whether another process has this role.
    pub fn is_taken(&self, role: Role) -> Result<bool> {
        let (start, count) = role.bytes();
        system::is_locked(&self.file, start, count).map_err(|error| self.failed(error))
    }

    /// Removes the folder, unless another process uses it or `is_needed`, which is asked when nobody can enter it.
    /// Returns whether it was removed. Afterwards the next user creates another folder.
    pub fn remove(&self, is_needed: impl FnOnce(&Path) -> bool) -> Result<bool> {
        let is_free = self.take(Role::Forwarder)? && self.take(Role::Agents)? && self.is_current();
        if !is_free || is_needed(&self.folder) {
            return Ok(false);
        }
        let aside = self.folder.with_extension(message!("{}", process::id()));
        fs::rename(&self.folder, &aside).map_err(|error| self.failed(error))?;
        fs::remove_dir_all(&aside).map_err(|error| self.failed(error))?;
        // A folder of the user stays.
        let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(OURS.as_bytes());
        let parent = self.folder.parent();
        if let Some(parent) = parent.filter(|parent| parent.file_name().is_some_and(is_ours)) {
            // Fails while there are folders for other targets.
            let _ = fs::remove_dir(parent);
        }
        Ok(true)
    }

    fn failed(&self, source: io::Error) -> Error {
        let path = self.folder.clone();
        Error::Write { path, source }
    }
}

#[cfg(all(
    test,
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests;
