//! Where bytes come from: opening a file, and what is known about it.

use crate::error::{Error, Result};
use crate::limits::budget::Budget;
use crate::limits::memory::owned;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What a reader is told about its input.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// How messages call the input.
    pub name: String,
    /// What `sources.source_uri` says.
    pub uri: Option<String>,
    /// When it was last written, in seconds since 1970: what is recorded in it had
    /// ended by then.
    pub written: Option<f64>,
    /// Its size, in bytes, as it is stored; 0 where that is not known.
    pub stored: u64,
    /// The bytes of memory that it may take, where that is not to follow from its size.
    pub max_memory: Option<u64>,
}

impl Origin {
    /// The URI for a source of its own.
    pub(crate) fn own_uri(&self) -> Result<Option<String>> {
        let uri = self.uri.as_deref();
        uri.map(|uri| owned(uri, "sources")).transpose()
    }

    /// The memory that reading it may take.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.stored, self.max_memory)
    }
}

/// Opens a file for reading, and notes when it was last written.
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

/// Opens a regular file or anything else that can be read from start to end,
/// and tells when it was last written.
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
