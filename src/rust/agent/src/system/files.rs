//! Files that only this user can read, and locks on their bytes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

const OWNER: u32 = 0o600;

/// Creates a folder if it is missing. Returns whether it is a folder of this user that others cannot access.
pub fn make_private_folder(path: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(path)?;
    // SAFETY: it has no preconditions.
    let user = unsafe { libc::geteuid() };
    Ok(found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0)
}

/// Creates a file, which must not exist.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(OWNER).open(path)
}

/// Opens a file for locking, and creates it if it is missing.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(OWNER).custom_flags(libc::O_NOFOLLOW);
    options.open(path)
}

pub fn is_same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Locks bytes for this process, unless another process holds a conflicting lock. A `count` of 0 means all bytes from
/// `start` on.
pub fn lock(file: &File, start: u64, count: u64) -> io::Result<bool> {
    match control(file, libc::F_SETLK, libc::F_WRLCK, start, count) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

pub fn unlock(file: &File, start: u64, count: u64) -> io::Result<()> {
    control(file, libc::F_SETLK, libc::F_UNLCK, start, count).map(drop)
}

/// Whether another process has locked one of these bytes.
pub fn is_locked(file: &File, start: u64, count: u64) -> io::Result<bool> {
    let kind = control(file, libc::F_GETLK, libc::F_WRLCK, start, count)?;
    Ok(kind != libc::F_UNLCK)
}

fn control(
    file: &File,
    what: libc::c_int,
    kind: libc::c_int,
    start: u64,
    count: u64,
) -> io::Result<libc::c_int> {
    let offset = |bytes| libc::off_t::try_from(bytes).map_err(|_| ErrorKind::InvalidInput);
    let mut range = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: offset(start)?,
        l_len: offset(count)?,
        l_pid: 0,
    };
    // SAFETY: the file is open, and the kernel reads and writes the struct.
    match unsafe { libc::fcntl(file.as_raw_fd(), what, &raw mut range) } {
        0 => Ok(libc::c_int::from(range.l_type)),
        _ => Err(io::Error::last_os_error()),
    }
}
