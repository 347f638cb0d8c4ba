//! The sampler on Linux.
//!
//! [`run`] contains the state of a run and the handler; the crate `unwind` follows the native stack, by the unwind
//! tables of the [`modules`]; [`contexts`] follows R's list of calls, with [`positions`] in byte
//! code, and [`titles`] reads the argument after which some are named; [`evaluator`] finds the code of R's evaluator;
//! [`owners`] finds the functions of positions, and [`codes`] those of code in other processes; [`memory`] contains the buffer and the bounds of the stack; [`registers`]
//! is the part that depends on the processor.

mod codes;
mod contexts;
mod evaluator;
mod loader;
mod memory;
mod modules;
mod owners;
mod positions;
#[cfg_attr(target_arch = "x86_64", path = "registers/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "registers/aarch64.rs")]
mod registers;
mod run;
mod titles;
#[cfg(test)]
mod unwind_tests;

pub use codes::{code_lines, find_codes};
pub use owners::{all_lines, learn, lines, owners};
pub use run::{Stopped, abandon, block, check, start, state, stop, unblock};
pub use titles::set_titled;
