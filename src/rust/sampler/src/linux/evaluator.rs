//! Finds the code of R's evaluator.
//!
//! R exports `Rf_eval()`, but its byte code interpreter has no symbol in most builds of R. The
//! function that starts a recording is byte-compiled, as is all code of installed packages, so the
//! interpreter is on the stack at that time. It is recognised by its size: with a case for each
//! instruction it is larger than any other function there.

use super::contexts::{self, Contexts};
use super::memory::{Limits, Stack};
use super::modules::Modules;
use super::registers::registers_here;
use profile_core::error::Result;
use profile_core::joint::Evaluator;
use profile_core::joint::recording::PAIR;
use profile_runtime::evaluator::{INTERPRETER, MOST_BETWEEN};
use profile_runtime::variables::{ALLOCATING, COPY};
use profile_unwind::{Modules as _, Unwinder};
use std::ops::Range;

const FRAMES: usize = 1000;

/// The functions at these addresses.
fn functions<const COUNT: usize>(
    unwinder: &mut Unwinder<Modules>,
    addresses: [Option<u64>; COUNT],
) -> Vec<Range<u64>> {
    let addresses = addresses.into_iter().flatten();
    addresses
        .filter_map(|address| unwinder.function(address))
        .collect()
}

/// Finds the evaluator. The range of the interpreter is empty if it is not found.
pub fn find(
    unwinder: &mut Unwinder<Modules>,
    contexts: &Contexts,
    limits: Limits,
    hooks: [u64; 4],
) -> Result<Evaluator> {
    let address = contexts::evaluator()?;
    let module = unwinder.modules.at(address);
    let registers = registers_here();
    let stack = Stack::in_use(registers.stack_pointer(), limits);
    let mut frames = [0; FRAMES * PAIR];
    // Frames that do not fit are the outermost ones.
    let walked = unwinder.walk(registers, stack, &mut frames);
    let count = walked.map_or(FRAMES, |walked| walked.frames);
    let frames = frames.get(..count * PAIR).unwrap_or_default();
    let callers = frames
        .chunks_exact(PAIR)
        .map(|pair| (pair[0] << 16 >> 16).wrapping_sub(1));
    let mut evaluator = Evaluator {
        eval: unwinder.function(address).unwrap_or(address..address + 1),
        copying: functions(unwinder, COPY.map(|name| contexts::symbol(name).ok())),
        allocating: functions(unwinder, ALLOCATING.map(|name| contexts::symbol(name).ok())),
        hooks: functions(unwinder, hooks.map(Some)),
        ..Evaluator::default()
    };
    let length = |function: &Range<u64>| function.end - function.start;
    for caller in callers.clone() {
        if let Some(function) = unwinder.function(caller) {
            let is_r = unwinder.modules.at(caller) == module;
            if is_r && length(&function) > INTERPRETER.max(length(&evaluator.interpreter)) {
                evaluator.interpreter = function;
            }
        }
    }
    let mut outwards = callers
        .clone()
        .skip_while(|caller| !evaluator.interpreter.contains(caller));
    outwards.next();
    match outwards.position(|caller| evaluator.eval.contains(&caller)) {
        Some(between) if between <= MOST_BETWEEN => evaluator.between = between,
        // It is unknown how the interpreter was called.
        _ => evaluator.interpreter = 0..0,
    }
    // Finds the frame that contains each record. A frame ends where its caller's begins.
    let pointers = frames.chunks_exact(PAIR).map(|pair| pair[1]);
    for record in contexts.closures().filter(|&record| record < limits.top) {
        let callers = callers.clone().zip(pointers.clone());
        let holder = callers.take_while(|(_, pointer)| *pointer <= record).last();
        let function = holder.and_then(|(caller, _)| {
            let is_r = unwinder.modules.at(caller) == module;
            unwinder.function(caller).filter(|_| is_r)
        });
        if let Some(function) = function {
            if !evaluator.closures.contains(&function) {
                evaluator.closures.push(function);
            }
        }
    }
    Ok(evaluator)
}
