//! Forks of this process: how many there were, and whom they permit to look into them.
//!
//! The security module Yama, by default on Ubuntu, lets a process look only into its descendants, and into those that have
//! permitted it to. The kernel forgets the permission neither when the process executes another program nor before it
//! ends, but a fork does not inherit it (`security/yama/yama_lsm.c`).

use std::fs;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);
/// The process that forks permit to look into them, or 0.
static PERMITTED: AtomicI32 = AtomicI32::new(0);

extern "C" fn in_parent() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn in_child() {
    permit(PERMITTED.load(Ordering::Relaxed));
}

fn permit(pid: i32) {
    if pid != 0 {
        // SAFETY: it only sets an attribute of this process, and may be called after fork(). Kernels without Yama refuse
        // it, and do not need it.
        unsafe {
            libc::prctl(
                libc::PR_SET_PTRACER,
                libc::c_ulong::from(pid.unsigned_abs()),
            )
        };
    }
}

/// The number of forks since the first call. `fork()` counts, but not what starts a program without it.
pub fn count_forks() -> u64 {
    register();
    FORKS.load(Ordering::Relaxed)
}

/// Without memory for that, forks are neither counted nor readable.
fn register() {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // SAFETY: both functions only use atomic variables and a system call. The C library removes them when the library
        // that contains them is unloaded.
        unsafe { libc::pthread_atfork(None, Some(in_parent), Some(in_child)) };
    });
}

/// Permits a process to look into this one, and into its forks from now on; 0 for none.
pub fn permit_process(pid: i32) {
    register();
    if pid == 0 {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, 0) };
    }
    permit(pid);
    PERMITTED.store(pid, Ordering::Relaxed);
}

/// Whether Yama lets this process look only into its descendants and where it is permitted.
pub fn needs_permission() -> bool {
    // SAFETY: it has no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    !is_root && scope.trim() == "1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_counted() {
        let before = count_forks();
        // SAFETY: the child only ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: see above.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: a child of this process.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        assert!(count_forks() > before);
    }
}
