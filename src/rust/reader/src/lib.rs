//! Reads R's stack from the memory of a process: of another process, or of this process from another thread.
//!
//! A process that sleeps is read as it is, and one that runs is stopped for a moment, or read twice while it goes on.
//! Nothing that is read is trusted: addresses are only passed to the kernel, which rejects invalid ones, except those
//! of R's stacks and variables in this process, which are always mapped; and the types of objects are checked. How R
//! stores its calls and objects is in the crate `profile_runtime`.
//!
//! ```text
//! Memory ──► Snapshot ──► Calls ──► Names, Places ──► Stack ──► Session ──► the model of the core
//!            (Target: addresses of R's variables, layout of its records)
//! ```
//!
//! - [`process`]: a real process, its memory, what `/proc` reports about it, and how it is stopped; [`moment`]: a point in
//!   time;
//! - [`symbols`]: the variables that a module exports; `exports`: those of R;
//! - [`target`]: R in a process: the addresses of its variables, and the layout of its records;
//! - [`snapshot`]: what one stack needs, of one moment; [`copies`]: many pieces of memory at once; [`spans`]: the active
//!   span;
//! - [`record`]: where R's record of a call is; [`calls`]: R's calls; `trunk`: those that the last stack had, too;
//! - [`names`], [`places`]: the functions, files and lines of calls;
//! - `positions`: the source reference of a position in byte code; `builtin`: the builtin that is called there;
//! - [`innermost`]: the position of the innermost function in its byte code;
//! - [`stack`]: combines all of this into [`frames`], in several attempts (`attempt`);
//! - [`reading`]: keeps a thread where it is while its stack is read; [`apart`]: a separate thread for work that stops
//!   processes;
//! - [`core_file`]: the memory of a process that has ended, from its core file;
//! - [`heap`]: all objects of R, and what holds them; [`snapshots`] of them; [`gauge`]: only how much memory they take;
//! - [`dump`]: reads one stack of a process, or the stack in a core file;
//! - [`session`]: takes a sample of a process at each of the [`ticks`]; [`samples`]: adds it to a profile; [`recorder`]:
//!   records processes into a profile, in which each process is a [`source`]; [`settings`]: how;
//! - [`states`]: of threads; `stride`: which ticks are used; [`computing`]: whether a tick counts for CPU time;
//!   [`cpu_clock`]: how much it stands for.

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod apart;
mod attempt;
mod builtin;
pub mod calls;
mod command_line;
pub mod computing;
pub mod copies;
pub mod core_file;
pub mod cpu_clock;
pub mod dump;
mod exports;
pub mod frames;
pub mod gauge;
pub mod heap;
pub mod innermost;
pub mod moment;
pub mod names;
pub mod places;
mod positions;
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
pub mod process;
pub mod reading;
pub mod record;
pub mod recorder;
pub mod samples;
pub mod session;
pub mod settings;
pub mod snapshot;
pub mod snapshots;
pub mod source;
pub mod spans;
pub mod stack;
pub mod states;
mod stride;
pub mod symbols;
pub mod target;
pub mod ticks;
pub mod trunk;
