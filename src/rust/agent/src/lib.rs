//! The agent: a thread in the R process that samples R's stack continuously, for weeks, and sends the samples in
//! chunks.
//!
//! ```text
//! Session (of the reader) ──► Profile ──► chunk ──► Spool ──► a forwarder, which sends it with curl
//!        each interval      ▲   each part, a file   bounded └─► a function of R
//! Log (of R's profiler) ────┘                  └──► a file of the user
//!        each second
//! ```
//!
//! A single thread does all this and never calls R: signals are blocked in it, and panics are caught. It does not use
//! the network, and has no queue in memory: what was recorded before the process is killed is sent nevertheless.
//!
//! - [`handle`]: the only agent of a process: start, stop and status; a forked process does not inherit it;
//! - [`run`]: the main loop of the thread; [`now`]: the time, which it passes to everything else;
//! - [`source`]: where samples come from; [`recorder`]: what takes them: [`chunks`] makes chunks of the samples of a
//!   [`session`] of the reader (`own_session`), [`rprof`] of those of R's own profiler;
//! - [`figures`]: about memory, in each chunk; [`snapshots`]: of R's heap, and their [`schedule`];
//! - [`state`]: what both threads know, with the [`counts`]: each sample is open, in the spool, sent or dropped;
//! - [`spool`]: the folder with the chunks that wait to be sent, the only queue; [`names`]: of its files; [`lock`]: shows
//!   which processes use it; [`serve`]: the forwarder's part of that; [`folder`]: files for the user;
//! - [`sink`]: where chunks go, and their encoding; [`forward`]: has them sent by a forwarder, another R process, which
//!   it starts when [`watch`] says so;
//! - [`system`]: what the standard library lacks: clocks, signals, file locks, the file of R's profiler.

// The binding crate refuses to start an agent elsewhere.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod chunks;
pub mod counts;
pub mod figures;
pub mod folder;
pub mod forward;
pub mod handle;
pub mod lock;
pub mod names;
pub mod now;
#[cfg_attr(
    not(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "no_session.rs"
)]
pub mod own_session;
pub mod recorder;
pub mod rprof;
pub mod run;
pub mod schedule;
pub mod serve;
pub mod session;
pub mod sink;
pub mod snapshots;
pub mod source;
pub mod spool;
pub mod state;
pub mod system;
#[cfg(test)]
mod testing;
pub mod watch;
