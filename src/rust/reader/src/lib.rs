//! Reads the stack of R from the memory of a process: of another one, or of its own from another thread.
//!
//! The process is not stopped, and does not cooperate. Its memory changes while it is read, so whatever is
//! read is treated as a guess: addresses are only passed to the kernel, which refuses wrong ones, except those of the
//! stack and of R's variables in the own process, which are always there; the types of objects are checked; and the
//! records of R's calls are read twice. If they changed in the meantime, only what is known to be right counts.
//!
//! ```text
//! Memory ──► Target (where R's variables are, how its records look)
//!    │          │
//!    └──────────┴──► Calls ──► Names, Places ──► Stack ──► Recorder ──► the model of the core
//! ```
//!
//! - [`memory`]: the memory of a process; [`process`]: that of a real one, and what `/proc` says about it;
//! - [`ahead`]: many reads of it at once: [`copies`] of [`pieces`] in which all is that is needed, then of [`objects`];
//!   [`walk`]: the stack of the own process, which is at hand;
//! - [`symbols`]: the variables that a module exports;
//! - [`target`]: R in a process;
//! - [`calls`]: an attempt to read R's calls; [`chain`]: whether calls that changed meanwhile are a stack;
//!   [`outer`]: which of them are one;
//! - [`names`], [`places`]: what the calls say: functions, files and lines;
//! - [`byte_code`]: what a position in byte code says, also which builtin is called there;
//! - [`innermost`]: where in its code the innermost function is;
//! - [`stack`]: all that together is a stack;
//! - [`apart`]: a thread for work that stops processes;
//! - [`dump`]: one stack of a process;
//! - [`session`]: a process at each tick; [`recorder`]: samples of processes become a profile, and each process
//!   a [`source`].

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod ahead;
pub mod apart;
pub mod byte_code;
pub mod calls;
pub mod chain;
pub mod copies;
pub mod dump;
pub mod innermost;
pub mod memory;
pub mod names;
pub mod objects;
pub mod outer;
pub mod pieces;
pub mod places;
#[cfg_attr(
    all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"),
    path = "linux/mod.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")),
    path = "unsupported.rs"
)]
pub mod process;
pub mod recorder;
pub mod session;
pub mod source;
pub mod stack;
pub mod symbols;
pub mod target;
pub mod walk;
