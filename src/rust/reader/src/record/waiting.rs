//! What the samples of the real time wait for.
//!
//! A thread that was given no processor since the last tick, and slept at both, is in the same wait: neither this nor its
//! stack is read again. Whether a thread that could run has a processor is found at the tick if it was stopped or belongs
//! to this process. Otherwise it is decided when the wait for a processor has ended, since the kernel counts it then.

use crate::process::Watched;
use crate::recorded::scheduled::{Scheduled, Since};
use crate::recorded::states::State;
use crate::recorded::waits::{Wait, WaitKind};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use std::thread;
use std::time::{Duration, Instant};

/// Other threads are what a thread waits for if they used at least this part of the time.
const PARTS: u128 = 100;
/// How long it is looked whether they compute when a wait has begun.
const MOMENT: Duration = Duration::from_micros(100);
/// The most samples that wait for a decision: more than a wait for a processor has ticks.
const MOST_OPEN: usize = 1000;

/// The waits of a thread.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The wait at the last tick, if the thread slept and its stack was read.
    kept: Option<Wait>,
    /// Samples of which it is not known yet whether the thread had a processor.
    open: Vec<Open>,
    last: Option<Instant>,
    /// The CPU time of the other threads at the last tick, in nanoseconds, and whether they have computed since then.
    others: Option<u64>,
    others_compute: bool,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// Row in the samples.
    sample: usize,
    time: Instant,
}

/// What is known about a thread that was read.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub state: State,
    pub computes: bool,
    pub on_processor: Option<bool>,
}

impl Waiting {
    /// Forgets what was known at the last tick, because the thread is another one, or its samples are complete.
    pub fn forget(&mut self) {
        self.kept = None;
        self.open.clear();
        self.others = None;
    }

    /// Lets the stack be read at the next tick, although the wait is the same.
    pub fn read_again(&mut self) {
        self.kept = None;
    }

    /// A new tick. Returns the samples of which it is known now that they waited for a processor.
    pub fn begin(&mut self, since: Option<Since>, now: Instant) -> Result<Vec<usize>> {
        let last = self.last.replace(now);
        if since.is_none_or(|since| since.was_scheduled) {
            self.kept = None;
        }
        let mut waited = Vec::new();
        let Some(since) = since else {
            self.open.clear();
            return Ok(waited);
        };
        let passed = last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        if since.was_scheduled {
            let known = since.computed.saturating_add(since.delayed);
            for open in self.open.drain(..) {
                let age = now.saturating_duration_since(open.time).as_nanos();
                if since.delayed > since.computed && u128::from(known) >= age {
                    waited.try_push(open.sample)?;
                }
            }
        } else if u128::from(since.computed) * 2 > passed.as_nanos() {
            // It has been on a processor.
            self.open.clear();
        }
        Ok(waited)
    }

    /// Looks whether the other threads of the process compute, if the wait at the last tick was for them.
    pub fn look_at_others(&mut self, thread: &impl Watched, has_others: bool, passed: Duration) {
        if self.kept.as_ref().is_some_and(|wait| wait.is_for_threads) {
            self.compare_others(thread, has_others, passed);
        } else {
            self.others = None;
        }
    }

    /// The same for a wait that has begun: they are read twice.
    pub fn look_at_others_now(&mut self, thread: &impl Watched, has_others: bool) {
        if has_others {
            self.others = thread.others_cpu();
            thread::sleep(MOMENT);
        }
        self.compare_others(thread, has_others, MOMENT);
    }

    fn compare_others(&mut self, thread: &impl Watched, has_others: bool, passed: Duration) {
        let now = if has_others {
            thread.others_cpu()
        } else {
            None
        };
        let before = std::mem::replace(&mut self.others, now);
        self.others_compute = match (before, now) {
            (Some(before), Some(now)) => {
                u128::from(now.saturating_sub(before)) * PARTS >= passed.as_nanos().max(1)
            }
            _ => false,
        };
    }

    /// The wait at the last tick, if the thread is still in it.
    pub fn same(&self, state: State) -> Result<Option<Wait>> {
        match &self.kept {
            Some(wait) if is_asleep(state) => self.with_threads(wait).map(Some),
            _ => Ok(None),
        }
    }

    /// The wait of a thread that sleeps. It is kept if the thread has been in it since the tick.
    pub fn keep(
        &mut self,
        wait: Wait,
        at_tick: Option<Scheduled>,
        now: Option<Scheduled>,
    ) -> Result<Wait> {
        let slices = |scheduled: Option<Scheduled>| scheduled.map(|scheduled| scheduled.slices);
        let is_still = at_tick.is_some() && slices(at_tick) == slices(now);
        let shown = self.with_threads(&wait)?;
        self.kept = is_still.then_some(wait);
        Ok(shown)
    }

    /// What a thread waits for that was read and does not sleep; `None` if it computes, or if that is open: then, this sample
    /// is noted.
    pub fn of(&mut self, seen: Seen, (sample, time): (usize, Instant)) -> Result<Option<Wait>> {
        let kind = match (seen.state, seen.computes, seen.on_processor) {
            (State::Running, true, Some(true)) => return Ok(None),
            (State::Running, true, None) => {
                if self.open.len() < MOST_OPEN {
                    self.open.try_push(Open { sample, time })?;
                }
                return Ok(None);
            }
            (State::Running, ..) => WaitKind::Processor,
            _ => WaitKind::Unknown,
        };
        Ok(Some(Wait::of(kind)))
    }

    /// The wait, for other threads if these compute.
    fn with_threads(&self, wait: &Wait) -> Result<Wait> {
        let mut wait = copy(wait)?;
        if wait.is_for_threads {
            wait.kind = if self.others_compute {
                WaitKind::Threads
            } else {
                WaitKind::Lock
            };
        }
        Ok(wait)
    }
}

/// Whether a thread in this state is in a wait that ends only when it is given a processor.
pub fn is_asleep(state: State) -> bool {
    matches!(state, State::Sleeping | State::WaitsForDevice)
}

fn copy(wait: &Wait) -> Result<Wait> {
    Ok(Wait {
        kind: wait.kind,
        name: wait.name.as_deref().map(owned).transpose()?,
        is_for_threads: wait.is_for_threads,
    })
}
