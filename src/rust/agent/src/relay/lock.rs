//! Shows which processes are running: the helper and the agents hold locks on bytes of a file until they end.
//!
//! The locks belong to processes: the kernel releases them however a process ends, and a forked process does not
//! inherit them. However, a process loses all its locks on a file when it closes any of its descriptors for that
//! file. Each process therefore has a single [`Lock`].

use crate::system;
use profile_core::error::{Error, Result};
use profile_core::message;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub const NAME: &str = "lock";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The only process that sends.
    Helper,
    /// The only agent that may start the helper.
    Starter,
    /// An agent; any number of processes can have this role. The helper ends if there is none.
    Agent,
}

impl Role {
    fn byte(self) -> u8 {
        match self {
            Role::Helper => 0,
            Role::Starter => 1,
            Role::Agent => 2,
        }
    }
}

pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Creates the folder if it is missing. Requests contain secrets, so other users must not be able to read it.
    pub fn open(folder: &Path) -> Result<Lock> {
        let path = folder.join(NAME);
        let failed = |source| Error::Write {
            path: folder.to_path_buf(),
            source,
        };
        if !system::make_private_folder(folder).map_err(failed)? {
            return Err(Error::Unsupported(message!(
                "The folder `{}` must belong to this user, and be closed to others.",
                folder.display()
            )));
        }
        let file = system::open_private(&path).map_err(failed)?;
        Ok(Lock { path, file })
    }

    /// Whether the path still refers to the file that is open here. It may have been removed.
    pub fn is_current(&self) -> bool {
        system::is_same_file(&self.file, &self.path)
    }

    /// Takes or keeps a role, unless another process holds a conflicting lock.
    pub fn take(&self, role: Role) -> Result<bool> {
        let is_shared = role == Role::Agent;
        system::lock(&self.file, role.byte(), is_shared).map_err(|error| self.failed(error))
    }

    pub fn release(&self, role: Role) -> Result<()> {
        system::unlock(&self.file, role.byte()).map_err(|error| self.failed(error))
    }

    /// Whether another process has this role.
    pub fn is_taken(&self, role: Role) -> Result<bool> {
        system::is_locked(&self.file, role.byte()).map_err(|error| self.failed(error))
    }

    /// Takes a role exclusively, even if it is one that processes can share.
    fn close(&self, role: Role) -> Result<bool> {
        system::lock(&self.file, role.byte(), false).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> Error {
        let path = self.path.clone();
        Error::Write { path, source }
    }
}

// ---- The helper -----------------------------------------------------------------

/// The lock of this process, if this is the helper.
static HELPER: Mutex<Option<Lock>> = Mutex::new(None);

/// What the helper of a folder must do: "send"; "wait", if there is no agent; or "end", if there is another helper or
/// the folder was replaced. If `close`, it is "close" when there is no agent and no new one can start: the folder is
/// to be removed.
pub fn serve(folder: &Path, close: bool) -> Result<&'static str> {
    let mut slot = HELPER.lock().unwrap_or_else(PoisonError::into_inner);
    let lock = match &mut *slot {
        Some(lock) => lock,
        None => slot.insert(Lock::open(folder)?),
    };
    if !lock.take(Role::Helper)? || !lock.is_current() {
        return Ok("end");
    }
    if lock.is_taken(Role::Agent)? {
        return Ok("send");
    }
    Ok(match close && lock.close(Role::Agent)? {
        true => "close",
        false => "wait",
    })
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn folders_are_private() {
        let base = std::env::temp_dir().join(format!("profile-relay-test-{}", std::process::id()));
        fs::create_dir(&base).unwrap();
        let folder = base.join("a");
        let lock = Lock::open(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&lock.path)), (0o700, 0o600));
        assert!(lock.take(Role::Agent).unwrap() && lock.is_current());
        // The locks of the same process do not count.
        assert!(!lock.is_taken(Role::Agent).unwrap());
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
}
