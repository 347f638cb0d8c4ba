//! What is returned about processes: a profile of them with what is missing in it, and lists.

use crate::recorded::memory::Ending;
use crate::recorded::states::{State, WhyFree};
use crate::stack::frames::Cut;
use profile_core::analysis::parallel::Track;
use profile_core::error::{Position, Result};
use profile_core::formats::problems::{ProblemKind, Problems};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_core::model::{Profile, SourceId};
use std::time::Duration;

/// What happened at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// There is no sample, because the process does not compute.
    Idle,
    Taken {
        /// Why outer calls are missing.
        cut: Option<Cut>,
        /// Why the process was not kept where it was.
        free: Option<WhyFree>,
    },
    /// The stack could not be read, see `Session::why_missing()`.
    Unread,
    /// The process has ended.
    Ended,
    /// The process runs another program.
    Left,
}

/// A reading of the CPU clock of a process: the time, in nanoseconds since 1970, and the CPU time, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    pub date: i64,
    pub cpu: u64,
}

/// R processes that belong together.
#[derive(Debug, Default)]
pub struct Members {
    pub pids: Vec<i32>,
    /// The role of each in words.
    pub roles: Vec<Option<String>>,
    /// The number of processes that are missing, since there are too many.
    pub left_out: usize,
}

/// A process that runs R.
#[derive(Debug)]
pub struct Listed {
    pub pid: i32,
    /// The state of the thread that runs R, and its CPU time in nanoseconds.
    pub state: Option<State>,
    pub cpu_time: Option<u64>,
    /// When it started, in seconds since 1970.
    pub start: Option<f64>,
    pub script: Option<String>,
    pub command: String,
}

/// A process that has not ended as usual, and its role, empty if it has none.
#[derive(Debug)]
pub struct Ended {
    pub pid: i32,
    pub role: String,
    pub ending: Ending,
}

/// What a process did for parallel work.
#[derive(Debug)]
pub struct OfProcess {
    pub source: SourceId,
    /// The process to which it belongs; 0 if it belongs to none.
    pub master: i32,
    pub track: Track,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Recorded {
    pub profile: Profile,
    /// The number of samples that could not be read.
    pub unread: usize,
    /// The number of samples that were read while the process went on, because another process traces it.
    pub traced: usize,
    /// The number of samples that were read while the process went on, because the system does not permit to stop it; and
    /// why for the first one.
    pub unstopped: usize,
    pub why_unstopped: Option<String>,
    /// How long processes were stopped, each time, in nanoseconds.
    pub pauses: Vec<u32>,
    /// Problems of stacks.
    pub problems: Problems,
    /// Processes that ended during the recording.
    pub ended: Vec<i32>,
    /// Processes that executed a program other than R during the recording, and its name, empty if unknown.
    pub left: Vec<(i32, String)>,
    /// Sources that are no more than the start of a program.
    pub starts: Vec<SourceId>,
    /// Whether the user ended the recording.
    pub was_stopped: bool,
    /// R processes that were not recorded, since there were too many, and their roles.
    pub left_out: Vec<(i32, String)>,
    /// R processes into which this one may not look, their roles, and why.
    pub refused: Vec<(i32, String, String)>,
    /// Processes that have not ended as usual.
    pub endings: Vec<Ended>,
    /// Readings of the clock of the process that asked for the recording.
    pub readings: Vec<ClockReading>,
    /// With children: what each process did at each tick; when these began, in nanoseconds since 1970, and the time between two
    /// of them; and how many processors the first process may use.
    pub tracks: Vec<OfProcess>,
    pub began: i64,
    pub interval: Duration,
    pub processors: Option<f64>,
}

impl Recorded {
    /// Counts what happened at a tick. `why_refused` explains why a process cannot be stopped.
    pub fn count(&mut self, tick: Tick, pid: i32, why_refused: fn(i32) -> String) -> Result<()> {
        match tick {
            Tick::Idle | Tick::Left => {}
            Tick::Taken { cut, free } => {
                if let Some(cut) = cut {
                    let sample = self.profile.samples.len();
                    self.note(kind_of_cut(cut), &message!("sample {sample}"));
                }
                self.traced += usize::from(free == Some(WhyFree::Traced));
                if free == Some(WhyFree::Refused) {
                    self.unstopped += 1;
                    self.why_unstopped.get_or_insert_with(|| why_refused(pid));
                }
            }
            Tick::Unread => self.unread += 1,
            Tick::Ended => self.ended.try_push(pid)?,
        }
        Ok(())
    }

    /// Notes a problem of the last sample, or of one that follows it.
    pub fn note(&mut self, kind: ProblemKind, text: &str) {
        let sample = self.profile.samples.len() as u64;
        self.problems
            .note(kind, Position::Sample(sample), text.as_bytes());
    }
}

/// Why a sample lacks outer calls.
fn kind_of_cut(cut: Cut) -> ProblemKind {
    match cut {
        Cut::TooDeep => ProblemKind::DeepStack,
        Cut::Late => ProblemKind::UnreadCalls,
        Cut::Full => ProblemKind::StacksFull,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_samples_is_counted() {
        let mut recorded = Recorded::default();
        let taken = |cut, free| Tick::Taken { cut, free };
        for tick in [
            Tick::Idle,
            taken(None, None),
            taken(Some(Cut::TooDeep), None),
            taken(Some(Cut::Late), None),
            taken(None, Some(WhyFree::Traced)),
            taken(Some(Cut::Late), Some(WhyFree::Traced)),
            taken(None, Some(WhyFree::Slow)),
            taken(None, Some(WhyFree::Refused)),
            taken(None, Some(WhyFree::Traced)),
            Tick::Unread,
            Tick::Ended,
            Tick::Left,
        ] {
            recorded.count(tick, 7, |_| String::new()).unwrap();
        }
        let counts = [recorded.traced, recorded.unstopped, recorded.unread];
        assert_eq!((counts, recorded.ended), ([3, 1, 1], vec![7]));
        assert!(recorded.why_unstopped.is_some());
        let cut = [(ProblemKind::DeepStack, 1), (ProblemKind::UnreadCalls, 2)];
        assert_eq!(recorded.problems.counts(), cut);
    }
}
