//! Processes on Linux: their [`memory`], what [`proc`] and [`maps`] report about them, why access is refused
//! ([`permission`]), the names of [`system_calls`], the [`thread`] that runs R and how it is stopped ([`pause`], or
//! [`hold`] in this process); an [`image`] of this process; and the [`placement`] of the reading thread on a processor.
//! While a process is stopped, its [`native`] stack can be copied, and be unwound by the tables of its [`modules`];
//! [`evaluator`] finds R in it. [`processor`] is the part that depends on the processor; it uses [`register_set`], and
//! describes where a signal has [`interrupted`] the thread.

mod evaluator;
mod hold;
mod image;
mod interrupted;
mod maps;
mod memory;
mod modules;
mod native;
mod own;
mod own_view;
mod pause;
mod permission;
mod placement;
mod proc;
#[cfg_attr(target_arch = "x86_64", path = "processor/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "processor/aarch64.rs")]
mod processor;
mod register_set;
mod system_calls;
mod thread;

pub use crate::states::{Activity, State, Stops, WhyFree};
pub use hold::Hold;
pub use image::Image;
pub use memory::ProcessMemory;
pub use native::NativeReader;
pub use own_view::{OwnView, release_memory};
pub use pause::{Pause, prepare_thread};
pub use placement::Placement;
pub use proc::{Process, r_processes};
pub use system_calls::system_call_name;
pub use thread::{Held, Thread, clock_of_thread};
