//! The bill of parallel work: what became of the time that workers could have worked.
//!
//! A recording looks at each process at each tick, and notes where it is and whether it computes: an [`At`]. With `W`, the
//! largest number of workers that were alive at once, there are `W` slots. At each tick, each slot has exactly one class, so
//! that the parts of a bill add up to `W` times the ticks by construction. The first that applies:
//!
//! 1. the worker is in the user's task: it works, waits for a processor, or waits;
//! 2. it transfers data, and can run;
//! 3. it starts;
//! 4. otherwise, or if the slot has no worker, the master decides: it transfers or starts, works alone, waits while another
//!    worker is in a task, or just waits.
//!
//! - [`places`]: where a process is, by the functions of its stack.

pub mod places;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow};
use std::ops::Range;

/// Where a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// In the user's task.
    Task,
    /// It sends or receives data.
    Transfer,
    /// R, a package, or workers are started.
    Starting,
    #[default]
    Other,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Doing {
    Computes,
    /// It could run, but has no processor.
    Delayed,
    #[default]
    Waits,
}

/// A process at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    pub place: Place,
    pub doing: Doing,
}

const PLACES: [Place; 4] = [Place::Task, Place::Transfer, Place::Starting, Place::Other];
const DOING: [Doing; 3] = [Doing::Computes, Doing::Delayed, Doing::Waits];

impl At {
    /// As a number.
    pub fn code(self) -> u8 {
        self.place as u8 * 3 + self.doing as u8
    }

    pub fn of_code(code: u8) -> Option<At> {
        Some(At {
            place: *PLACES.get(usize::from(code / 3))?,
            doing: *DOING.get(usize::from(code % 3))?,
        })
    }

    fn can_run(self) -> bool {
        self.doing != Doing::Waits
    }
}

/// A process at all ticks of its recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Track {
    /// The number of ticks before.
    pub first: usize,
    /// Equal ones that follow each other, and their number.
    pub runs: Vec<(At, u32)>,
}

impl Track {
    pub fn new(first: usize) -> Track {
        Track {
            first,
            runs: Vec::new(),
        }
    }

    /// Adds a tick.
    pub fn push(&mut self, at: At) -> Result<()> {
        match self.runs.last_mut() {
            Some((last, ticks)) if *last == at && *ticks < u32::MAX => *ticks += 1,
            _ => self.runs.try_push((at, 1))?,
        }
        Ok(())
    }

    /// Whether it did more than start. A process that has not is no worker, such as one that only looks for R.
    fn has_started(&self) -> bool {
        self.runs.iter().any(|(at, _)| at.place != Place::Starting)
    }

    /// The ticks at which it was recorded.
    fn range(&self) -> Range<usize> {
        let ticks: usize = self.runs.iter().map(|(_, ticks)| *ticks as usize).sum();
        self.first..self.first.saturating_add(ticks)
    }

    /// What it did from a tick on, at one tick after the other.
    fn from(&self, tick: usize) -> Steps<'_> {
        let mut steps = Steps {
            before: self.first.saturating_sub(tick),
            runs: self.runs.iter(),
            at: None,
            left: 0,
        };
        for _ in 0..tick.saturating_sub(self.first) {
            steps.next();
        }
        steps
    }
}

struct Steps<'t> {
    /// The ticks until it begins.
    before: usize,
    runs: std::slice::Iter<'t, (At, u32)>,
    /// The current run, and how many of its ticks are left.
    at: Option<At>,
    left: u32,
}

impl Steps<'_> {
    /// `None` before the first tick of the process, and after its last one.
    fn next(&mut self) -> Option<At> {
        if self.before > 0 {
            self.before -= 1;
            return None;
        }
        if self.left == 0 {
            let run = self.runs.next();
            self.at = run.map(|(at, _)| *at);
            self.left = run.map_or(1, |(_, ticks)| *ticks);
        }
        self.left -= 1;
        self.at
    }
}

/// What a slot did at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The worker computed in a task.
    Work,
    /// In a task, it waited for a processor.
    Processor,
    /// In a task, it waited for something else.
    TaskWaits,
    Transfer,
    Starting,
    /// The master computed alone.
    Serial,
    /// Another worker was in a task.
    Others,
    /// The master waited, and no worker was in a task.
    MasterWaits,
}

