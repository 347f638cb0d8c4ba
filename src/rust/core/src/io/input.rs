//! Opens input files and describes inputs to readers.

use crate::error::{Error, Result};
use crate::limits::budget::Budget;
use crate::limits::memory::owned;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The description of an input that a reader gets.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The name of the input in messages.
    pub name: String,
    /// The value for `sources.source_uri`.
    pub uri: Option<String>,
    /// When the file was last written, in seconds since 1970. The recorded runs ended before.
    pub written: Option<f64>,
    /// The size of the stored file in bytes; 0 if it is unknown.
    pub stored: u64,
    /// The memory that the profile may take, in bytes. By default it depends on the size of the
    /// file.
    pub max_memory: Option<u64>,
}

impl Origin {
    /// A copy of the URI, for a source.
    pub(crate) fn own_uri(&self) -> Result<Option<String>> {
        let uri = self.uri.as_deref();
        uri.map(|uri| owned(uri, "sources")).transpose()
    }

    /// The memory that the profile may take.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.stored, self.max_memory)
    }
}

/// Opens a file for reading, and completes its description.
pub fn open(path: &Path, origin: Origin) -> Result<(File, Origin)> {
    let (file, modified, stored) = open_file(path)?;
    let written = origin.written.or(modified);
    let origin = Origin {
        written,
        stored,
        ..origin
    };
    Ok((file, origin))
}

/// Opens a regular file, or anything else that can be read from start to end. Returns it, when it
/// was last written (regular files only), and its size.
fn open_file(path: &Path) -> Result<(File, Option<f64>, u64)> {
    let file = File::open(path).map_err(|e| Error::open(path, e))?;
    let about = file.metadata().map_err(|e| Error::open(path, e))?;
    if about.is_dir() {
        let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
        return Err(Error::open(path, error));
    }
    let modified = about.is_file().then(|| about.modified().ok()).flatten();
    let seconds = modified.and_then(|time| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Some(after.as_secs_f64()),
        Err(_) => None,
    });
    Ok((file, seconds, about.len()))
}
