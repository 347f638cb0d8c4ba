//! How memory is read, whatever process it belongs to, on any system.
//!
//! - [`core_file`]: the memory of a process that has ended, from its core file;
//! - [`copies`]: many pieces of memory, copied at once;
//! - [`symbols`]: the variables that a mapped module exports; [`pthreads`]: the threads that the C library knows;
//! - `command_line`: how the arguments of a program are shown.

pub(crate) mod command_line;
pub mod copies;
pub mod core_file;
pub mod pthreads;
pub mod symbols;
