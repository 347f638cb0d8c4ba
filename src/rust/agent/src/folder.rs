//! Writes each chunk to a file in a folder. A file gets its final name only when it is complete.

use crate::counts::{Content, Moves};
use crate::now::Now;
use profile_core::error::Result;
use profile_core::io::save;
use profile_core::message;
use profile_reader::recorded::source::utc;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The number of the next file of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// The start of file names.
    pub name: String,
    /// A random number in file names: the processes of several containers have the same process ids and may share a
    /// folder.
    id: u32,
}

impl Folder {
    pub fn new(path: PathBuf, name: String) -> Folder {
        let random = RandomState::new().hash_one((process::id(), SystemTime::now()));
        let id = random as u32;
        Folder { path, name, id }
    }

    /// Writes a chunk, or a snapshot of R's heap, which is thereby sent.
    pub fn put(&self, bytes: &[u8], content: Content, now: Now) -> Result<Moves> {
        let mut time = utc(now.unix().unwrap_or(0.0));
        // Some systems do not allow colons in file names.
        time.retain(|c| c != ':' && c != '-');
        let what = if content == Content::Heap {
            "-heap"
        } else {
            ""
        };
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = message!(
                "{}-{}-{:08x}-{time}-{number}{what}.pb.gz",
                self.name,
                process::id(),
                self.id
            );
            let write = |out: &mut dyn Write| out.write_all(bytes).map_err(save::failed);
            if save::create(&self.path.join(name), write)? {
                break;
            }
        }
        Ok(Moves {
            sent: content.samples(),
            chunks_sent: 1,
            ..Moves::default()
        })
    }
}

#[cfg(test)]
mod tests;
