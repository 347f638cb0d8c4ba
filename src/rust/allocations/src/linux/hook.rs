//! The functions that R's table contains in the place of `malloc()`, `free()` and `getrusage()`.
//!
//! Two of them need the stack pointer and the return address of their call, so they start with a few instructions of their own.

use super::run::with_run;
use super::state::{FREE, GETRUSAGE, MALLOC, SITE, SIZE, is_r_thread};
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type GetRusage = unsafe extern "C" fn(c_int, *mut libc::rusage) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void);

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".hidden profile_hook_of_malloc",
    ".globl profile_hook_of_malloc",
    ".type profile_hook_of_malloc, @function",
    "profile_hook_of_malloc:",
    ".cfi_startproc",
    "mov rsi, rsp",
    "mov rdx, [rsp]",
    "jmp {hook}@PLT",
    ".cfi_endproc",
    ".size profile_hook_of_malloc, . - profile_hook_of_malloc",
    hook = sym on_malloc,
);

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".hidden profile_hook_of_getrusage",
    ".globl profile_hook_of_getrusage",
    ".type profile_hook_of_getrusage, @function",
    "profile_hook_of_getrusage:",
    ".cfi_startproc",
    "mov rdx, rsp",
    "mov rcx, [rsp]",
    "jmp {hook}@PLT",
    ".cfi_endproc",
    ".size profile_hook_of_getrusage, . - profile_hook_of_getrusage",
    hook = sym on_getrusage,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".hidden profile_hook_of_getrusage",
    ".globl profile_hook_of_getrusage",
    ".type profile_hook_of_getrusage, %function",
    "profile_hook_of_getrusage:",
    ".cfi_startproc",
    "mov x2, sp",
    "mov x3, x30",
    "b {hook}",
    ".cfi_endproc",
    ".size profile_hook_of_getrusage, . - profile_hook_of_getrusage",
    hook = sym on_getrusage,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".hidden profile_hook_of_malloc",
    ".globl profile_hook_of_malloc",
    ".type profile_hook_of_malloc, %function",
    "profile_hook_of_malloc:",
    ".cfi_startproc",
    "mov x1, sp",
    "mov x2, x30",
    "b {hook}",
    ".cfi_endproc",
    ".size profile_hook_of_malloc, . - profile_hook_of_malloc",
    hook = sym on_malloc,
);

unsafe extern "C" {
    fn profile_hook_of_malloc(size: usize) -> *mut c_void;
    fn profile_hook_of_getrusage(who: c_int, usage: *mut libc::rusage) -> c_int;
}

pub fn malloc_address() -> u64 {
    profile_hook_of_malloc as *const () as u64
}

pub fn getrusage_address() -> u64 {
    profile_hook_of_getrusage as *const () as u64
}

pub fn free_address() -> u64 {
    on_free as *const () as u64
}

/// The addresses of all functions that R calls.
pub fn addresses() -> [u64; 4] {
    [
        malloc_address(),
        on_malloc as *const () as u64,
        on_getrusage as *const () as u64,
        free_address(),
    ]
}

extern "C" fn on_malloc(size: usize, stack_pointer: u64, site: u64) -> *mut c_void {
    // SAFETY: the table contains this function only while the address of the original one is known.
    let address = unsafe {
        let original: Malloc = std::mem::transmute(MALLOC.load(Ordering::Relaxed));
        original(size)
    };
    let known = SITE.load(Ordering::Relaxed);
    let is_wanted = if known == 0 {
        size == SIZE.load(Ordering::Relaxed)
    } else {
        site == known && size >= SIZE.load(Ordering::Relaxed)
    };
    if is_wanted && !address.is_null() && is_r_thread() {
        keep_errno(|| {
            with_run(|run| match known {
                0 => run.learn(stack_pointer, site),
                _ => run.allocate(address as u64, size as u64, stack_pointer),
            })
        });
    }
    address
}

extern "C" fn on_getrusage(
    who: c_int,
    usage: *mut libc::rusage,
    stack_pointer: u64,
    site: u64,
) -> c_int {
    if who == libc::RUSAGE_SELF && is_r_thread() {
        keep_errno(|| with_run(|run| run.look_at_clock(stack_pointer, site)));
    }
    // SAFETY: as in `on_malloc()`; R has passed the arguments.
    unsafe {
        let original: GetRusage = std::mem::transmute(GETRUSAGE.load(Ordering::Relaxed));
        original(who, usage)
    }
}

extern "C" fn on_free(address: *mut c_void) {
    if !address.is_null() && is_r_thread() {
        with_run(|run| run.free(address as u64));
    }
    // SAFETY: as above; R frees what it was given.
    unsafe {
        let original: Free = std::mem::transmute(FREE.load(Ordering::Relaxed));
        original(address);
    }
}

/// R must not see an error of a system call of this crate.
fn keep_errno<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: each thread has its own `errno`.
    let error = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *error };
    let result = run();
    // SAFETY: as above.
    unsafe { *error = before };
    result
}
