//! How often a snapshot is tried of a process that is stopped, or of which an image is made, for each attempt.
//!
//! An attempt fails if R is just collecting garbage or changing its lists of objects, and its snapshot has wrong references
//! if R is changing objects. A moment later it is doing something else. What is damaged remains as it is, however: another
//! attempt would only stop the process again. So what two attempts have in common ends them, and so does time.

use super::snapshot::Snapshot;
use super::wrong::Wrong;
use crate::recorded::source::add_numbers_to_all;
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::{self, Stop};
use profile_core::message;
use std::time::Duration;

/// A process, and the clock.
pub trait Subject {
    /// Takes a snapshot; `None` if R is just collecting garbage, unless that `may_collect`. Also returns how long the process
    /// was stopped for it; `None` if it could not be stopped.
    fn attempt(&mut self, may_collect: bool) -> (Option<Duration>, Result<Option<Snapshot>>);

    /// Whether the process still exists.
    fn exists(&self) -> bool;

    /// The time since a moment before the first attempt.
    fn now(&self) -> Duration;

    fn wait(&mut self, pause: Duration);
}

/// The limits of all attempts together.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long the process is stopped, except if one attempt takes longer.
    pub stopped: Duration,
    /// The time after which no attempt begins.
    pub time: Duration,
    pub attempts: usize,
}

pub const LIMITS: Limits = Limits {
    stopped: Duration::from_secs(1),
    time: Duration::from_secs(5),
    attempts: 500,
};

/// The times between two attempts. They differ, so that R is not found in the same state again and again.
pub const PAUSES: [Duration; 5] = [
    Duration::from_millis(1),
    Duration::from_millis(7),
    Duration::from_millis(3),
    Duration::from_millis(23),
    Duration::from_millis(11),
];

/// The number of attempts in a row after which the same error is expected again. Some errors name only a list, of which
/// different parts may have been changed.
const SAME_ERRORS: usize = 5;

/// Takes a snapshot: the first one without wrong references, or else the one with the fewest. Also returns how long the process
/// was stopped for all attempts.
pub fn best(
    subject: &mut impl Subject,
    limits: &Limits,
    stop: Stop,
) -> Result<(Snapshot, Duration)> {
    let mut tries = Tries::default();
    for pause in PAUSES.into_iter().cycle().take(limits.attempts) {
        cancel::check(stop)?;
        let is_decided = tries.step(subject, false)?;
        if is_decided || !tries.has_time(limits, subject.now().saturating_add(pause)) {
            break;
        }
        subject.wait(pause);
    }
    if tries.best.is_none() && tries.has_collected {
        // What R has taken out of its lists is missing, which is better than nothing.
        cancel::check(stop)?;
        tries.step(subject, true)?;
    }
    tries.end()
}

/// The attempts so far.
#[derive(Default)]
struct Tries {
    count: usize,
    stops: u64,
    stopped: Duration,
    /// The longest stop.
    longest: Duration,
    best: Option<Snapshot>,
    /// The wrong references of the last snapshot.
    wrong: Option<Wrong>,
    /// Whether R was collecting garbage in an attempt.
    has_collected: bool,
    /// The last error, and the number of times that it was the same.
    error: Option<Error>,
    same: usize,
}

impl Tries {
    /// An attempt. Returns whether another one is of no use.
    fn step(&mut self, subject: &mut impl Subject, may_collect: bool) -> Result<bool> {
        let (stopped, taken) = subject.attempt(may_collect);
        self.count += 1;
        if let Some(stopped) = stopped {
            self.stops += 1;
            self.stopped = self.stopped.saturating_add(stopped);
            self.longest = self.longest.max(stopped);
        }
        match taken {
            Ok(Some(snapshot)) => Ok(self.add(snapshot)),
            Ok(None) => {
                self.has_collected = true;
                Ok(false)
            }
            Err(error @ Error::Process(_)) if subject.exists() => {
                let is_same = self
                    .error
                    .as_ref()
                    .is_some_and(|last| is_same(last, &error));
                self.same = if is_same { self.same + 1 } else { 1 };
                self.error = Some(error);
                // What prevents a stop, such as another profiler, may end at any time.
                Ok(stopped.is_some() && self.same >= SAME_ERRORS)
            }
            // A snapshot with wrong references is better than none.
            Err(_) if self.best.is_some() => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, mut snapshot: Snapshot) -> bool {
        let mut wrong = std::mem::take(&mut snapshot.wrong);
        wrong.sort();
        let earlier = self.wrong.as_ref();
        let is_last = wrong.count == 0 || earlier.is_some_and(|earlier| wrong.are_in(earlier));
        let best = self.best.as_ref().map(|best| best.heap.wrong);
        if best.is_none_or(|best| wrong.count <= best) {
            self.best = Some(snapshot);
        }
        self.wrong = Some(wrong);
        is_last
    }

    /// Whether there is time for another attempt, which would begin at this time. While there is no snapshot, half of the
    /// time is kept for one that is taken whatever R does.
    fn has_time(&self, limits: &Limits, begin: Duration) -> bool {
        let most = match self.best {
            Some(_) => limits.stopped,
            None => limits.stopped / 2,
        };
        begin < limits.time && self.stopped.saturating_add(self.longest) <= most
    }

    fn end(self) -> Result<(Snapshot, Duration)> {
        let Some(mut best) = self.best else {
            return Err(self.error.unwrap_or_else(|| {
                Error::Process(message!(
                    "R was collecting garbage during each of {} attempts to take a snapshot.",
                    self.count
                ))
            }));
        };
        let stopped = u64::try_from(self.stopped.as_nanos()).unwrap_or(u64::MAX);
        let numbers = [
            ("profile.pauses", self.stops),
            ("profile.pauses.total", stopped),
        ];
        add_numbers_to_all(&mut best.profile, &numbers)?;
        Ok((best, self.stopped))
    }
}

fn is_same(one: &Error, other: &Error) -> bool {
    matches!((one, other), (Error::Process(one), Error::Process(other)) if one == other)
}
