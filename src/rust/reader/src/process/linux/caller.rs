//! The calling thread.

/// Its ID; that of the first thread is the ID of the process. glibc has `gettid()` only since 2.30.
pub fn id() -> i32 {
    // SAFETY: it has no preconditions.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    id as i32
}
