//! Stubs for other systems. The thread ends at once there, because R's memory cannot be read; this only has to
//! compile.

use profile_core::error::{Error, Result};
use profile_core::message;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

pub fn boot_time() -> Duration {
    Duration::ZERO
}

pub fn thread_time() -> u64 {
    0
}

pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}

pub fn make_private_folder(_: &Path) -> io::Result<bool> {
    Err(ErrorKind::Unsupported.into())
}

pub fn create_private(_: &Path) -> io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

pub fn open_private(_: &Path) -> io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

pub fn is_same_file(_: &File, _: &Path) -> bool {
    false
}

pub fn lock(_: &File, _: u64, _: u64) -> io::Result<bool> {
    Err(ErrorKind::Unsupported.into())
}

pub fn unlock(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

pub fn is_locked(_: &File, _: u64, _: u64) -> io::Result<bool> {
    Err(ErrorKind::Unsupported.into())
}

pub fn start(_: &[u8], _: &[u8], _: &Path) -> io::Result<i32> {
    Err(ErrorKind::Unsupported.into())
}

pub fn has_ended(_: i32) -> bool {
    true
}

/// The file of R's profiler, which cannot be created here.
#[derive(Debug)]
pub struct Log {
    never: Never,
}

#[derive(Debug)]
enum Never {}

impl Log {
    pub fn create() -> Result<Log> {
        Err(Error::Unsupported(message!(
            "`Rprof()` can be the source of samples on Linux only, with 64 bits."
        )))
    }

    pub fn path(&self) -> String {
        match self.never {}
    }

    pub fn read(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        match self.never {}
    }

    pub fn free(&self, _: u64) -> io::Result<()> {
        match self.never {}
    }

    pub fn seal(&self) {
        match self.never {}
    }

    pub fn is_written(&self) -> bool {
        match self.never {}
    }
}

pub fn is_profiled() -> bool {
    false
}
