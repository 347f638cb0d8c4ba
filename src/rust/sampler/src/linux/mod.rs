//! The sampler on Linux.
//!
//! [`run`] contains the state of a run and the handler; the crate `unwind` follows the native stack, by the unwind
//! tables of the [`modules`]; [`contexts`] follows R's list of calls; [`evaluator`] finds the code of R's evaluator;
//! [`memory`] contains the buffer and the bounds of the stack; [`x86_64`] is the part that depends on the processor.

mod contexts;
mod evaluator;
mod loader;
mod memory;
mod modules;
mod run;
#[cfg(test)]
mod unwind_tests;
mod x86_64;

pub use run::{Stopped, abandon, block, check, start, state, stop, unblock};
