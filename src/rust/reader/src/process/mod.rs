//! Running processes: which there are, their memory, and how a thread is kept where it is while it is read.
//!
//! - [`computing`]: whether a tick counts for CPU time;
//! - [`apart`]: a separate thread for work that stops processes;
//! - `linux`: what the system can do.

pub mod apart;
pub mod computing;
mod linux;

pub use linux::*;
