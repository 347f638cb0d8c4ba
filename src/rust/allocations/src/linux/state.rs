//! What the hook reads in any thread, and the life of its code.

use std::ffi::{c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The original functions.
pub static MALLOC: AtomicU64 = AtomicU64::new(0);
pub static FREE: AtomicU64 = AtomicU64::new(0);
pub static GETRUSAGE: AtomicU64 = AtomicU64::new(0);
/// The thread that runs R; 0 if nothing is recorded, and in forks that do not count.
pub static THREAD: AtomicU64 = AtomicU64::new(0);
/// The address in R's allocator to which `malloc()` returns; 0 as long as it is unknown.
pub static SITE: AtomicU64 = AtomicU64::new(0);
/// The smallest size of vectors that are recorded and, as long as the site is unknown, the only one.
pub static SIZE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether forks count, and whether this process is one.
static FORKS: AtomicBool = AtomicBool::new(false);
static IS_FORK: AtomicBool = AtomicBool::new(false);
static IS_NEW_FORK: AtomicBool = AtomicBool::new(false);

/// A number that the user of this crate sets while it records, see [`mark`].
pub static MARK: AtomicU64 = AtomicU64::new(0);

/// Vectors that are allocated from now on have this mark.
pub fn mark(number: u64) {
    MARK.store(number, Ordering::Relaxed);
}

/// The number of the calling thread.
pub fn this_thread() -> u64 {
    // SAFETY: it has no preconditions.
    unsafe { libc::pthread_self() }
}

/// Whether this is the thread that is recorded.
pub fn is_r_thread() -> bool {
    THREAD.load(Ordering::Relaxed) == this_thread()
}

/// Keeps this code in memory until the process ends: another library may have stored the address of the hook, and a thread
/// may be in it.
pub fn pin() {
    // SAFETY: dladdr() fills the struct if it succeeds; dlopen() only sets a flag of a library that is loaded.
    unsafe {
        let mut about: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(in_fork as *const c_void, &mut about) != 0 && !about.dli_fname.is_null() {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen(about.dli_fname, flags);
        }
    }
}

/// From now on, all calls are only passed on to the original functions.
pub fn pass_all_on() {
    SITE.store(0, Ordering::Release);
    SIZE.store(usize::MAX, Ordering::Release);
}

/// A fork inherits the table with the hook. If `forks` are counted, its R's thread begins to count for itself; otherwise
/// the hook only calls the original functions.
pub fn follow_forks(forks: bool) {
    static ONCE: Once = Once::new();
    FORKS.store(forks, Ordering::Release);
    ONCE.call_once(|| {
        // SAFETY: the function only changes numbers.
        let _: c_int = unsafe { libc::pthread_atfork(None, None, Some(in_fork)) };
    });
}

extern "C" fn in_fork() {
    IS_FORK.store(true, Ordering::Relaxed);
    IS_NEW_FORK.store(true, Ordering::Relaxed);
    if !FORKS.load(Ordering::Relaxed) {
        THREAD.store(0, Ordering::Relaxed);
    }
}

/// Whether this process is a fork of the one that has begun to record.
pub fn is_fork() -> bool {
    IS_FORK.load(Ordering::Relaxed)
}

/// Whether this process is a fork that has not asked before.
pub fn has_forked() -> bool {
    IS_NEW_FORK.load(Ordering::Relaxed) && IS_NEW_FORK.swap(false, Ordering::Relaxed)
}

/// This process begins to record.
pub fn is_recorder() {
    IS_FORK.store(false, Ordering::Relaxed);
    IS_NEW_FORK.store(false, Ordering::Relaxed);
}
