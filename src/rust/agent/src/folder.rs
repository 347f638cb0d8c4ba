//! Writes each chunk to a file in a folder. A file gets its final name only when it is complete.

use crate::now::Now;
use crate::queue::Queue;
use profile_core::error::Result;
use profile_core::io::save;
use profile_core::message;
use profile_core::retry;
use profile_reader::source::utc;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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
    /// Randomises delays.
    chance: fn() -> f64,
}

impl Folder {
    pub fn new(path: PathBuf, name: String, now: Now) -> Folder {
        Folder {
            path,
            name,
            attempts: 0,
            next: now.instant,
            is_last: false,
            has_given_up: false,
            chance: retry::chance,
        }
    }

    pub fn step(&mut self, queue: &Queue, now: Now) {
        if self.has_given_up || now.instant < self.next {
            return;
        }
        let Some(chunk) = queue.front() else {
            return;
        };
        match self.write(&chunk.bytes, now) {
            Ok(()) => {
                self.attempts = 0;
                queue.sent(chunk.number, 0, now);
            }
            // The disk may have space again later.
            Err(error) => {
                self.attempts = self.attempts.saturating_add(1);
                let delay = retry::delay(self.attempts, retry::FIRST, (self.chance)());
                self.next = now.instant + delay;
                self.has_given_up = self.is_last;
                queue.failed(message!("{error}"), now);
            }
        }
    }

    fn write(&self, bytes: &[u8], now: Now) -> Result<()> {
        let mut time = utc(now.unix().unwrap_or(0.0));
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
        save::replace(&path, None, |out| {
            out.write_all(bytes).map_err(save::failed)
        })
    }

    pub fn hurry(&mut self, now: Now) {
        self.is_last = true;
        self.next = now.instant;
    }

    pub fn has_given_up(&self) -> bool {
        self.has_given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{add_chunk, beginning, checked, last_error, seconds};
    use std::fs;

    /// A path that no other test uses, at which nothing is.
    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("profile-folder-{name}-{}", process::id()))
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_tried_again() {
        let (path, now) = (path("again"), beginning());
        let queue = Queue::new(100);
        let mut folder = Folder::new(path.clone(), "my-api".into(), now);
        folder.chance = || 0.5;
        folder.step(&queue, now);
        add_chunk(&queue, 3, 1, now);
        add_chunk(&queue, 4, 2, now);
        let mut time = 0.0;
        for delay in [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
            folder.step(&queue, now.after(time));
            assert!(
                last_error(&queue).contains("No such file"),
                "{}",
                last_error(&queue)
            );
            assert_eq!(folder.next, now.instant + seconds(time + delay));
            time += delay;
        }
        fs::create_dir(&path).unwrap();
        folder.step(&queue, now.after(time - 0.001));
        assert_eq!(checked(&queue).sent, 0);
        folder.step(&queue, now.after(time));
        folder.step(&queue, now.after(time));
        let counts = checked(&queue);
        assert_eq!(
            (counts.sent, counts.chunks_sent, counts.dropped()),
            (7, 2, 0)
        );
        assert_eq!(counts.last_sent, now.after(time).unix());
        // The delays start again.
        fs::rename(&path, path.with_extension("moved")).unwrap();
        add_chunk(&queue, 5, 3, now);
        folder.step(&queue, now.after(time));
        assert_eq!(folder.next, now.instant + seconds(time + 1.0));
        // The end does not wait for the delay, and is the last attempt.
        assert!(!folder.has_given_up());
        folder.hurry(now.after(time + 0.5));
        assert!(!folder.has_given_up());
        folder.step(&queue, now.after(time + 0.5));
        assert!(folder.has_given_up());
        let moved = path.with_extension("moved");
        fs::rename(&moved, &path).unwrap();
        folder.step(&queue, now.after(time + 1000.0));
        assert_eq!(checked(&queue).sent, 7);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn the_last_attempt_writes_all_chunks() {
        let (path, now) = (path("last"), beginning());
        fs::create_dir(&path).unwrap();
        let queue = Queue::new(100);
        let mut folder = Folder::new(path.clone(), "my-api".into(), now);
        for byte in [1, 2, 3] {
            add_chunk(&queue, 1, byte, now);
        }
        folder.hurry(now);
        for _ in 0..3 {
            folder.step(&queue, now);
        }
        assert!(queue.is_empty() && !folder.has_given_up());
        assert_eq!(checked(&queue).sent, 3);
        let mut files = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>();
        files.sort_by_key(|file| fs::read(file).unwrap());
        assert_eq!(files.len(), 3);
        let start = format!("my-api-{}-19941106T084907Z-", process::id());
        for (file, byte) in files.iter().zip([1, 2, 3]) {
            assert_eq!(fs::read(file).unwrap(), [byte; 10]);
            let name = file.file_name().unwrap().to_str().unwrap();
            let number = name
                .strip_prefix(&start)
                .and_then(|rest| rest.strip_suffix(".pb.gz"));
            number.unwrap().parse::<u64>().unwrap();
        }
        fs::remove_dir_all(&path).unwrap();
    }
}
