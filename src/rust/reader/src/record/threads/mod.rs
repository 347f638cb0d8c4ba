//! The CPU time of all threads of a process while it is recorded: of the thread that runs R, of others by the library that
//! has started them, and of those that have ended.
//!
//! [`account`]: what readings add up to; [`names`]: the library of a thread. Threads are read again and again, since nothing
//! is known of one that has ended. The CPU time of the process includes it.

pub mod account;
pub mod names;

use crate::memory::pthreads::pthreads;
use crate::process::{Affinity, Process, ProcessMemory, cpu_time_of_process, quota_of, tasks};
use account::Account;
use names::library_of;
use profile_core::analysis::threads::Threads;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow, owned};
use std::time::{Duration, Instant};

/// The time between two readings is at least this long, and so many times that of one.
const EVERY: Duration = Duration::from_millis(200);
const PAUSES: u32 = 50;

/// The threads of a process.
pub struct ThreadWatch {
    process: Process,
    account: Account,
    affinity: Affinity,
    next: Instant,
}

impl ThreadWatch {
    /// CPU time counts from now on. `r` is the thread that runs R.
    pub fn start(process: &Process, r: i32) -> Result<ThreadWatch> {
        let mut watch = ThreadWatch {
            process: process.clone(),
            account: Account::default(),
            affinity: Affinity::default(),
            next: Instant::now(),
        };
        watch.affinity.add(process.pid);
        watch.read(r)?;
        Ok(watch)
    }

    /// Counts what the process has used before, too.
    pub fn include_start(&mut self) {
        self.account = Account::from_start();
    }

    /// Reads the threads, if it is time for it.
    pub fn look(&mut self, r: i32) -> Result<()> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.read(r)?;
        self.next = now + EVERY.max(now.elapsed() * PAUSES);
        Ok(())
    }

    /// Reads the threads.
    pub fn read(&mut self, r: i32) -> Result<()> {
        // First, so that it does not include what threads use until they are read.
        let total = cpu_time_of_process(self.process.pid);
        let tasks = tasks(self.process.pid)?;
        let (process, affinity) = (&self.process, &mut self.affinity);
        self.account.add(total, &tasks, r, |ids| {
            for id in ids {
                affinity.add(*id);
            }
            libraries_of(process, ids)
        })
    }

    /// Ends a part of the recording. If it is not kept, it belongs to the next one.
    pub fn end(&mut self, is_kept: bool) -> Result<Threads> {
        let mut threads = self.account.end(is_kept)?;
        if !threads.is_r_only() {
            let quota = quota_of(self.process.pid)?;
            let count = self.affinity.count().map(f64::from);
            threads.processors = count.into_iter().chain(quota).reduce(f64::min);
        }
        Ok(threads)
    }
}

/// The name of the library of each of these threads.
fn libraries_of(process: &Process, ids: &[i32]) -> Result<Vec<String>> {
    let parts = process.file_mappings()?;
    let starts = parts.iter().filter(|part| part.offset == 0);
    let mut files = Vec::new();
    for part in starts {
        files.try_push((owned(&part.path)?, part.addresses.start))?;
    }
    let places = parts.into_iter().map(|part| (part.path, part.addresses));
    let places = places.try_vec()?;
    let mut memory = ProcessMemory::new(process.pid);
    let all = pthreads(&mut memory, &files)?;
    let mut names = Vec::new();
    for id in ids {
        let thread = all.iter().find(|thread| thread.id == *id);
        let name = match thread {
            // The first thread of a program whose R runs in another one.
            Some(thread) if thread.routine == 0 => process.program()?,
            Some(thread) => library_of(thread, &mut memory, &files, &places)?,
            None => None,
        };
        names.try_push(name.map_or_else(|| owned(names::UNKNOWN), Ok)?)?;
    }
    Ok(names)
}
