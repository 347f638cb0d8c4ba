//! How long the calling thread waited for a processor, for profilers that run in it.

use crate::process::{Throttling, own_scheduled};
use profile_core::error::Result;

/// The time that it waited, and how long its cgroup was throttled, in nanoseconds so far; `None` if unknown.
pub fn own_delay() -> Result<[Option<u64>; 2]> {
    let pid = i32::try_from(std::process::id()).unwrap_or(0);
    let throttled = Throttling::of(pid)?.and_then(|group| group.time());
    Ok([
        own_scheduled().map(|scheduled| scheduled.delayed),
        throttled,
    ])
}
