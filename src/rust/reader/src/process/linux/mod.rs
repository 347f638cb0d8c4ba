//! Processes on Linux.
//!
//! - [`folder`]: where the system describes them;
//! - [`memory`]: their memory, and which parts of it are mapped;
//! - [`proc`]: what `/proc` reports about them; [`names`]: their programs and scripts; [`permission`]: why access is refused;
//! - [`cgroup`]: limits of their memory; [`memory_use`]: how much they use, and how they ended;
//! - [`thread`]: the thread that runs R, and how it is kept still; [`tasks`]: the CPU time of all threads;
//! - [`processors`]: how many of them a process may use;
//! - [`native`]: the native stack of a thread that is stopped; [`waits`]: what a thread waits for;
//! - [`forks`]: of this process;
//! - [`workers`]: R processes that work for others;
//! - [`placement`]: of the reading thread on a processor; [`caller`]: its ID.

mod caller;
mod cgroup;
mod folder;
mod forks;
mod memory;
mod memory_use;
mod names;
mod native;
mod permission;
mod placement;
mod proc;
mod processors;
mod tasks;
mod thread;
mod waits;
mod workers;

pub use caller::id as calling_thread;
pub use cgroup::{
    Cgroup, MemoryLimit, Throttling, kills_on_machine, memory_left, memory_of_machine,
};
#[cfg(test)]
pub use folder::{EXECUTES, Entry, Scripted};
pub use forks::{count_forks, forked, needs_permission, permit_process};
pub use memory::ProcessMemory;
pub use memory::image::Image;
pub use memory::maps::{FileMapping, page_size};
pub use memory::own_view::{OwnView, release_memory};
pub use memory_use::MemoryUse;
pub use native::NativeReader;
pub use permission::{gone, why_refused};
pub use placement::Placement;
pub use proc::{Process, last_created, r_processes};
pub use processors::{Affinity, processors, quota_of};
pub use tasks::{Task, tasks};
pub use thread::hold::Hold;
pub use thread::pause::{Pause, is_traced, prepare_thread};
pub use thread::system_calls::system_call_name;
pub use thread::watched::Watched;
pub use thread::{Held, Thread, clock_of_thread, cpu_time_of_process, own_scheduled};
pub use workers::{STARTING, Sign, Workers};
