//! The names of chunks in the spool. A name consists of the time, so that names sort by age, the id of the agent, a
//! number, and the number of samples. The extension is the state of the chunk, see [`crate::spool`].

use crate::now::Now;
use profile_core::message;
use std::fs;
use std::path::Path;

pub const COMPLETE: &str = "otlp.gz";
const SENDING: &str = "sending";

/// The name of a new chunk, without an extension.
pub fn name(now: Now, id: u64, number: u64, samples: u64) -> String {
    let millis = (now.unix().unwrap_or(0.0) * 1000.0) as u64;
    message!("{millis:013}-{id:012x}-{number:06}-{samples}")
}

/// The parts of a file name.
pub struct Name<'n> {
    pub chunk: &'n str,
    pub id: u64,
    pub samples: u64,
    pub extension: &'n str,
}

impl Name<'_> {
    pub fn parse(file: &str) -> Option<Name<'_>> {
        let (chunk, extension) = file.split_once('.')?;
        let mut parts = chunk.split('-').skip(1);
        let id = u64::from_str_radix(parts.next()?, 16).ok()?;
        let samples = parts.nth(1)?.parse().ok()?;
        // The lock for the id is at this offset, which must not overflow.
        (id >> 48 == 0 && parts.next().is_none()).then_some(Name {
            chunk,
            id,
            samples,
            extension,
        })
    }

    pub fn is_chunk(&self) -> bool {
        [COMPLETE, SENDING].contains(&self.extension)
    }
}

/// Whether there are chunks in a folder, so that it must not be removed.
pub fn has_chunks(folder: &Path) -> bool {
    let is_chunk = |file: &str| Name::parse(file).is_some_and(|name| name.is_chunk());
    let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.any(|file| file.file_name().to_str().is_some_and(is_chunk))
}
