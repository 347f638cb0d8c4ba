//! Writes each chunk to a file in a folder. A file gets its final name only when it is complete.

use crate::counts::Moves;
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
    /// Writes a chunk, which is thereby sent.
    pub fn put(&self, bytes: &[u8], sent: u64, now: Now) -> Result<Moves> {
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
        })?;
        Ok(Moves {
            sent,
            chunks_sent: 1,
            ..Moves::default()
        })
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;
    use crate::script::{add_chunk, beginning, checked, last_error, temporary};
    use crate::state::{State, Store};
    use std::fs;

    #[test]
    fn each_chunk_is_a_file_and_one_that_cannot_be_written_is_lost() {
        let (path, now) = (temporary(), beginning());
        let name = "my-api".to_owned();
        let state = State::new(Store::Folder(Folder {
            path: path.clone(),
            name,
        }));
        add_chunk(&state, 3, 1, now);
        let error = last_error(&state);
        assert!(error.contains("No such file"), "{error}");
        let counts = checked(&state);
        assert_eq!((counts.moves.lost, counts.moves.sent), (3, 0));
        fs::create_dir(&path).unwrap();
        for byte in [1, 2, 3] {
            add_chunk(&state, 1, byte, now);
        }
        let counts = checked(&state);
        assert_eq!((counts.moves.sent, counts.moves.chunks_sent), (3, 3));
        assert_eq!(counts.last_sent, now.unix());
        assert!(state.is_empty());
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
