//! Reads R's stack from the memory of a process: of another process, or of this process from another thread.
//!
//! The process need not be stopped, and does not cooperate. Its memory changes while it is read, so nothing that is
//! read is trusted: addresses are only passed to the kernel, which rejects invalid ones, except those of R's stacks
//! and variables in this process, which are always mapped; the types of objects are checked; and the records of R's
//! calls are read twice. If they changed in the meantime, only the parts that are known to be correct are used.
//!
//! ```text
//! Memory ──► Target (addresses of R's variables, layout of its records)
//!    │          │
//!    └──────────┴──► Calls ──► Names, Places ──► Stack ──► Recorder ──► the model of the core
//! ```
//!
//! - [`memory`]: the memory of a process; [`process`]: a real process, its memory and what `/proc` reports about it;
//! - [`ahead`]: many reads at once: [`copies`] of [`pieces`] of memory, and of [`objects`], and what has [`moved`]
//!   meanwhile; [`walk`]: the stack of this process, which can be read directly;
//! - [`symbols`]: the variables that a module exports;
//! - [`target`]: R in a process: the addresses of its variables and the layout of its records;
//! - [`calls`]: one attempt to read R's calls; [`chain`]: checks whether calls that changed while they were read are
//!   a consistent stack; [`part`]: finds the part of them that is;
//! - [`names`], [`places`]: the functions, files and lines of calls;
//! - [`byte_code`]: the source reference of a position in byte code, and the builtin that is called there;
//! - [`innermost`]: the position of the innermost function in its byte code;
//! - [`stack`]: combines all of this into a stack; `other`: does so for another process, whose stack changes while it
//!   is read, with the help of `recent` stacks;
//! - [`apart`]: a separate thread for work that stops processes;
//! - [`dump`]: reads one stack of a process;
//! - [`session`]: takes a sample of a process at each tick; [`recorder`]: records processes into a profile, in which
//!   each process is a [`source`].

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
pub mod moved;
pub mod names;
pub mod objects;
mod other;
pub mod part;
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
mod recent;
pub mod recorder;
pub mod session;
pub mod source;
pub mod stack;
pub mod symbols;
pub mod target;
pub mod walk;
