//! The agent: a thread of R's process that takes samples of R's stack for weeks, and sends them in parts.
//!
//! ```text
//! Session (of the reader) ──► Profile ──► chunk ──► Queue ──► Sink: HTTP, a folder, or a function of R
//!        each interval      ▲   each part, as bytes  bounded
//! Log (of R's profiler) ────┘
//!        each second
//! ```
//!
//! There is one thread for all this, which never calls R: signals are blocked in it, and panics are caught. It must not
//! wait for a network, or it would take no samples meanwhile; so requests are sent piece by piece, between two samples.
//!
//! - [`handle`]: the one agent of a process: start, stop, what it does; nothing of it survives in a forked process;
//! - [`run`]: the thread; [`source`]: where samples come from; [`chunks`]: those of the reader become chunks,
//!   [`rprof`]: those of R's own profiler;
//! - [`queue`]: chunks that wait, and the counts: each sample is open, queued, sent or dropped;
//! - [`sink`]: where chunks go: [`http`], also by way of the [`relay`], [`folder`], or R;
//! - [`system`]: what the standard library lacks: clocks, signals, sockets that do not wait, locks, the file of
//!   R's profiler.

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod chunks;
pub mod folder;
pub mod handle;
pub mod http;
pub mod queue;
pub mod relay;
pub mod rprof;
pub mod run;
pub mod sink;
pub mod source;
#[cfg_attr(
    all(target_os = "linux", target_pointer_width = "64"),
    path = "linux/mod.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", target_pointer_width = "64")),
    path = "unsupported.rs"
)]
pub mod system;
