//! Interleaves R's calls and the native frames of a tick.
//!
//! R runs on the C stack, and its records of calls (contexts) are in the frames that made
//! the calls. So the address of a record gives the position of its call among the native
//! frames: these are taken from the outermost inwards, up to the one that contains the
//! record, and then R's item follows. There are three other cases:
//!
//! - In R >= 4.4 a byte-compiled function that calls another one continues in the same
//!   frame, and the record is on another stack. The item follows the frames of the
//!   evaluator, up to the first that is not R's.
//! - If C code made R evaluate a promise, the promise is on the C stack and gives the
//!   frame.
//! - If C code made R evaluate byte code of its own, the order is not certain.
//!
//! When R leaves code by a long jump, it removes the records first, and then the frames.
//! A frame that calls a closure and has no record shows that one is missing.
//!
//! R's functions replace the evaluator's own frames. What remains is the code that R
//! called, and what that called. The C library counts as part of R where R calls it, and
//! so does the package methods.

use super::recording::{Context, Evaluator, Frame, Module, Recording, Role, Tick};
use crate::error::Result;
use crate::limits::memory::TryGrow;

/// A part of a stack: a native frame, or R's item of this number, counted from the
/// innermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Native(Frame),
    Item(usize),
}

/// Whose code a frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Evaluator,
    /// The C library and the like: R's where R calls it.
    OfR,
    Foreign,
}

/// Interleaves the ticks of one recording; its buffers are reused.
pub struct Interleaver<'a> {
    /// Of each module.
    kinds: Vec<Kind>,
    evaluator: &'a Evaluator,
    stack_top: u64,
    /// Of the tick at hand, innermost first.
    frames: Vec<(Frame, Kind)>,
    contexts: Vec<Context>,
    /// Native frames since the last item, outermost first.
    run: Vec<(Frame, Kind)>,
    parts: Vec<Part>,
    /// The frames that are left lie below this address.
    end: u64,
    /// The stack pointer of the innermost frame: nothing of the stack is below it.
    innermost: u64,
}

