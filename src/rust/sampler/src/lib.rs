//! The joint profiler's signal side: at each tick of R's own profiler, the native
//! stack and R's contexts go into memory.
//!
//! R's profiler remains in control. `Rprof()` sets the timer and handles SIGPROF;
//! [`start`] installs a handler that records and then calls R's. So tick n
//! here is line n of R's file.
//!
//! ```text
//! SIGPROF ──► handler ──► unwind (modules, unwind_tables) ──► buffer ──► Recording
//!                    ├──► contexts ─────────────────────────────┘
//!                    └──► R's handler ──► R's file
//! ```
//!
//! # What the handler may do
//!
//! It interrupts R anywhere, even inside `malloc()` or the dynamic loader, so it must not
//! take a lock or allocate memory. It calls `getpid()`, `pthread_self()`, `pthread_kill()`,
//! `fstat()`, `sigaction()`, `sigemptyset()` and `strlen()`, which are async-signal-safe by
//! POSIX; `pthread_equal()`, which compares two numbers; `_dl_find_object()`, which
//! glibc provides for unwinding in handlers; gimli's reader of unwind tables, which
//! works in memory that was allocated before; and R's handler, which runs in handlers
//! anyway. It reads the stack between the interrupted stack pointer and the stack's end,
//! and code and tables inside a module of the dynamic loader: a damaged stack ends the
//! walk and does not crash.
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

/// What [`start`] needs to know about the running R.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// The file that R writes to.
    pub file: &'a Path,
    /// Memory for ticks. One takes some 0.8 KB.
    pub bytes: usize,
    /// How many calls of closures are active, to compare R's contexts with.
    pub closures: usize,
    /// R >= 4.4 keeps contexts of byte-compiled calls on a stack of its own.
    pub node_stack: bool,
    /// R >= 4.3 writes each line at once, so the file's size shows where it ends.
    pub lines_written_at_once: bool,
}

/// What the recording is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Off,
    /// Ticks come in.
    On,
    /// Another handler of SIGPROF is installed: no more ticks.
    Replaced,
    /// R's handler is installed, because its profiler was restarted.
    Restarted,
    /// This process is a fork of the one that records.
    Elsewhere,
}
