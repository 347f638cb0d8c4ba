//! A core file as a sequence of bytes. It may be larger than the memory of this machine, so each part is read when it
//! is needed.

use profile_core::error::{Error, Foreign, Position, Result};
use profile_core::message;
use std::fs::{self, File};
use std::io;
use std::path::Path;

pub struct Input {
    file: File,
    size: u64,
    /// The path in messages.
    pub shown: String,
}

impl Input {
    pub fn open(path: &Path, shown: &str) -> Result<Input> {
        let open = || {
            // Opening a pipe might wait forever.
            let about = fs::metadata(path)?;
            if !about.is_file() {
                return Err(io::Error::other("it is not a file"));
            }
            Ok((File::open(path)?, about.len()))
        };
        let (file, size) = open().map_err(|source| Error::Open {
            path: path.into(),
            source,
        })?;
        Ok(Input {
            file,
            size,
            shown: message!("{shown}"),
        })
    }

    /// Copies what is at an offset. Returns `false` if not all of it can be read.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        self.has(offset, into.len() as u64) && read_exact_at(&self.file, into, offset)
    }

    /// Whether these bytes are in the file.
    pub fn has(&self, offset: u64, size: u64) -> bool {
        offset.checked_add(size).is_some_and(|end| end <= self.size)
    }

    /// The bytes at an offset.
    pub fn array<const SIZE: usize>(&self, offset: u64) -> Option<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        self.read(offset, &mut bytes).then_some(bytes)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// The error if the file is not a core file.
    pub fn foreign(&self, found: &str, remedy: &'static str) -> Error {
        Error::Foreign(Foreign {
            input: message!("`{}`", self.shown),
            wanted: "a core file",
            found: message!("{found}"),
            looks_like: None,
            remedy,
        })
    }

    /// The error if the contents at an offset are wrong.
    pub fn damaged(&self, offset: u64, message: &str) -> Error {
        Error::Parse {
            input: message!("`{}`", self.shown),
            position: Position::Byte(offset),
            message: message!("{message}"),
        }
    }

    /// The error if the contents at an offset should be there, but the file ends before.
    pub fn cut_off(&self, offset: u64, what: &str) -> Error {
        let size = self.size;
        self.damaged(
            offset,
            &message!("The core file is cut off after {size} bytes: {what} are missing. {LIMITS}"),
        )
    }
}

/// Why core files are cut off.
pub const LIMITS: &str = "The disk may be full, or the limit on the size of core files too low: see `ulimit -c`, and \
    `ProcessSizeMax` in coredump.conf(5).";

#[cfg(unix)]
fn read_exact_at(file: &File, into: &mut [u8], offset: u64) -> bool {
    use std::os::unix::fs::FileExt;
    file.read_exact_at(into, offset).is_ok()
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut into: &mut [u8], mut offset: u64) -> bool {
    use std::os::windows::fs::FileExt;
    while !into.is_empty() {
        match file.seek_read(into, offset) {
            Ok(read) if read > 0 => {
                into = into.get_mut(read..).unwrap_or_default();
                offset += read as u64;
            }
            _ => return false,
        }
    }
    true
}
