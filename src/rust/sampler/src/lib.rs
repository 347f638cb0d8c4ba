//! The part of the joint profiler that runs in the signal handler: at each tick of R's own profiler,
//! it records the native stack and R's contexts in memory.
//!
//! R's profiler remains in control. `Rprof()` sets the timer and handles SIGPROF;
//! [`start`] installs a handler that records a tick and then calls R's handler. Therefore tick n
//! here corresponds to line n of R's file.
//!
//! ```text
//! SIGPROF ──► handler ──► profile_unwind (modules) ──► buffer ──► Recording
//!                    ├──► contexts ──────────────────────┘
//!                    └──► R's handler ──► R's file
//! ```
//!
//! # What the handler may do
//!
//! The handler may interrupt R anywhere, even inside `malloc()` or the dynamic loader, so it must
//! not take a lock or allocate memory. It calls `getpid()`, `pthread_self()`, `pthread_kill()`,
//! `fstat()`, `sigaction()`, `sigemptyset()` and `strlen()`, which are async-signal-safe by POSIX;
//! `pthread_equal()`, which compares two numbers; `_dl_find_object()`, which glibc provides for
//! unwinding in handlers; the system call `process_vm_readv()`; gimli's reader
//! of unwind tables, which uses memory that was allocated before; and R's own handler. It reads only
//! the stack between the interrupted stack pointer and the end of the stack, and code and tables
//! inside modules that the dynamic loader reports: a damaged stack ends the walk and does not crash
//! the process. Objects of R, and the modules before glibc 2.35, are read by the kernel, which rejects
//! wrong addresses.
//!
//! # Where it works
//!
//! Linux on x86-64 or aarch64 with the GNU C library. Another processor would need its own version of the files
//! `registers/x86_64.rs` here and in `unwind`, and the size of its `jmp_buf` in `runtime`. Another system would need its
//! own `loader.rs`, and its own way to find the stack of a thread. Unwinding by tables and following R's calls would
//! not change.

#[cfg_attr(
    all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ),
    path = "linux/mod.rs"
)]
#[cfg_attr(
    not(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "unsupported.rs"
)]
mod platform;

pub use platform::{Stopped, abandon, block, check, start, state, stop, unblock};

use profile_core::model::titled::TITLED;
use std::path::Path;

/// What [`start`] needs to know about the running R.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// The file that R writes to.
    pub file: &'a Path,
    /// The memory for ticks, in bytes. A tick takes about 0.8 KB.
    pub bytes: usize,
    /// The number of active calls of closures, with which R's contexts are compared.
    pub closures: usize,
    /// Whether to follow the native stack. Without it, only the titles of calls are recorded.
    pub native: bool,
    /// Addresses of functions of this package that R may call in the place of others.
    pub hooks: [u64; 4],
    /// The addresses of the functions of [`TITLED`], which the sampler looks for in R's calls; 0 for unknown ones.
    pub titled: [u64; TITLED.len()],
    /// The first two numbers of R's version.
    pub version: (u32, u32),
}

/// The state of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is no recording.
    Off,
    /// Ticks are recorded.
    On,
    /// Another handler of SIGPROF was installed, so no more ticks arrive.
    Replaced,
    /// R's own handler was installed again, because its profiler was restarted.
    Restarted,
    /// This process was forked from the one that is recorded.
    Elsewhere,
}
