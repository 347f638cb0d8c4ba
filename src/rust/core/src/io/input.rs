//! Opens input files and describes inputs to readers.

use crate::error::{Error, Result};
use crate::io::observed::Observed;
use crate::limits::budget::Budget;
use crate::limits::memory::owned;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The origin of bytes.
pub enum Source<'a> {
    /// A regular file.
    File(&'a File),
    Bytes(&'a [u8]),
    /// Anything else. Reading from it may wait for input.
    Stream(&'a mut (dyn Read + Send)),
}

impl<'a> Source<'a> {
    /// The same bytes from the start, if they can be read again. Reading such a source never waits
    /// for input.
    pub fn again(&self) -> Option<Source<'a>> {
        match *self {
            Source::File(file) => Some(Source::File(file)),
            Source::Bytes(bytes) => Some(Source::Bytes(bytes)),
            Source::Stream(_) => None,
        }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(file) => file.read(buffer),
            Source::Bytes(bytes) => bytes.read(buffer),
            Source::Stream(stream) => stream.read(buffer),
        }
    }
}

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
    /// Reports the position in a file while it is read.
    pub observed: Option<Arc<Observed>>,
}

impl Origin {
    /// A copy of the URI, for a source.
    pub(crate) fn own_uri(&self) -> Result<Option<String>> {
        let uri = self.uri.as_deref();
        uri.map(owned).transpose()
    }

    /// The memory that the profile may take.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.stored, self.max_memory)
    }
}

/// A file that is open for reading.
pub struct InputFile {
    file: File,
    is_regular: bool,
}

impl InputFile {
    /// Opens a regular file, or anything else that can be read from start to end, and completes
    /// its description.
    pub fn open(path: &Path, origin: Origin) -> Result<(InputFile, Origin)> {
        let file = File::open(path).map_err(|e| Error::open(path, e))?;
        let about = file.metadata().map_err(|e| Error::open(path, e))?;
        if about.is_dir() {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
            return Err(Error::open(path, error));
        }
        let is_regular = about.is_file();
        if let Some(observed) = &origin.observed {
            observed.begin(&file, about.len());
        }
        let modified = is_regular.then(|| about.modified().ok()).flatten();
        let age = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let origin = Origin {
            written: origin.written.or(age.map(|age| age.as_secs_f64())),
            stored: about.len(),
            ..origin
        };
        Ok((InputFile { file, is_regular }, origin))
    }

    pub fn source(&mut self) -> Source<'_> {
        if self.is_regular {
            Source::File(&self.file)
        } else {
            Source::Stream(&mut self.file)
        }
    }
}
