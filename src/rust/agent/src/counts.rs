//! The counts of samples. Each sample that was taken, or found in the spool, is in exactly one state: in the open chunk, in
//! a chunk in the spool, sent, or dropped.

use crate::now::Now;
use std::time::Duration;

/// What a chunk contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// So many samples.
    Samples(u64),
    /// A snapshot of R's heap. It counts as a chunk without samples.
    Heap,
}

impl Content {
    pub fn samples(self) -> u64 {
        match self {
            Content::Samples(samples) => samples,
            Content::Heap => 0,
        }
    }
}

/// Chunks in the spool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    pub chunks: u64,
    pub samples: u64,
    pub bytes: u64,
}

/// Numbers of samples that have changed their state, and the reason.
#[derive(Debug, Clone, Default)]
pub struct Moves {
    /// Left by agents that have ended.
    pub found: u64,
    pub sent: u64,
    /// Dropped since the spool was full.
    pub full: u64,
    /// Dropped since the server or function refused them.
    pub refused: u64,
    /// Dropped since they could not be encoded or stored.
    pub lost: u64,
    pub chunks_sent: u64,
    /// Profiles that a server rejected from chunks that it accepted.
    pub rejected: u64,
    pub why: Option<String>,
}

impl Moves {
    pub fn lost(samples: u64, why: Option<String>) -> Moves {
        Moves {
            lost: samples,
            why,
            ..Moves::default()
        }
    }
}

/// The counts since the start of the agent.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub taken: u64,
    /// Samples in the open chunk.
    pub open: u64,
    pub waiting: Waiting,
    /// The sums of all moves.
    pub moves: Moves,
    /// Stacks that could not be read. They do not count as samples.
    pub unread: u64,
    /// How long R's profiler was not running for the agent.
    pub paused: Duration,
    /// Samples whose outermost calls were omitted.
    pub cut: u64,
    /// Snapshots of R's heap, and those that could not be taken or stored.
    pub snapshots: u64,
    pub snapshots_lost: u64,
    /// The CPU time of the thread, and of the threads that took snapshots, in nanoseconds.
    pub cpu: u64,
    pub cpu_of_snapshots: u64,
    pub last_sent: Option<f64>,
    pub last_error: Option<(String, f64)>,
    /// Whether the thread has ended.
    pub ended: bool,
}

impl Counts {
    pub fn dropped(&self) -> u64 {
        self.moves.full + self.moves.refused + self.moves.lost
    }

    pub fn add(&mut self, moves: Moves, now: Now) {
        let sums = &mut self.moves;
        sums.found += moves.found;
        sums.sent += moves.sent;
        sums.full += moves.full;
        sums.refused += moves.refused;
        sums.lost += moves.lost;
        sums.chunks_sent += moves.chunks_sent;
        sums.rejected += moves.rejected;
        if moves.chunks_sent > 0 {
            self.last_sent = now.unix();
        }
        if let Some(why) = moves.why {
            self.last_error = Some((why, now.unix().unwrap_or(0.0)));
        }
    }
}
