//! Reads R's stack and R's heap from the memory of a process: of another process, of this process from another thread, or
//! of a core file.
//!
//! A process that sleeps is read as it is, and one that runs is stopped for a moment, or read twice while it goes on.
//! Nothing that is read is trusted: addresses are only passed to the kernel, which rejects invalid ones, except those
//! of R's stacks and variables in this process, which are always mapped; and the types of objects are checked. How R
//! stores its calls and objects is in the crate `profile_runtime`.
//!
//! The rooms of this crate, of which each uses only those above it:
//!
//! - [`memory`]: how memory is read, core files, and the modules that are mapped in it;
//! - [`running_r`]: R in a process;
//! - [`stack`]: R's stack at one moment;
//! - [`recorded`]: what a recording is asked for, and what it returns;
//! - [`process`]: running processes: their memory, how a thread is kept still, and its native stack;
//! - [`record`]: the samples of a recording;
//! - [`heap`]: all objects of R, and what holds them;
//! - [`live`]: what looks into running processes, which is refused on systems where this is impossible.
//!
//! A tick goes through them like this:
//!
//! ```text
//! record::session            it is time for a sample
//!   record::stop_and_read    keep the thread still, read, let it go on
//!     stack::reader          in one attempt, or in several if it goes on
//!       stack::attempt       copy R's calls, look up functions and places
//!   record::samples          add the stack to the profile
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod heap;
#[cfg_attr(
    not(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "unsupported.rs"
)]
pub mod live;
pub mod memory;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod process;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod record;
pub mod recorded;
pub mod running_r;
pub mod stack;
