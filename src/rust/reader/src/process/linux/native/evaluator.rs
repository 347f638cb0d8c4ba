//! Finds the code of R's evaluator in native stacks, since R exports `Rf_eval()` only.

use super::super::memory::ProcessMemory;
use super::modules::RemoteModules;
use profile_core::error::Result;
use profile_core::joint::{Evaluator, Recording};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_runtime::evaluator::{INTERPRETER, MOST_BETWEEN};
use profile_unwind::{Modules, Unwinder};
use std::collections::HashMap;
use std::ops::Range;

/// A function calls closures if at least this share of its frames contains the record of a call.
const MOSTLY: f64 = 0.95;

/// Finds the evaluator, given the address of `Rf_eval()`, the outermost address of the C stack, and the ticks.
///
/// The byte code interpreter is by far the largest function of R. Functions that call closures nearly always have a
/// record of the call in their frame.
pub fn find(
    unwinder: &mut Unwinder<RemoteModules<'_, ProcessMemory>>,
    eval: u64,
    stack_top: u64,
    words: &[u64],
) -> Result<Evaluator> {
    let mut evaluator = Evaluator {
        eval: eval..eval + 1,
        ..Evaluator::default()
    };
    let Some(module) = unwinder.modules.at(eval) else {
        return Ok(evaluator);
    };
    evaluator.eval = unwinder.function(eval).unwrap_or(evaluator.eval);
    let tables = unwinder.modules.tables(module);
    let largest = tables.and_then(|tables| tables.largest_function());
    let largest = largest.filter(|range| range.end - range.start > INTERPRETER);
    let interpreter = largest.unwrap_or_default();
    let mut functions: HashMap<u64, Option<Range<u64>>, foldhash::fast::RandomState> =
        HashMap::default();
    // For each function, by its start address: its range, and the numbers of its frames with and without a
    // record.
    let mut counts: HashMap<u64, (Range<u64>, usize, usize), foldhash::fast::RandomState> =
        HashMap::default();
    let mut between = usize::MAX;
    let all = Recording {
        words,
        modules: Vec::new(),
        evaluator: Evaluator::default(),
        stack_top,
        lines_written_at_once: false,
        lost: 0,
        start: 0,
        duration: 0,
    };
    for tick in all.ticks() {
        let mut records = tick.contexts().map(|context| context.address).peekable();
        let mut since = None;
        let mut frames = tick.frames().peekable();
        while let Some(frame) = frames.next() {
            let end = frames.peek().map_or(stack_top, |outer| outer.stack_pointer);
            // Records on the node stack are skipped.
            let mut has_record = false;
            let is_before = |&address: &u64| {
                address < end || address < frame.stack_pointer || address >= stack_top
            };
            while let Some(address) = records.next_if(is_before) {
                has_record |= (frame.stack_pointer..end).contains(&address);
            }
            if frame.module != Some(module) {
                since = None;
                continue;
            }
            if interpreter.contains(&frame.address) {
                since = Some(0);
            } else if let Some(count) = since {
                if evaluator.eval.contains(&frame.address) {
                    between = between.min(count);
                    since = None;
                } else {
                    since = Some(count + 1);
                }
            }
            let function = match functions.get(&frame.address) {
                Some(function) => function.clone(),
                None => {
                    let function = unwinder.function(frame.address);
                    functions.try_put(frame.address, function.clone())?;
                    function
                }
            };
            if let Some(function) = function {
                let start = function.start;
                if !counts.contains_key(&start) {
                    counts.try_put(start, (function, 0, 0))?;
                }
                if let Some((_, with, without)) = counts.get_mut(&start) {
                    *if has_record { with } else { without } += 1;
                }
            }
        }
    }
    if between <= MOST_BETWEEN {
        (evaluator.interpreter, evaluator.between) = (interpreter, between);
    }
    for (function, with, without) in counts.into_values() {
        if with as f64 >= MOSTLY * (with + without) as f64 {
            evaluator.closures.try_push(function)?;
        }
    }
    Ok(evaluator)
}
