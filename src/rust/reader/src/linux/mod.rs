//! Processes on Linux: their [`memory`], what [`proc`] says about them, why the system refuses ([`permission`]), and
//! the names of [`system_calls`], and the [`placement`] of the thread that reads. While a process stands still ([`pause`]), its [`native`] stack can be read, by the
//! unwind tables of its [`modules`].

mod memory;
mod modules;
mod native;
mod own;
mod pause;
mod permission;
mod placement;
mod proc;
mod system_calls;

pub use memory::ProcessMemory;
pub use native::{NativeReader, Still};
pub use pause::prepare_thread;
pub use placement::Placement;
pub use proc::{Activity, Process, State, Thread, clock_of_thread, gone, r_processes};
pub use system_calls::system_call_name;
