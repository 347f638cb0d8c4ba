//! Writes each chunk to a file in a folder. A file gets its final name only when it is complete.

use crate::counts::{Content, Moves};
use crate::now::Now;
use profile_core::error::Result;
use profile_core::io::save;
use profile_core::message;
use profile_reader::source::utc;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next file of this process. It makes names unique if several agents are started within a second.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
    /// The start of file names.
    pub name: String,
}

impl Folder {
    /// Writes a chunk, or a snapshot of R's heap, which is thereby sent.
    pub fn put(&self, bytes: &[u8], content: Content, now: Now) -> Result<Moves> {
        let mut time = utc(now.unix().unwrap_or(0.0));
        // Some systems do not allow colons in file names.
        time.retain(|c| c != ':' && c != '-');
        let path = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let what = if content == Content::Heap {
                "-heap"
            } else {
                ""
            };
            let name = message!(
                "{}-{}-{time}-{number}{what}.pb.gz",
                self.name,
                process::id()
            );
            let path = self.path.join(name);
            // The file may exist if this library was unloaded and loaded again, since the numbers then start again.
            if !path.exists() {
                break path;
            }
        };
        save::replace(&path, None, |out| {
            out.write_all(bytes).map_err(save::failed)
        })?;
        Ok(Moves {
            sent: content.samples(),
            chunks_sent: 1,
            ..Moves::default()
        })
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests;
