//! The agent: a thread in the R process that samples R's stack continuously, for weeks, and sends the samples in
//! chunks.
//!
//! ```text
//! Session (of the reader) ──► Profile ──► chunk ──► Queue ──► Sink: HTTP, a folder, or a function of R
//!        each interval      ▲   each part, as bytes  bounded
//! Log (of R's profiler) ────┘
//!        each second
//! ```
//!
//! A single thread does all this and never calls R: signals are blocked in it, and panics are caught. It must not
//! block on the network, since it would take no samples meanwhile. Requests are therefore sent piece by piece,
//! between two samples.
//!
//! - [`handle`]: the only agent of a process: start, stop and status; a forked process does not inherit it;
//! - [`run`]: the main loop of the thread; [`now`]: the time, which it passes to everything else;
//! - [`source`]: where samples come from; [`chunks`]: makes chunks of the samples of a [`session`] of the reader;
//!   [`rprof`]: makes chunks of the samples of R's own profiler;
//! - [`queue`]: chunks that wait to be sent, and the counts: each sample is open, queued, sent or dropped;
//! - [`sink`]: where chunks are sent: [`http`], if encrypted with the help of [`relay`]; [`folder`]; or R;
//! - [`system`]: what the standard library lacks: clocks, signals, non-blocking sockets, file locks, the file of R's
//!   profiler.

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod chunks;
pub mod folder;
pub mod handle;
pub mod http;
pub mod now;
pub mod queue;
pub mod relay;
pub mod rprof;
pub mod run;
#[cfg(test)]
mod script;
pub mod session;
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
