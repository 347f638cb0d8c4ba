//! Notes which R processes belong to another one while it is recorded alone, and how much CPU time they use. They are not
//! stopped, and their memory is not read.

use crate::process::{Process, cpu_time_of_process, prepare_thread};
use crate::record::family::Family;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::limits::thread::refused;
use profile_core::message;
use std::process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two looks.
const EVERY: Duration = Duration::from_millis(250);

/// The recorded process, or one that belongs to it.
#[derive(Debug)]
struct Seen {
    process: Process,
    /// Its CPU time when it was first seen, or 0 if it started later than the lookout, and when it was last seen, in
    /// nanoseconds.
    first: u64,
    last: u64,
}

impl Seen {
    fn of(process: Process, is_new: bool) -> Seen {
        let now = cpu_time_of_process(process.pid).unwrap_or(0);
        Seen {
            process,
            first: if is_new { 0 } else { now },
            last: now,
        }
    }

    /// The CPU time that it has used meanwhile, in nanoseconds.
    fn used(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }
}

/// The thread that looks.
pub struct Lookout {
    /// The process that has the thread.
    home: u32,
    /// It ends when this is dropped.
    end: Sender<()>,
    thread: JoinHandle<Result<Vec<Seen>>>,
}

impl Lookout {
    /// Looks out for processes that belong to this one.
    pub fn start(pid: i32) -> Result<Lookout> {
        let of = Process::find(pid)?;
        let (end, ended) = channel();
        let look_out = move || {
            prepare_thread();
            let mut seen = [Seen::of(of.clone(), false)].into_iter().try_vec()?;
            let mut family = Family::default();
            let mut is_first = true;
            while of.state().is_some() {
                look(&of, &mut family, &mut seen, is_first)?;
                is_first = false;
                if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    look(&of, &mut family, &mut seen, false)?;
                    break;
                }
            }
            Ok(seen)
        };
        let thread = Builder::new().spawn(look_out).map_err(refused)?;
        Ok(Lookout {
            home: process::id(),
            end,
            thread,
        })
    }

    /// Whether the thread runs in this process, and not in its parent, of which this is a fork.
    pub fn is_here(&self) -> bool {
        self.home == process::id()
    }

    /// Ends, and returns the CPU time that each process that was seen has used meanwhile, in nanoseconds; the recorded one is
    /// the first.
    pub fn end(self) -> Result<Vec<u64>> {
        drop(self.end);
        let panicked =
            |_| Error::Process(message!("The thread that looks for processes has failed."));
        let seen = self.thread.join().map_err(panicked)??;
        seen.iter().map(Seen::used).try_vec()
    }
}

fn look(of: &Process, family: &mut Family, seen: &mut Vec<Seen>, is_first: bool) -> Result<()> {
    for (process, role) in family.find([of.clone()].into_iter().try_vec()?, Instant::now())? {
        if !process.has_r() {
            continue;
        }
        family.admit(process.clone(), role)?;
        match seen.iter_mut().find(|one| one.process.is_same_as(&process)) {
            // It has executed R again.
            Some(one) => one.process = process,
            None => seen.try_push(Seen::of(process, !is_first))?,
        }
    }
    for one in seen {
        if one.process.state().is_some() {
            one.last = cpu_time_of_process(one.process.pid).unwrap_or(one.last);
        }
    }
    Ok(())
}
