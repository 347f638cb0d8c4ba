//! Starting and stopping, and what the handler shares with the rest.
//!
//! [`run`] has the state of a run and the handler; [`unwind`] follows the native
//! stack, by the rules that [`tables`] finds in the [`modules`]; [`contexts`] follows
//! R's list of calls; [`evaluator`] finds R's own; [`memory`] has the buffer and the bounds of what may be read;
//! [`x86_64`] is what is special to the processor.

mod contexts;
mod evaluator;
mod memory;
mod modules;
mod run;
mod tables;
mod unwind;
mod x86_64;

pub use run::{Stopped, abandon, block, check, start, state, stop, unblock};
