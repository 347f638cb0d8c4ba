//! What is known about a thread that is recorded, and what is done with it.

use crate::recorded::scheduled::Scheduled;
use std::ops::Range;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs, or waits for a CPU.
    Running,
    Sleeping,
    /// It waits for a disk or another device, and cannot be interrupted.
    WaitsForDevice,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// The process has ended, and its parent has not noticed it yet.
    Ended,
    Other(char),
}

impl State {
    /// The state of a thread as the value of a label.
    pub fn in_a_word(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Sleeping => "sleeping",
            State::WaitsForDevice => "waiting",
            State::Stopped => "stopped",
            State::Ended => "ended",
            State::Other(_) => "other",
        }
    }
}

/// What a thread does at a tick.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    pub state: State,
    /// The processor that it runs on, or last ran on, if it was looked up.
    pub processor: Option<usize>,
    /// Its CPU time in nanoseconds, if it was read.
    pub cpu: Option<u64>,
    /// How it was scheduled so far, if the system knows that.
    pub scheduled: Option<Scheduled>,
    /// Whether its process may have other threads.
    pub has_others: bool,
}

/// Where R runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundThread {
    /// The stack of its thread.
    pub stack: Range<u64>,
    /// Whether this is another thread than before.
    pub is_other: bool,
}

/// When a thread is stopped while its stack is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stops {
    Never,
    IfItRuns,
    /// Unless it waits for a device, which prevents it.
    Always,
}

/// Why a thread is not kept where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyFree {
    /// That was not wanted.
    Unwanted,
    /// It does not stop, or has ended.
    Late,
    /// Another process, such as a debugger, traces it.
    Traced,
    /// The system does not permit to stop it.
    Refused,
    /// It was, but that was too short to read its stack.
    Slow,
}
