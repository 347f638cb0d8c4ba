//! The spool: a folder with the chunks that wait to be sent. It is the only queue, so a process that is killed loses no
//! chunk.
//!
//! ```text
//! NAME.new ──► NAME.otlp.gz ──► NAME.sending ──► NAME.sent, NAME.sent-REJECTED, NAME.refused
//! written      complete         by a forwarder   for the agent, which counts and removes it
//! ```
//!
//! The forwarder is another process, or R's thread if a function of R gets the chunks. Files are renamed, so each of
//! these steps happens completely or not at all.
//!
//! Agents with the same target share a folder; each one holds a lock for its id. An agent adopts the chunks of agents
//! that have ended: it takes the lock for their id, and counts their samples as found.

use crate::counts::{Moves, Waiting};
use crate::lock::{Lock, Role};
use crate::names::{COMPLETE, Name, has_chunks, name};
use crate::now::Now;
use crate::system;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, SystemTime};

/// What a forwarder last reported: about a chunk, or why it waits to repeat a request.
const REPORT: &str = "report";
const UNAVAILABLE: &str = "unavailable";
const MOST_REPORT: u64 = 4096;
/// How often to try to enter a folder that another process is removing, and the delay.
const TRIES: usize = 40;
const DELAY: Duration = Duration::from_millis(5);

/// A chunk in the folder.
#[derive(Debug)]
struct Chunk {
    name: String,
    samples: u64,
    bytes: u64,
    /// The number of scans that have not found it.
    missed: u8,
}

#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    /// The maximum size of all chunks, in bytes.
    limit: u64,
    lock: Option<Lock>,
    /// The own id, and those of adopted chunks.
    ids: Vec<u64>,
    /// Sorted by name.
    chunks: Vec<Chunk>,
    next: u64,
    reported: Option<SystemTime>,
    /// Whether the forwarder waits to repeat a request.
    pub is_unavailable: bool,
}

fn new_ids() -> Result<Vec<u64>> {
    // Process ids are not unique, since containers may share a folder.
    let mut ids = Vec::new();
    ids.try_push(RandomState::new().hash_one(process::id()) >> 16)?;
    Ok(ids)
}

