//! Running processes: which there are, their memory, and how a thread is kept where it is while it is read.
//!
//! - [`states`]: of threads; [`computing`]: whether a tick counts for CPU time;
//! - [`apart`]: a separate thread for work that stops processes;
//! - `linux`: what the system can do, or `unsupported`, where finding a process is an error.

pub mod apart;
pub mod computing;
pub mod states;
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
mod system;

pub use states::{Activity, Found, State, Stops, WhyFree};
pub use system::*;
