//! Notes which R processes belong to another one while it is recorded alone, and how much CPU time they use. They are not
//! stopped, and the memory of R in them is not read. Notes the CPU time of the threads of the recorded process, too.

use crate::process::{Process, calling_thread, cpu_time_of_process, prepare_thread};
use crate::record::family::Family;
use crate::record::memory::MemoryWatch;
use crate::record::threads::ThreadWatch;
use crate::recorded::memory::{End, OfAlone};
use profile_core::analysis::threads::Threads;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::limits::thread::refused;
use profile_core::message;
use profile_core::model::{Profile, Source, SourceId};
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

/// What the thread has seen.
pub struct Looked {
    processes: Vec<Seen>,
    /// The memory of the recorded process, and when that began.
    memory: MemoryWatch,
    source: SourceId,
    begin: Instant,
    threads: Threads,
}

/// The thread that looks.
pub struct Lookout {
    /// The process that has the thread.
    home: u32,
    /// It ends when this is dropped.
    end: Sender<()>,
    thread: JoinHandle<Result<Looked>>,
}

impl Lookout {
    /// Looks out for processes that belong to this one.
    pub fn start(pid: i32) -> Result<Lookout> {
        let of = Process::find(pid)?;
        let is_own = u32::try_from(pid) == Ok(process::id());
        let r = if is_own { calling_thread() } else { pid };
        let mut threads = ThreadWatch::start(&of, r)?;
        let (end, ended) = channel();
        let look_out = move || {
            prepare_thread();
            let mut seen = [Seen::of(of.clone(), false)].into_iter().try_vec()?;
            let mut family = Family::default();
            let mut is_first = true;
            let source = Profile::default().add_source(Source::default())?;
            let mut memory = MemoryWatch::default();
            memory.add(&of, source)?;
            let begin = Instant::now();
            while of.state().is_some() {
                look(&of, &mut family, &mut seen, is_first)?;
                is_first = false;
                memory.look(&|| begin.elapsed());
                threads.look(r)?;
                if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    look(&of, &mut family, &mut seen, false)?;
                    memory.look(&|| begin.elapsed());
                    break;
                }
            }
            // As long as its parent has not asked how it has ended, the system knows the CPU time of a process.
            threads.read(r)?;
            Ok(Looked {
                processes: seen,
                memory,
                source,
                begin,
                threads: threads.end(true)?,
            })
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

    /// Looks for the last time.
    pub fn end(self) -> Result<Looked> {
        drop(self.end);
        let panicked =
            |_| Error::Process(message!("The thread that looks for processes has failed."));
        self.thread.join().map_err(panicked)?
    }
}

impl Looked {
    /// What was seen. `end` is how the recorded process has ended, if it has.
    pub fn result(mut self, end: Option<End>) -> Result<OfAlone> {
        if let Some(end) = end {
            self.memory.end_as(self.source, end, self.begin.elapsed());
        }
        let of = self.memory.processes().next();
        Ok(OfAlone {
            cpu: self.processes.iter().map(Seen::used).try_vec()?,
            peak: of.map(|of| of.peak),
            ending: of.and_then(|of| of.ending),
            threads: self.threads,
        })
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