impl Class {
    pub const ALL: [Class; 8] = [
        Class::Work,
        Class::Processor,
        Class::TaskWaits,
        Class::Transfer,
        Class::Starting,
        Class::Serial,
        Class::Others,
        Class::MasterWaits,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Class::Work => "work",
            Class::Processor => "processor",
            Class::TaskWaits => "task_waits",
            Class::Transfer => "transfer",
            Class::Starting => "starting",
            Class::Serial => "serial",
            Class::Others => "others",
            Class::MasterWaits => "master_waits",
        }
    }

    /// The class of a slot, given its worker, the master, and whether another worker is in a task.
    fn of(worker: Option<At>, master: At, others_work: bool) -> Class {
        match worker {
            Some(At {
                place: Place::Task,
                doing,
            }) => match doing {
                Doing::Computes => Class::Work,
                Doing::Delayed => Class::Processor,
                Doing::Waits => Class::TaskWaits,
            },
            Some(at) if at.place == Place::Transfer && at.can_run() => Class::Transfer,
            Some(at) if at.place == Place::Starting => Class::Starting,
            _ => match master.place {
                Place::Transfer if master.can_run() => Class::Transfer,
                Place::Starting => Class::Starting,
                _ if master.can_run() => Class::Serial,
                _ if others_work => Class::Others,
                _ => Class::MasterWaits,
            },
        }
    }
}

/// The ticks of each class.
pub type Counts = [u64; Class::ALL.len()];

#[derive(Debug, PartialEq, Eq)]
pub struct Bill {
    /// The number of slots.
    pub slots: usize,
    /// The number of ticks.
    pub ticks: usize,
    /// By worker.
    pub workers: Vec<Counts>,
    /// The slots that had no worker.
    pub empty: Counts,
}

/// The bill of these workers, for those of the ticks at which their master was recorded. `None` if there are no workers.
pub fn bill(master: &Track, workers: &[Track], ticks: Range<usize>) -> Result<Option<Bill>> {
    let range = master.range();
    let ticks = ticks.start.max(range.start)..ticks.end.min(range.end);
    let start = ticks.start;
    let none = Track::default();
    let steps = || {
        let tracks = workers.iter();
        let tracks = tracks.map(|track| if track.has_started() { track } else { &none });
        tracks.map(|track| track.from(start)).try_vec()
    };
    // What the workers do at the next tick.
    let mut now: Vec<Option<At>> = workers.iter().map(|_| None).try_vec()?;
    let alive = |now: &[Option<At>]| now.iter().flatten().count();
    let mut slots = 0;
    let mut all = steps()?;
    for _ in ticks.clone() {
        advance(&mut all, &mut now);
        slots = slots.max(alive(&now));
    }
    if slots == 0 {
        return Ok(None);
    }
    let mut bill = Bill {
        slots,
        ticks: ticks.len(),
        workers: workers.iter().map(|_| Counts::default()).try_vec()?,
        empty: Counts::default(),
    };
    let (mut all, mut of_master) = (steps()?, master.from(start));
    for _ in ticks {
        advance(&mut all, &mut now);
        let master = of_master.next().unwrap_or_default();
        let mut at = now.iter().flatten();
        // A worker that is in a task itself has a class of its own.
        let others_work = at.any(|at| at.place == Place::Task);
        for (at, counts) in now.iter().zip(&mut bill.workers) {
            if at.is_some() {
                count(counts, Class::of(*at, master, others_work), 1);
            }
        }
        let empty = slots - alive(&now);
        let class = Class::of(None, master, others_work);
        count(&mut bill.empty, class, empty as u64);
    }
    Ok(Some(bill))
}

fn advance(all: &mut [Steps], now: &mut [Option<At>]) {
    for (steps, now) in all.iter_mut().zip(now) {
        *now = steps.next();
    }
}

fn count(counts: &mut Counts, class: Class, slots: u64) {
    if let Some(count) = counts.get_mut(class as usize) {
        *count += slots;
    }
}
