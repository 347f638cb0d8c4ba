//! Which code is R's evaluator.
//!
//! R exports `Rf_eval()`. Its interpreter of byte code has no name in most builds of
//! R. But the function that starts a recording is byte-compiled, as all code of
//! installed packages, so the interpreter is on the stack then; and with a case for
//! each instruction it is larger than any other function there.

use super::contexts;
use super::memory::{Limits, Stack};
use super::unwind::Unwinder;
use super::x86_64::Registers;
use profile_core::error::Result;
use profile_core::joint::Evaluator;
use profile_core::joint::recording::PAIR;

/// No other function of the evaluator comes near this. R's interpreter has 20 to 40 KB.
const LARGE: u64 = 10_000;
const FRAMES: usize = 1000;

pub fn find(unwinder: &mut Unwinder, limits: Limits) -> Result<Evaluator> {
    let address = contexts::evaluator()?;
    let module = unwinder.modules.at(address);
    let registers = Registers::here();
    let stack = Stack::in_use(registers.stack_pointer(), limits);
    let mut frames = [0; FRAMES * PAIR];
    // What does not fit is the program's start.
    unwinder.walk(registers, stack, &mut frames);
    let mut interpreter = 0..0;
    for pair in frames.chunks_exact(PAIR) {
        let caller = (pair[0] << 16 >> 16).wrapping_sub(1);
        let Some(function) = unwinder.function(caller) else {
            continue;
        };
        let length = function.end - function.start;
        let is_r = unwinder.modules.at(caller) == module;
        if is_r && length > LARGE.max(interpreter.end - interpreter.start) {
            interpreter = function;
        }
    }
    Ok(Evaluator {
        eval: unwinder.function(address).unwrap_or(address..address + 1),
        interpreter,
    })
}
