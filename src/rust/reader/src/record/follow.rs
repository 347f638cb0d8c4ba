//! Follows R from one thread of its process to another: a program that embeds R may call it from any of them.

use crate::process::Watched;
use crate::process::{Process, Thread};
use crate::recorded::states::Stops;
use crate::running_r::RunningR;
use crate::running_r::c_stack::Whereabouts;
use profile_core::error::Result;
use profile_runtime::memory::Memory;

/// What has happened to R since it was last followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// It runs in the same thread, or runs no function.
    Same,
    Other,
    /// It runs in another thread, which was not found.
    Lost,
}

/// Opens the thread that runs R; if R runs no function, the first thread of the process.
pub fn open(
    process: &Process,
    r: &mut RunningR,
    memory: &mut impl Memory,
    stops: Stops,
) -> Result<Thread> {
    let mut thread = Thread::open(process, stops)?;
    if let Some(place) = r.whereabouts(memory) {
        if let Some(found) = thread.follow(place.address())? {
            r.stack = found.stack;
        }
    }
    thread.check()?;
    Ok(thread)
}

/// Follows R to another thread, if it is not on the stack of this one any more.
pub fn follow(
    thread: &mut impl Watched,
    r: &mut RunningR,
    memory: &mut impl Memory,
) -> Result<Followed> {
    let mut elsewhere = || {
        let place = r.whereabouts(memory);
        place.filter(|place| !r.stack.contains(&place.address()))
    };
    // R may have changed its records while they were followed for the first time.
    let Some(place) = elsewhere().and_then(|_| elsewhere()) else {
        return Ok(Followed::Same);
    };
    match thread.follow(place.address())? {
        Some(found) => {
            r.stack = found.stack;
            Ok(if found.is_other {
                Followed::Other
            } else {
                Followed::Same
            })
        }
        // It need not be an address on a stack.
        None if matches!(place, Whereabouts::Position(_)) => Ok(Followed::Same),
        None => Ok(Followed::Lost),
    }
}
