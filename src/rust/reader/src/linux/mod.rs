//! Processes on Linux: their [`memory`], what [`proc`] reports about them, why access is refused ([`permission`]),
//! the names of [`system_calls`], and the [`placement`] of the reading thread on a processor. While a process is
//! stopped ([`pause`]), its [`native`] stack can be read, by the unwind tables of its [`modules`].

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
