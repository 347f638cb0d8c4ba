//! Starting and stopping, and what the handler shares with the rest.
//!
//! [`run`] has the state of a run and the handler; [`unwind`] follows the native
//! stack, by the [`unwind_tables`] of the [`modules`]; [`contexts`] follows R's list of
//! calls; [`evaluator`] finds the code of R's evaluator; [`memory`] has the buffer and the
//! bounds of the stack; [`x86_64`] is what depends on the processor.

mod contexts;
mod evaluator;
mod memory;
mod modules;
mod run;
mod unwind;
mod unwind_tables;
mod x86_64;

pub use run::{Stopped, abandon, block, check, start, state, stop, unblock};
