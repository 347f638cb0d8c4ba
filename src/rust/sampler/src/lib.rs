//! The joint profiler's signal side: at each tick of R's own profiler, the native
//! stack and R's contexts go into memory.
//!
//! R's profiler stays what drives it. `Rprof()` sets the timer and handles SIGPROF;
//! [`start`] puts a handler before R's, which records and then calls R's. So tick n
//! here is line n of R's file, and what R does at a tick is R's own business.
//!
//! ```text
//! SIGPROF ──► handler ──► unwind (modules, tables) ──► buffer ──► Recording
//!                    ├──► contexts ──────────────────────┘
//!                    └──► R's handler ──► R's file
//! ```
//!
//! # What the handler may do
//!
//! It interrupts R anywhere, inside `malloc()` or the loader too, so it takes no
//! lock and no memory. It calls `getpid()`, `pthread_self()`, `pthread_kill()`,
//! `fstat()`, `sigaction()`, `sigemptyset()` and `strlen()`, which POSIX calls safe in
//! handlers; `pthread_equal()`, which compares two numbers; `_dl_find_object()`, which
//! glibc made for unwinding in handlers; gimli's reading of unwind tables, which
//! borrows all it needs; and R's handler, which R calls in handlers itself. It reads the stack between the interrupted stack pointer and the
//! stack's end, and code and tables inside a module that the loader knows: a broken
//! stack ends the walk, it does not crash.
//!
//! # Where it works
//!
//! Linux on x86-64 with glibc 2.35 or later. For another processor `x86_64.rs` is to be
//! written anew, with the offsets in `contexts.rs`, that follow from the size of a
//! `jmp_buf`; another system needs its own `modules.rs` and way to get at a thread's
//! stack. Following a stack by tables and R's calls stay as they are.

#[cfg_attr(
    all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"),
    path = "linux/mod.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")),
    path = "unsupported.rs"
)]
mod platform;

pub use platform::{Stopped, abandon, block, check, start, state, stop, unblock};

use std::path::Path;

/// What [`start`] must know of the R that runs.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// The file that R writes to.
    pub file: &'a Path,
    /// Memory for ticks. One takes some 0.8 KB.
    pub bytes: usize,
    /// How many closures are being called, which R's contexts must say as well.
    pub closures: usize,
    /// R >= 4.4 keeps contexts of byte-compiled calls on a stack of its own.
    pub node_stack: bool,
    /// R >= 4.3 writes each line at once, so the file's size tells where it ends.
    pub sizes_tell: bool,
}

/// What the recording is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Off,
    /// Ticks come in.
    On,
    /// Somebody else has taken SIGPROF: no more ticks.
    Replaced,
    /// R itself has: its profiler was started anew.
    Restarted,
    /// This process is a fork of the one that records.
    Elsewhere,
}
