//! Finds the code of R's evaluator in native stacks, since R exports `Rf_eval()` only.

use super::super::memory::ProcessMemory;
use super::modules::RemoteModules;
use crate::running_r::exports::Exports;
use profile_core::error::Result;
use profile_core::joint::Evaluator;
use profile_core::joint::recording::{Frame, Tick, ticks};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_runtime::contexts::CLOSURE;
use profile_runtime::evaluator::{INTERPRETER, MOST_BETWEEN};
use profile_runtime::variables::{ALLOCATING, COPY, EVAL};
use profile_unwind::{Modules, Unwinder};
use std::collections::HashMap;
use std::ops::Range;

/// A function calls closures if at least this share of its frames contains the record of a call.
const MOSTLY: f64 = 0.95;

type Map<V> = HashMap<u64, V, foldhash::fast::RandomState>;

/// The names of the functions of R that are looked up.
pub const FUNCTIONS: [&str; 6] = [
    EVAL,
    COPY[0],
    COPY[1],
    ALLOCATING[0],
    ALLOCATING[1],
    ALLOCATING[2],
];

/// Finds the evaluator, given the address of `Rf_eval()`, those of all [`FUNCTIONS`], the outermost address of the C stack,
/// and the words of ticks.
///
/// The byte code interpreter is by far the largest function of R. Functions that call closures nearly always have a
/// record of the call in their frame.
pub fn find(
    unwinder: &mut Unwinder<RemoteModules<'_, ProcessMemory>>,
    eval: u64,
    exports: &Exports<{ FUNCTIONS.len() }>,
    stack_top: u64,
    words: &[u64],
) -> Result<Evaluator> {
    let mut evaluator = Evaluator {
        eval: unwinder.function(eval).unwrap_or(eval..eval + 1),
        ..Evaluator::default()
    };
    let lists = [
        (&COPY[..], &mut evaluator.copying),
        (&ALLOCATING[..], &mut evaluator.allocating),
    ];
    for (names, functions) in lists {
        for address in names.iter().filter_map(|name| exports.get(name)) {
            if let Some(function) = unwinder.function(address) {
                functions.try_push(function)?;
            }
        }
    }
    let Some(module) = unwinder.modules.at(eval) else {
        return Ok(evaluator);
    };
    let tables = unwinder.modules.tables(module);
    let largest = tables.and_then(|tables| tables.largest_function());
    let interpreter = largest.filter(|range| range.end - range.start > INTERPRETER);
    if let Some(interpreter) = interpreter {
        let between = ticks(words)
            .filter_map(|tick| frames_between(&tick, module, &interpreter, &evaluator.eval));
        if let Some(between) = between.min().filter(|&between| between <= MOST_BETWEEN) {
            (evaluator.interpreter, evaluator.between) = (interpreter, between);
        }
    }
    let mut functions = Functions::default();
    for tick in ticks(words) {
        for (frame, has_record) in frames_with_records(&tick, stack_top) {
            if frame.module == Some(module) {
                functions.count(frame.address, has_record, unwinder)?;
            }
        }
    }
    for (function, with, without) in functions.counts.into_values() {
        if with as f64 >= MOSTLY * (with + without) as f64 {
            evaluator.closures.try_push(function)?;
        }
    }
    Ok(evaluator)
}

/// The smallest number of frames between a frame of the interpreter and the frame of `Rf_eval()` outside of it, without
/// frames of other modules.
fn frames_between(
    tick: &Tick,
    module: usize,
    interpreter: &Range<u64>,
    eval: &Range<u64>,
) -> Option<usize> {
    let (mut since, mut least) = (None, None);
    for frame in tick.frames() {
        since = if frame.module != Some(module) {
            None
        } else if interpreter.contains(&frame.address) {
            Some(0)
        } else if eval.contains(&frame.address) {
            least = least.into_iter().chain(since).min();
            None
        } else {
            since.map(|count| count + 1)
        };
    }
    least
}

/// The frames of a tick, innermost first, and whether each contains the record of a call of a closure.
fn frames_with_records<'t>(
    tick: &Tick<'t>,
    stack_top: u64,
) -> impl Iterator<Item = (Frame, bool)> + 't {
    let closures = tick
        .contexts()
        .filter(|context| u32::from(context.flags) & CLOSURE != 0);
    let mut records = closures.map(|context| context.address).peekable();
    let mut frames = tick.frames().peekable();
    std::iter::from_fn(move || {
        let frame = frames.next()?;
        let end = frames.peek().map_or(stack_top, |outer| outer.stack_pointer);
        let mut has_record = false;
        // Records on the node stack are skipped.
        let is_before =
            |&address: &u64| address < end || address < frame.stack_pointer || address >= stack_top;
        while let Some(address) = records.next_if(is_before) {
            has_record |= (frame.stack_pointer..end).contains(&address);
        }
        Some((frame, has_record))
    })
}

/// How often functions have a frame with the record of a call.
#[derive(Default)]
struct Functions {
    /// The function of each address.
    at: Map<Option<Range<u64>>>,
    /// For each function, by its start: its range, and the numbers of its frames with and without a record.
    counts: Map<(Range<u64>, usize, usize)>,
}

impl Functions {
    fn count(
        &mut self,
        address: u64,
        has_record: bool,
        unwinder: &mut Unwinder<RemoteModules<'_, ProcessMemory>>,
    ) -> Result<()> {
        let function = match self.at.get(&address) {
            Some(function) => function.clone(),
            None => {
                let function = unwinder.function(address);
                self.at.try_put(address, function.clone())?;
                function
            }
        };
        let Some(function) = function else {
            return Ok(());
        };
        let start = function.start;
        if !self.counts.contains_key(&start) {
            self.counts.try_put(start, (function, 0, 0))?;
        }
        if let Some((_, with, without)) = self.counts.get_mut(&start) {
            *if has_record { with } else { without } += 1;
        }
        Ok(())
    }
}
