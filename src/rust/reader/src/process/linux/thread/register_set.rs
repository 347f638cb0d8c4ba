//! Reads registers of a stopped thread.

use std::mem::zeroed;

/// A set of registers of a stopped thread; `None` if it was killed meanwhile.
///
/// # Safety
/// `T` is a struct of integers.
pub unsafe fn register_set<T>(pid: libc::pid_t, set: libc::c_int) -> Option<T> {
    // SAFETY: by the contract of this function.
    let mut found: T = unsafe { zeroed() };
    let mut place = libc::iovec {
        iov_base: (&raw mut found).cast(),
        iov_len: size_of::<T>(),
    };
    // SAFETY: the kernel writes no more than this size, which it changes if the registers take less.
    let result = unsafe {
        let set = set as libc::c_ulong;
        libc::ptrace(libc::PTRACE_GETREGSET, pid, set, &raw mut place)
    };
    (result != -1 && place.iov_len == size_of::<T>()).then_some(found)
}
