//! What the thread that runs R does now, for lists of processes.

use crate::process::{Process, ProcessMemory, State, Stops, Thread};
use crate::record::follow;
use crate::running_r::{MOST_TO_OPEN, RunningR};
use profile_core::error::Result;
use profile_runtime::memory::Limited;

/// The state of the thread that runs R, and its CPU time in nanoseconds. If R runs no function, or cannot be read, it is the
/// first thread of the process.
pub fn of_r(process: &Process) -> (Option<State>, Option<u64>) {
    let Ok(first) = Thread::open(process, Stops::Never) else {
        return (None, None);
    };
    let mut thread = if first.is_only() {
        first
    } else {
        thread_of_r(process).unwrap_or(first)
    };
    let cpu = thread.cpu_time();
    (thread.activity().map(|activity| activity.state), cpu)
}

fn thread_of_r(process: &Process) -> Result<Thread> {
    let mut memory = Limited::new(ProcessMemory::new(process.pid), MOST_TO_OPEN);
    let mut r = RunningR::open(&mut memory, &process.mappings()?, &process.named()?)?;
    follow::open(process, &mut r, &mut memory, Stops::Never)
}
