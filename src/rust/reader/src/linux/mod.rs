//! Processes on Linux: their [`memory`], what [`proc`] says about them, why the system refuses ([`permission`]), and
//! the names of [`system_calls`].

mod memory;
mod permission;
mod proc;
mod system_calls;

pub use memory::ProcessMemory;
pub use proc::{Process, State, Thread, gone, r_processes};
pub use system_calls::system_call_name;
