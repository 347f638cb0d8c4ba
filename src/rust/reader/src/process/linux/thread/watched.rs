//! What is known of the thread that is recorded, and what is done with it. The tests record a simulated one.

use super::hold::Hold;
use super::pause::Pause;
use crate::process::computing::Evidence;
use crate::recorded::scheduled::Scheduled;
use crate::recorded::states::{Activity, FoundThread, State, WhyFree};
use crate::recorded::waits::{Wait, WaitNames};
use profile_core::error::Result;

/// How a thread is kept where it is.
#[derive(Debug)]
pub enum Held {
    /// It is stopped as long as this exists.
    Stopped(Pause),
    /// It belongs to this process, and waits in the handler of a signal for a moment.
    InHandler(Hold),
    /// It sleeps, and has had this number of time slices.
    Asleep(u64),
    /// It is not kept, and may go on.
    Free(WhyFree),
}

/// What the system knows and does about the thread that is recorded.
pub trait Watched {
    /// Its ID.
    fn id(&self) -> i32;

    /// Its CPU time in nanoseconds, if it is known.
    fn cpu_time(&self) -> Option<u64>;

    /// How it was scheduled so far, if it is known.
    fn scheduled(&self) -> Option<Scheduled>;

    /// The CPU time of the other threads of its process, in nanoseconds, if it is known.
    fn others_cpu(&self) -> Option<u64>;

    /// Notices the system call that it is in. Returns whether it waits.
    fn notice_wait(&mut self) -> bool;

    /// What the call waits for that was noticed last.
    fn explain_wait(&mut self) -> Result<Wait>;

    /// Which names waits have, and the other processes that they may name.
    fn name_waits(&mut self, names: WaitNames, others: &[i32]) -> Result<()>;

    /// Whether the system does not permit to see what it waits for.
    fn is_wait_refused(&self) -> bool;

    /// What it does at a tick; `None` if it has ended.
    fn activity(&mut self) -> Option<Activity>;

    /// Whether its process was seen to run another program than when this began.
    fn has_left(&self) -> bool;

    /// Follows R to the thread on whose stack this address is; `None` if there is none.
    fn follow(&mut self, address: u64) -> Result<Option<FoundThread>>;

    /// Keeps it where it is, given its state.
    fn hold(&mut self, state: State) -> Held;

    /// What is known about it, if it was running at the tick and is held now.
    fn evidence(&self, held: &Held) -> Evidence;

    /// Whether it has been where it was since then.
    fn is_still(&self, held: &Held) -> bool;
}
