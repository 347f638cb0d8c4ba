//! What the standard library lacks on Linux: clocks and signals; private [`files`] and locks; how to [`start`](mod@start) a program; the [`log`] of R's profiler. `unsafe` is used
//! only for system calls.

mod files;
mod log;
mod start;

pub use files::{
    create_private, is_locked, is_same_file, lock, make_private_folder, open_private, unlock,
};
pub use log::{Log, is_profiled};
pub use start::{has_ended, start};

use std::mem;
use std::ptr;
use std::time::Duration;

/// The time since boot, including the time during which the system was suspended.
pub fn boot_time() -> Duration {
    clock(libc::CLOCK_BOOTTIME)
}

/// The CPU time of this thread, in nanoseconds.
pub fn thread_time() -> u64 {
    let time = clock(libc::CLOCK_THREAD_CPUTIME_ID);
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the struct.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Calls a function that starts a thread, with all signals blocked. The thread, and those that it starts, inherit
/// this, so R's signal handlers never run there.
pub fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are initialised before they are used. The signal mask of this thread is restored afterwards.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        result
    }
}
