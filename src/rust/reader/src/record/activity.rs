//! The processes that run R, and what they do now.

use crate::process::{Process, ProcessMemory, Thread, Watched, r_processes};
use crate::record::follow;
use crate::recorded::result::Listed;
use crate::recorded::states::{State, Stops};
use crate::running_r::{MOST_TO_OPEN, RunningR};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::memory::Limited;

/// All of them that this process can see.
pub fn list() -> Result<Vec<Listed>> {
    let mut list = Vec::new();
    for process in r_processes()? {
        let (state, cpu_time) = of_r(&process);
        list.try_push(Listed {
            pid: process.pid,
            state,
            cpu_time,
            start: process.start(),
            script: process.script()?,
            command: process.command()?,
        })?;
    }
    Ok(list)
}

/// The state of the thread that runs R, and its CPU time in nanoseconds. If R runs no function, or cannot be read, it is the
/// first thread of the process.
fn of_r(process: &Process) -> (Option<State>, Option<u64>) {
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
