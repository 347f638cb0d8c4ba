//! Writes each chunk to a file in a folder. A file gets its final name only when it is complete.

use crate::queue::Queue;
use profile_core::error::Result;
use profile_core::io::save;
use profile_core::message;
use profile_core::retry;
use profile_reader::source::utc;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The number of the next file of this process. It makes names unique if several agents are started within a second.
static NEXT: AtomicU64 = AtomicU64::new(0);

pub struct Folder {
    path: PathBuf,
    name: String,
    /// Consecutive failed attempts, and the time of the next attempt.
    attempts: u32,
    next: Instant,
    /// Whether an error is final, because the agent is stopping.
    is_last: bool,
    has_given_up: bool,
}

impl Folder {
    pub fn new(path: PathBuf, name: String) -> Folder {
        Folder {
            path,
            name,
            attempts: 0,
            next: Instant::now(),
            is_last: false,
            has_given_up: false,
        }
    }

    pub fn step(&mut self, queue: &Queue) {
        if self.has_given_up || Instant::now() < self.next {
            return;
        }
        let Some(chunk) = queue.front() else {
            return;
        };
        match self.write(&chunk.bytes) {
            Ok(()) => {
                self.attempts = 0;
                queue.sent(chunk.number, 0);
            }
            // The disk may have space again later.
            Err(error) => {
                self.attempts = self.attempts.saturating_add(1);
                self.next =
                    Instant::now() + retry::delay(self.attempts, retry::FIRST, retry::chance());
                self.has_given_up = self.is_last;
                queue.failed(message!("{error}"));
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut time = utc(since.map_or(0.0, |since| since.as_secs_f64()));
        // Some systems do not allow colons in file names.
        time.retain(|c| c != ':' && c != '-');
        let path = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = message!("{}-{}-{time}-{number}.pb.gz", self.name, process::id());
            let path = self.path.join(name);
            // The file may exist if this library was unloaded and loaded again, since the numbers then start again.
            if !path.exists() {
                break path;
            }
        };
        save::replace(&path, |out| out.write_all(bytes).map_err(save::failed))
    }

    pub fn hurry(&mut self) {
        self.is_last = true;
        self.next = Instant::now();
    }

    pub fn has_given_up(&self) -> bool {
        self.has_given_up
    }
}
