//! The part of the joint profiler that runs in the signal handler: at each tick of R's own profiler,
//! it records the native stack, R's contexts, positions in byte code and titles of calls in memory. A run may be without
//! native stacks, and without positions.
//!
//! R's profiler remains in control. `Rprof()` sets the timer and handles SIGPROF;
//! [`start`] installs a handler that records a tick and then calls R's handler. Therefore tick n
//! here corresponds to line n of R's file.
//!
//! ```text
//! SIGPROF ──► handler ──► profile_unwind (modules) ──► buffer ──► Recording
//!                    ├──► contexts, positions, titles ───┘
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
//! the stack between the interrupted stack pointer and the end of the stack, code and tables
//! inside modules that the dynamic loader reports, and the byte code that R's records refer to, as R's handler does: a
//! damaged stack ends the walk and does not crash the process. Other objects of R, and the modules before glibc 2.35, are
//! read by the kernel, which rejects wrong addresses.
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

pub use platform::{
    Stopped, abandon, all_lines, block, check, code_lines, find_codes, learn, lines, owners,
    set_titled, start, state, stop, unblock,
};

use profile_core::model::titled::TITLED;
use profile_runtime::digest::Digest;
use std::path::Path;

/// What [`start`] needs to know about the running R.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// The file that R writes to.
    pub file: &'a Path,
    /// The memory for ticks, in bytes. A tick takes about 0.8 KB.
    pub bytes: usize,
    /// Whether to record native stacks. A run without them is one of `record_profile()`: it only adds positions and titles
    /// to the stacks of R's profiler, and does not count as a recording.
    pub native: bool,
    /// How to find positions in byte code, to be recorded.
    pub positions: Option<PositionVariables>,
    /// The number of active calls of closures, with which R's contexts are compared.
    pub closures: usize,
    /// Addresses of functions of this package that R may call in the place of others.
    pub hooks: [u64; 4],
    /// The addresses of the functions of [`TITLED`], which the sampler looks for in R's calls; 0 for unknown ones.
    pub titled: [u64; TITLED.len()],
    /// The first two numbers of R's version.
    pub version: (u32, u32),
}

/// Where R keeps the position in byte code of the innermost function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionVariables {
    /// The marker `R_InBCInterpreter`, which R's records have where a function was called by byte code.
    pub marker: u64,
    /// The addresses of `R_Srcref` or, if that is not clear, of two variables, of which one always has the marker; 0 for none.
    pub srcrefs: [u64; 2],
    /// The addresses of `R_BCbody` and `R_BCpc`; 0 if they are not known.
    pub code: u64,
    pub pc: u64,
}

/// Where functions are that may have run. Addresses of R's objects.
#[derive(Debug, Clone, Copy)]
pub struct Roots<'a> {
    pub nil: u64,
    /// The names of the loaded packages, and their namespaces.
    pub namespaces: &'a [(&'a str, u64)],
    pub global: u64,
    /// Symbols of the base environment.
    pub of_base: &'a [u64],
}

/// A function to whose code positions belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The address of the closure.
    pub closure: u64,
    /// The package in whose namespace it is; empty for the global environment.
    pub package: String,
    /// The name of its variable, or the classes of a method of S4.
    pub name: String,
    /// How often its code occurs.
    pub samples: u64,
}

/// The line of a position in a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineAt {
    /// The number of the code, in the order in which codes occur first.
    pub code: usize,
    pub position: u64,
    pub line: Option<i32>,
}

/// A position in code that another process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedLine {
    pub code: Digest,
    pub position: u64,
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
