//! What a profile says about the memory of processes, and how a process ended that was recorded, as far as the system shows
//! it: above all, whether the kernel has killed it to free memory. The kernel reports such a kill as signal 9, which other
//! processes send as well, and counts it.

use profile_core::analysis::threads::Threads;
use profile_core::error::Error;
use profile_core::message;
use profile_core::model::Profile;

/// Attributes of a source. Sizes are in bytes: the highest memory of its process during the recording.
pub const PEAK: &str = "profile.memory.peak";
/// How its process ended, if not as usual.
pub const END: &str = "profile.process.end";
/// Attributes of the first source: the highest memory of several processes together at one moment, and their number.
pub const TOGETHER: &str = "profile.memory.together";
pub const PROCESSES: &str = "profile.memory.processes";
/// The limit of its control group, the highest memory of this group, and how many of its processes were killed.
pub const LIMIT: &str = "profile.memory.limit";
pub const GROUP_PEAK: &str = "profile.memory.cgroup.peak";
pub const KILLS: &str = "profile.memory.kills";

/// `SIGKILL`.
pub const KILL: i32 = 9;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its parent was faster to ask for it, or this process may not know.
    Unknown,
    Exited,
    Signal(i32),
}

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It ended by signal 9, and the kernel has counted one more kill in its control group.
    Killed,
    /// It ended by signal 9, and the kernel has counted one more kill on this machine.
    KilledOnMachine,
    /// It ended in a way that is unknown, just when the kernel has counted one more kill in its control group.
    KilledInGroup,
    Signal(i32),
}

/// Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub cause: Cause,
    /// The limit of its control group, and what its processes used at the last reading, if little was left.
    pub limit: Option<u64>,
    pub used: Option<u64>,
    /// What was available on this machine at the last reading, if it was little.
    pub available: Option<u64>,
}

impl Ending {
    /// The value of the attribute [`END`].
    pub fn in_words(&self) -> String {
        match self.cause {
            Cause::Killed => "killed for memory".into(),
            Cause::KilledOnMachine => "signal 9, during a kill for memory on the machine".into(),
            Cause::KilledInGroup => "unknown, during a kill for memory in the cgroup".into(),
            Cause::Signal(number) => message!("signal {number}"),
        }
    }

    /// Whether there are signs that the kernel has killed it for memory.
    pub fn is_for_memory(&self) -> bool {
        let has_little = self.used.is_some() || self.available.is_some();
        match self.cause {
            Cause::Killed | Cause::KilledOnMachine | Cause::KilledInGroup => true,
            Cause::Signal(number) => number == KILL && has_little,
        }
    }
}

/// What is known about a process whose memory is watched. Sizes are in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PeakSoFar {
    pub pid: i32,
    /// At the last reading.
    pub resident: u64,
    pub highest: u64,
    /// At the last snapshot; 0 if there was none.
    pub taken: u64,
    pub snapshots: u64,
}

/// What is known when it has ended.
#[derive(Debug)]
pub struct Peak {
    pub so_far: PeakSoFar,
    pub snapshot: Option<Profile>,
    /// Why the last snapshot could not be taken.
    pub error: Option<Error>,
    pub ending: Option<Ending>,
}

/// What was seen of a process that is recorded alone.
#[derive(Debug)]
pub struct OfAlone {
    /// The CPU time that it has used meanwhile, in nanoseconds, and that each process has used that belongs to it.
    pub cpu: Vec<u64>,
    /// Its highest memory in bytes.
    pub peak: Option<u64>,
    pub ending: Option<Ending>,
    pub threads: Threads,
}