impl Spool {
    /// Fails if the folder cannot be used, with the reason.
    pub fn open(folder: PathBuf, limit: usize) -> Result<Spool> {
        let mut spool = Spool {
            folder,
            limit: limit as u64,
            lock: None,
            ids: new_ids()?,
            chunks: Vec::new(),
            next: 0,
            reported: None,
            is_unavailable: false,
        };
        spool.enter()?;
        Ok(spool)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn waiting(&self) -> Waiting {
        Waiting {
            chunks: self.chunks.len() as u64,
            samples: self.chunks.iter().map(|chunk| chunk.samples).sum(),
            bytes: self.chunks.iter().map(|chunk| chunk.bytes).sum(),
        }
    }

    /// Takes or keeps the locks of this agent, which keep the folder from being removed. Creates the folder if it is
    /// missing.
    pub fn enter(&mut self) -> Result<&Lock> {
        for attempt in 0..TRIES {
            if attempt == TRIES / 2 {
                // The lock was removed, and another agent has adopted these chunks.
                self.ids = new_ids()?;
            }
            let lock = match self.lock.take() {
                Some(lock) if lock.is_current() => lock,
                old => {
                    // Closed first: closing it later would release the locks of the new one.
                    drop(old);
                    Lock::open(&self.folder)?
                }
            };
            let mut is_in = true;
            for &id in &self.ids {
                is_in &= lock.take(Role::Agent(id))?;
            }
            if is_in && lock.is_current() {
                return Ok(self.lock.insert(lock));
            }
            thread::sleep(DELAY);
        }
        Err(self.failed(ErrorKind::ResourceBusy.into()))
    }

    /// Adds a chunk, and drops the oldest chunks if there is no room.
    pub fn put(&mut self, bytes: &[u8], samples: u64, now: Now) -> Result<Moves> {
        self.enter()?;
        let (id, next) = (self.ids.first().copied().unwrap_or(0), self.next);
        self.next += 1;
        let name = name(now, id, next, samples);
        let new = self.path(&name, "new");
        if let Err(error) = self.write(&new, &name, bytes) {
            let _ = fs::remove_file(new);
            return Err(self.failed(error));
        }
        self.add(&name, samples, bytes.len() as u64)?;
        let mut moves = Moves::default();
        if self.waiting().bytes > self.limit {
            // Some chunks may have been sent.
            moves = self.scan().unwrap_or_default();
        }
        while self.waiting().bytes > self.limit {
            let Some(oldest) = self.droppable() else {
                break;
            };
            moves.full += self.chunks.remove(oldest).samples;
        }
        Ok(moves)
    }

    fn write(&self, new: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = system::create_private(new)?;
        file.write_all(bytes)?;
        fs::rename(new, self.path(name, COMPLETE))
    }

    /// Removes the oldest file that nobody is sending, and returns its row.
    fn droppable(&self) -> Option<usize> {
        let mut chunks = self.chunks.iter();
        chunks.position(|chunk| fs::remove_file(self.path(&chunk.name, COMPLETE)).is_ok())
    }

    fn add(&mut self, name: &str, samples: u64, bytes: u64) -> Result<()> {
        let row = self
            .chunks
            .partition_point(|chunk| chunk.name.as_str() < name);
        self.chunks.try_push(Chunk {
            name: owned(name)?,
            samples,
            bytes,
            missed: 0,
        })?;
        if let Some(rest) = self.chunks.get_mut(row..) {
            rest.rotate_right(1);
        }
        Ok(())
    }

    // ---- Changes by others -------------------------------------------------------

    /// Compares the folder with what is known of it: counts what a forwarder has sent, and adopts chunks of agents that
    /// have ended.
    pub fn scan(&mut self) -> Result<Moves> {
        self.enter()?;
        let mut moves = Moves::default();
        let entries = fs::read_dir(&self.folder).map_err(|error| self.failed(error))?;
        for chunk in &mut self.chunks {
            chunk.missed = chunk.missed.saturating_add(1);
        }
        self.is_unavailable = false;
        for entry in entries.flatten() {
            let file = entry.file_name();
            let file = file.to_str().unwrap_or_default();
            if [REPORT, UNAVAILABLE].contains(&file) {
                self.is_unavailable |= file == UNAVAILABLE;
                moves.why = self.report(&entry).or(moves.why);
            }
            if let Some(name) = Name::parse(file).filter(|name| self.owns(name.id)) {
                self.see(&name, &entry, &mut moves);
            }
        }
        // A file that is renamed during the scan may not be found by it.
        while let Some(row) = self.chunks.iter().position(|chunk| chunk.missed > 1) {
            moves.lost += self.chunks.remove(row).samples;
        }
        Ok(moves)
    }

    /// Whether chunks with this id are of this agent. The lock of an agent that has ended is free.
    fn owns(&mut self, id: u64) -> bool {
        if self.ids.contains(&id) {
            return true;
        }
        let lock = self.lock.as_ref();
        lock.is_some_and(|lock| lock.take(Role::Agent(id)).unwrap_or(false))
            && self.ids.try_push(id).is_ok()
    }

    fn see(&mut self, name: &Name, entry: &fs::DirEntry, moves: &mut Moves) {
        let known = self
            .chunks
            .iter()
            .position(|chunk| chunk.name == name.chunk);
        if name.is_chunk() {
            match known.and_then(|row| self.chunks.get_mut(row)) {
                Some(chunk) => chunk.missed = 0,
                None => {
                    let bytes = entry.metadata().map_or(0, |about| about.len());
                    if self.add(name.chunk, name.samples, bytes).is_ok() {
                        moves.found += name.samples;
                    }
                }
            }
            return;
        }
        let (outcome, rejected) = match name.extension.split_once('-') {
            Some((outcome, rejected)) => (outcome, rejected.parse().unwrap_or(0)),
            None => (name.extension, 0),
        };
        // A file that an agent has not completed, before it ended, is removed as well.
        let is_known = ["sent", "refused", "new"].contains(&outcome);
        if !is_known || fs::remove_file(entry.path()).is_err() || outcome == "new" {
            return;
        }
        match known {
            Some(row) => drop(self.chunks.remove(row)),
            None => moves.found += name.samples,
        }
        match outcome {
            "sent" => {
                moves.sent += name.samples;
                moves.chunks_sent += 1;
                moves.rejected += rejected;
            }
            _ => moves.refused += name.samples,
        }
    }

    /// What the forwarder has reported since the last scan.
    fn report(&mut self, entry: &fs::DirEntry) -> Option<String> {
        let changed = entry.metadata().and_then(|about| about.modified()).ok();
        if changed <= self.reported {
            return None;
        }
        self.reported = changed;
        let bytes = read(&entry.path(), MOST_REPORT).ok()?.ok()?;
        String::from_utf8(bytes).ok()
    }

    // ---- The end -----------------------------------------------------------------

    /// Removes all chunks, since nobody will send them. Returns the number of their samples.
    pub fn clear(&mut self) -> u64 {
        let samples = self.waiting().samples;
        for chunk in std::mem::take(&mut self.chunks) {
            let _ = fs::remove_file(self.path(&chunk.name, COMPLETE));
        }
        samples
    }

    /// Leaves the folder, and removes it if it has no chunks and no other user. Chunks that remain are sent by the next
    /// agent with this target.
    pub fn leave(&mut self) {
        if let Some(lock) = self.lock.take() {
            let _ = lock.remove(has_chunks);
        }
    }

    fn path(&self, chunk: &str, extension: &str) -> PathBuf {
        self.folder.join(message!("{chunk}.{extension}"))
    }

    fn failed(&self, source: io::Error) -> Error {
        let path = self.folder.clone();
        Error::Write { path, source }
    }
}

/// The first bytes of a file, at most `most`.
pub fn read(path: &Path, most: u64) -> io::Result<Result<Vec<u8>>> {
    let mut file = File::open(path)?.take(most);
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let added = match file.read(&mut buffer)? {
            0 => return Ok(Ok(bytes)),
            count => bytes.try_extend(buffer.get(..count).unwrap_or_default()),
        };
        if let Err(error) = added {
            return Ok(Err(error));
        }
    }
}

#[cfg(test)]
mod tests;
