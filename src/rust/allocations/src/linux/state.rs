//! What the hook reads in any thread, and the life of its code.

use std::ffi::{c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The original functions.
pub static MALLOC: AtomicU64 = AtomicU64::new(0);
pub static FREE: AtomicU64 = AtomicU64::new(0);
pub static GETRUSAGE: AtomicU64 = AtomicU64::new(0);
/// The thread that runs R; 0 if nothing is recorded, and in forks.
pub static THREAD: AtomicU64 = AtomicU64::new(0);
/// The address in R's allocator to which `malloc()` returns; 0 as long as it is unknown.
pub static SITE: AtomicU64 = AtomicU64::new(0);
/// The smallest size of vectors that are recorded and, as long as the site is unknown, the only one.
pub static SIZE: AtomicUsize = AtomicUsize::new(usize::MAX);

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

/// A fork inherits the table with the hook, which then calls the original functions only.
pub fn leave_forks_alone() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function only changes a number.
        let _: c_int = unsafe { libc::pthread_atfork(None, None, Some(in_fork)) };
    });
}

extern "C" fn in_fork() {
    THREAD.store(0, Ordering::Relaxed);
}
