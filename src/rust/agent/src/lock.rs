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
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Creates the folder and its parent if they are missing. Chunks contain the names of files and functions, so other
    /// users must not be able to read them.
    pub fn open(folder: &Path) -> Result<Lock> {
        let path = folder.join(NAME);
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
        let file = system::open_private(&path).map_err(failed)?;
        Ok(Lock {
            folder: folder.to_path_buf(),
            path,
            file,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the path still refers to the file that is open here. It may have been removed.
    pub fn is_current(&self) -> bool {
        system::is_same_file(&self.file, &self.path)
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
        if let Some(parent) = self
            .folder
            .parent()
            .filter(|parent| parent.file_name().is_some_and(is_ours))
        {
            // Fails while there are folders for other targets.
            let _ = fs::remove_dir(parent);
        }
        Ok(true)
    }

    fn failed(&self, source: io::Error) -> Error {
        let path = self.path.clone();
        Error::Write { path, source }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::script::temporary;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn folders_are_private() {
        let base = temporary();
        assert!(system::make_private_folder(&base).unwrap());
        let folder = base.join("a");
        let lock = Lock::open(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&lock.path)), (0o700, 0o600));
        assert!(lock.take(Role::Agent(7)).unwrap() && lock.is_current());
        // The locks of the same process do not count.
        assert!(!lock.is_taken(Role::Agent(7)).unwrap());
        fs::remove_file(&lock.path).unwrap();
        assert!(!lock.is_current());
        Lock::open(&folder).unwrap();
        assert!(!lock.is_current());
        let open = base.join("b");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o710)).unwrap();
        let link = base.join("c");
        symlink(&folder, &link).unwrap();
        fs::write(base.join("d"), "").unwrap();
        for name in ["b", "c", "d"] {
            assert!(Lock::open(&base.join(name)).is_err(), "{name}");
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_folder_is_removed_when_nobody_needs_it() {
        let folder = temporary().join("a");
        let lock = Lock::open(&folder).unwrap();
        assert!(!lock.remove(|_| true).unwrap());
        assert!(folder.exists());
        assert!(lock.remove(|_| false).unwrap());
        assert!(!folder.parent().unwrap().exists());
        // It is another folder now.
        assert!(!lock.is_current());
        let again = Lock::open(&folder).unwrap();
        assert!(!lock.remove(|_| false).unwrap());
        assert!(again.remove(|_| false).unwrap());
    }
}
