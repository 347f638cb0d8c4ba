//! The sampler on Linux.
//!
//! [`run`] contains the state of a run and the handler; [`unwind`] unwinds the native stack, by the
//! [`unwind_tables`] of the [`modules`], whose headers [`image`] reads; [`contexts`] follows R's list
//! of calls; [`evaluator`] finds the code of R's evaluator; [`memory`] contains the buffer and the
//! bounds of the stack; [`x86_64`] is the part that depends on the processor.

mod contexts;
mod evaluator;
mod image;
mod memory;
mod modules;
mod run;
mod unwind;
mod unwind_tables;
mod x86_64;

pub use run::{Stopped, abandon, block, check, start, state, stop, unblock};
