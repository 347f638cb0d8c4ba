//! Adds up readings of the CPU time of threads. Nothing is lost: what a reading of the process has, and none of its threads,
//! was used by threads that have ended since the last one.

use super::names::OWN;
use crate::process::Task;
use profile_core::analysis::threads::{OfLibrary, Threads};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};

/// The kernel updates the CPU time of a thread that runs at its own ticks, of which there are at least 100 in a second: for
/// each thread, so many nanoseconds may be missing.
const TICK: u64 = 10_000_000;

#[derive(Debug, Default)]
pub struct Account {
    /// At the last reading, by their IDs.
    threads: Vec<Known>,
    /// The CPU time of the process at the last reading.
    total: Option<u64>,
    /// Whether there was a reading.
    is_begun: bool,
    libraries: Vec<Library>,
    /// Of this part: of the thread that ran R, and of the process beyond that of the threads that were read.
    r: u64,
    rest: i64,
}

/// A thread that was read.
#[derive(Debug, Clone, Copy)]
struct Known {
    id: i32,
    cpu: u64,
    /// The row of its library, once it has used CPU time.
    library: Option<usize>,
    /// Whether it has used some in this part.
    has_worked: bool,
}

#[derive(Debug)]
struct Library {
    name: String,
    cpu: u64,
    /// The highest number of threads at one reading.
    most: u64,
}

impl Account {
    /// All CPU time of a process counts, also that of before the first reading.
    pub fn from_start() -> Account {
        Account {
            total: Some(0),
            is_begun: true,
            ..Account::default()
        }
    }

    /// Adds a reading: the CPU time of the process, if it is known, and its threads, by their IDs. `r` is the thread that runs
    /// R; `name` returns the libraries of threads. Without threads, the process has ended, and nothing is known.
    pub fn add(
        &mut self,
        total: Option<u64>,
        tasks: &[Task],
        r: i32,
        name: impl FnOnce(&[i32]) -> Result<Vec<String>>,
    ) -> Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let mut now = Vec::new();
        let (mut used, mut unnamed) = (Vec::new(), Vec::new());
        let mut seen = 0;
        for &Task { id, cpu } in tasks {
            let known = self.threads.binary_search_by_key(&id, |known| known.id);
            let known = known.ok().map(|row| self.threads[row]);
            // Another thread may have got the ID.
            let known = known.filter(|known| known.cpu <= cpu);
            let before = known.map_or(0, |known| known.cpu);
            let delta = if self.is_begun { cpu - before } else { 0 };
            seen += delta;
            let mut known = known.unwrap_or(Known {
                id,
                cpu,
                library: None,
                has_worked: false,
            });
            known.cpu = cpu;
            if id == r {
                self.r += delta;
                known.has_worked = false;
            } else if delta > 0 {
                known.has_worked = true;
                used.try_push((now.len(), delta))?;
                if known.library.is_none() {
                    unnamed.try_push(id)?;
                }
            }
            now.try_push(known)?;
        }
        self.threads = now;
        if !unnamed.is_empty() {
            let names = name(&unnamed)?;
            for (id, name) in unnamed.iter().zip(&names) {
                let library = self.library(name)?;
                let mut threads = self.threads.iter_mut();
                if let Some(known) = threads.find(|known| known.id == *id) {
                    known.library = Some(library);
                }
            }
        }
        for (row, delta) in used {
            let library = self.threads[row].library;
            if let Some(library) = library.and_then(|row| self.libraries.get_mut(row)) {
                library.cpu += delta;
            }
        }
        for (row, library) in self.libraries.iter_mut().enumerate() {
            let is_of = |known: &&Known| known.has_worked && known.library == Some(row);
            let count = self.threads.iter().filter(is_of).count() as u64;
            library.most = library.most.max(count);
        }
        if let (Some(before), Some(total), true) = (self.total, total, self.is_begun) {
            self.rest += total.saturating_sub(before) as i64 - seen as i64;
        }
        self.total = total;
        self.is_begun = true;
        Ok(())
    }

    fn library(&mut self, name: &str) -> Result<usize> {
        let known = self.libraries.iter().position(|one| one.name == name);
        if let Some(known) = known {
            return Ok(known);
        }
        self.libraries.try_push(Library {
            name: owned(name)?,
            cpu: 0,
            most: 0,
        })?;
        Ok(self.libraries.len() - 1)
    }

    /// Ends a part. If it is not kept, it belongs to the next one. Threads of this package are left out.
    pub fn end(&mut self, is_kept: bool) -> Result<Threads> {
        let mut others = Vec::new();
        for library in &self.libraries {
            if library.cpu > 0 && library.name != OWN {
                others.try_push(OfLibrary {
                    name: owned(&library.name)?,
                    count: library.most as f64,
                    cpu: library.cpu as f64,
                })?;
            }
        }
        let least = TICK * (1 + self.threads.len() as u64);
        let rest = u64::try_from(self.rest).unwrap_or(0);
        let ended = if rest > least { rest } else { 0 };
        let threads = Threads {
            r: self.r as f64,
            others,
            ended: ended as f64,
            processors: None,
        };
        if is_kept {
            self.r = 0;
            self.rest -= ended as i64;
            for library in &mut self.libraries {
                (library.cpu, library.most) = (0, 0);
            }
            for known in &mut self.threads {
                known.has_worked = false;
            }
        }
        Ok(threads)
    }
}

#[cfg(test)]
mod tests;