impl<'a> Interleaver<'a> {
    pub fn new(recording: &'a Recording) -> Result<Interleaver<'a>> {
        let mut kinds = Vec::new();
        kinds.try_extend_from(recording.modules.iter().map(kind), "modules")?;
        Ok(Interleaver {
            kinds,
            evaluator: &recording.evaluator,
            stack_top: recording.stack_top,
            frames: Vec::new(),
            contexts: Vec::new(),
            run: Vec::new(),
            parts: Vec::new(),
            end: 0,
            innermost: 0,
        })
    }

    /// The parts of a stack, outermost first; `None` if their order is not certain. R's
    /// line has `items` items, which are the innermost contexts. `is_call` reports whether
    /// an item is one of R's builtins that call native code; the code that they called
    /// replaces them.
    pub fn interleave(
        &mut self,
        tick: &Tick,
        items: usize,
        is_call: impl Fn(usize) -> bool,
    ) -> Result<Option<&[Part]>> {
        self.parts.clear();
        self.run.clear();
        self.contexts.clear();
        for context in tick.contexts() {
            self.contexts.try_push(context, "a stack")?;
        }
        self.take_frames(tick)?;
        for number in (0..self.contexts.len()).rev() {
            let context = self.contexts[number];
            if self.is_on_stack(context.address) {
                self.run_up_to(context.address)?;
            } else {
                if context.promise != 0 {
                    self.run_up_to(context.promise)?;
                }
                let next = self.contexts[..number].iter().rev();
                let next = next
                    .map(|context| context.address)
                    .find(|&address| self.is_on_stack(address));
                self.run_evaluator(next)?;
                if self.interprets_for_c_code(next) {
                    return Ok(None);
                }
            }
            if items < self.contexts.len() && number + 1 >= items {
                // R cut its line here: what is further out is not known.
                self.run.clear();
                if number >= items {
                    continue;
                }
            }
            if !self.end_run(true, &is_call)? {
                return Ok(None);
            }
            self.parts.try_push(Part::Item(number), "a stack")?;
        }
        while self.take_frame()?.is_some() {}
        let certain = self.end_run(false, &is_call)?;
        Ok(certain.then_some(&self.parts))
    }

    /// The frames of a tick, without those outside R: the start of the program, or
    /// the program that R is a part of.
    fn take_frames(&mut self, tick: &Tick) -> Result<()> {
        self.frames.clear();
        for (number, frame) in tick.frames().enumerate() {
            let kind = match frame.module {
                Some(module) => self.kinds.get(module).copied(),
                // Code that was made at run time may run; as a caller it is more
                // likely a damaged stack.
                None if number == 0 => Some(Kind::Foreign),
                None => None,
            };
            if let Some(kind) = kind {
                self.frames.try_push((frame, kind), "a stack")?;
            }
        }
        if tick.has_whole_stack() {
            let outermost = self.frames.iter().rposition(|f| f.1 == Kind::Evaluator);
            self.frames.truncate(outermost.map_or(0, |at| at + 1));
        }
        self.innermost = self.frames.first().map_or(u64::MAX, |f| f.0.stack_pointer);
        // Where further frames are missing, the extent of the last one is unknown.
        self.end = match self.frames.last() {
            Some((last, _)) if !tick.has_whole_stack() => last.stack_pointer,
            _ => self.stack_top,
        };
        Ok(())
    }

    fn is_on_stack(&self, address: u64) -> bool {
        address >= self.innermost && address < self.stack_top
    }

    /// Takes frames up to the one that holds an address of the C stack.
    fn run_up_to(&mut self, address: u64) -> Result<()> {
        while address < self.end && self.take_frame()?.is_some_and(|start| address < start) {}
        Ok(())
    }

    /// Takes the evaluator's frames before the next foreign one, and before the one
    /// that holds the next context on the C stack.
    fn run_evaluator(&mut self, next: Option<u64>) -> Result<()> {
        while let Some((frame, kind)) = self.frames.last() {
            if *kind != Kind::Evaluator || holds(frame, next) {
                break;
            }
            self.take_frame()?;
        }
        Ok(())
    }

    /// Whether, before the frame that holds the next context, foreign code has R run
    /// byte code that is no promise. A context that is not on the C stack may be of such
    /// a run or of one further out; in a promise it would say so.
    ///
    /// For a promise `Rf_eval()` calls itself, and then the interpreter. Loops, which R
    /// compiles before it runs them, have other functions in between.
    fn interprets_for_c_code(&self, next: Option<u64>) -> bool {
        let Evaluator {
            eval,
            interpreter,
            between,
            ..
        } = self.evaluator;
        // Calls of `Rf_eval()` since foreign code, and frames since the last of these.
        let mut foreign = false;
        let mut evals = 0;
        let mut since = 0;
        for (frame, kind) in self.frames.iter().rev() {
            if holds(frame, next) {
                break;
            }
            if *kind != Kind::Evaluator {
                foreign = true;
                evals = 0;
            } else if eval.contains(&frame.address) {
                evals += 1;
                since = 0;
                if foreign && interpreter.is_empty() {
                    // Whatever it runs.
                    return true;
                }
            } else if interpreter.contains(&frame.address) {
                if foreign && !(evals > 1 && since == *between) {
                    return true;
                }
                // What it calls is inside the promise.
                foreign = false;
            } else {
                since += 1;
            }
        }
        false
    }

    /// Takes the next frame inwards; gives the lowest address that it may hold.
    fn take_frame(&mut self) -> Result<Option<u64>> {
        let Some(frame) = self.frames.pop() else {
            return Ok(None);
        };
        self.run.try_push(frame, "a stack")?;
        self.end = frame.0.stack_pointer;
        Ok(Some(self.end))
    }

    /// Completes the run of native frames before an item, or at the innermost end. Returns
    /// whether it is certain that no call of R is missing in it.
    fn end_run(&mut self, before_item: bool, is_call: impl Fn(usize) -> bool) -> Result<bool> {
        let foreign = |part: &(Frame, Kind)| part.1 == Kind::Foreign;
        if let Some(first) = self.run.iter().position(foreign) {
            let end = match self.run.iter().rposition(foreign) {
                Some(last) if before_item => last + 1,
                _ => self.run.len(),
            };
            if matches!(self.parts.last(), Some(Part::Item(number)) if is_call(*number)) {
                self.parts.pop();
            }
            let kept = self.run[first..end].iter();
            self.parts
                .try_extend_from(kept.map(|(frame, _)| Part::Native(*frame)), "a stack")?;
        }
        let certain = !self.lacks_a_call();
        self.run.clear();
        Ok(certain)
    }

    /// Whether foreign code was called by a closure that has no record: the frame that
    /// holds one is the last of its run.
    fn lacks_a_call(&self) -> bool {
        let calls_closure = |(frame, _): &(Frame, Kind)| {
            let mut functions = self.evaluator.closures.iter();
            functions.any(|function| function.contains(&frame.address))
        };
        let inside = self.run.iter().skip_while(|part| !calls_closure(part));
        inside.skip(1).any(|(_, kind)| *kind == Kind::Foreign)
    }
}

/// Whether a frame, the next outwards being gone, holds an address.
fn holds(frame: &Frame, address: Option<u64>) -> bool {
    address.is_some_and(|address| frame.stack_pointer <= address)
}

fn kind(module: &Module) -> Kind {
    if module.role == Role::Evaluator {
        return Kind::Evaluator;
    }
    let name = module.path.rsplit('/').next().unwrap_or_default();
    let is_c_library = C_LIBRARY.iter().any(|part| {
        let rest = name.strip_prefix(part);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    });
    // R's dispatch of S4 methods is in a package.
    let is_dispatch = module.path.ends_with("/methods/libs/methods.so");
    if is_c_library || is_dispatch {
        Kind::OfR
    } else {
        Kind::Foreign
    }
}

/// Its parts, and what the loader and the kernel add.
const C_LIBRARY: [&str; 8] = [
    "libc",
    "libm",
    "libpthread",
    "libdl",
    "librt",
    "ld-linux",
    "linux-vdso",
    "linux-gate",
];

#[cfg(test)]
mod tests;
