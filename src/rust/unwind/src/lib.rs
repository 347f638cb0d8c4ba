//! Unwinds a native stack: finds its frames, one after the other, by the unwind tables of the modules whose code is on
//! it. For example, it finds that `dgemm()` was called by R's matrix product, and the matrix product by R's evaluator,
//! although none of these functions keeps a frame pointer.
//!
//! The sampler follows the stack of its own thread, in a signal handler; the reader follows copies of the stacks of
//! other processes, with copies of their tables. Both use this code. They differ in how a word of the stack is read
//! ([`Stack`]), and in how the module of an address is found ([`Modules`]).
//!
//! Nothing here dereferences an address, takes a lock or, after [`Unwinder::new`], allocates memory.
//!
//! - [`walk`]: the frames of a [`stack`]; [`without_tables`]: where tables are missing;
//! - [`tables`]: the rules that lead from a frame to its caller;
//! - [`image`]: the addresses of the parts of a module in memory;
//! - [`registers`]: the only part that depends on the processor, x86-64 or aarch64; [`trampoline`]: the code to which
//!   handlers of signals return there.

#![forbid(unsafe_code)]

pub mod image;
pub mod registers;
pub mod stack;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod trampoline;
pub mod walk;
mod without_tables;

pub use image::Image;
pub use registers::Registers;
pub use stack::Stack;
pub use tables::UnwindTables;
pub use walk::{Modules, Unwinder, Walked};
