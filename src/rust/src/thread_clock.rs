//! The CPU clock of R's thread, with which recorders compare what R's profiler has seen.

/// The CPU time of this thread in nanoseconds. `None` if the system has no such clock, or, as Windows, a profiler of R that
/// measures no CPU time.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn thread_time() -> Option<f64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the struct.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (failed == 0).then_some(time.tv_sec as f64 * 1e9 + time.tv_nsec as f64)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn thread_time() -> Option<f64> {
    None
}
