//! Interleaves R's calls and the native frames of a tick.
//!
//! R runs on the C stack, and its records of calls (contexts) are in the frames that made
//! the calls. Therefore the address of a record determines the position of its call among the
//! native frames: frames are taken from the outermost inwards, up to the one that contains the
//! record, and then R's item is inserted. There are three other cases:
//!
//! - In R >= 4.4, the call of a byte-compiled function by another one runs in the same frame, and its record is on
//!   R's node stack. The item is inserted after the frames of the evaluator, before the first frame of other code.
//! - If C code makes R evaluate a promise, the promise is on the C stack and determines the frame.
//! - If C code makes R evaluate other byte code, the order is uncertain.
//!
//! When R leaves code by a long jump, it first removes the records, and then the frames. If a tick
//! occurs in between, a frame of a function that calls closures contains no record, which shows
//! that a record is missing. In R >= 4.4, a call that runs in the frame of its caller has no such frame, so for some
//! hundred instructions of a jump it may be missing.
//!
//! C++ changes frames before it jumps to the handler of an exception, see [`Interleaver::is_changed_by_unwinder()`].
//!
//! While R copies an object, an item for that is the innermost one.
//!
//! R's items replace the evaluator's own frames. The remaining native frames belong to code that R called, directly or
//! indirectly. The C library and the package methods are regarded as part of R when R calls them.

use super::recording::{Context, Evaluator, Frame, Module, Recording, Role, Tick};
use crate::error::Result;
use crate::limits::memory::TryGrow;
use std::ops::Range;

/// A part of a stack: a native frame, or the item with this number of R's line, counted from the
/// innermost one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackPart {
    Native(Frame),
    Item(usize),
    /// R copies an object. This is the innermost part.
    Copy,
}

/// The kind of code that a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    Evaluator,
    /// The C library and similar code: part of R if R calls it.
    OfR,
    /// Other code.
    Foreign,
}

/// Interleaves the ticks of one recording; its buffers are reused.
pub struct Interleaver<'a> {
    /// The kind of each module.
    kinds: Vec<CodeKind>,
    /// The number of the module that unwinds the stack for C++.
    unwinder: Option<usize>,
    evaluator: &'a Evaluator,
    stack_top: u64,
    /// The remaining frames, and all contexts, of the current tick, innermost first.
    frames: Vec<(Frame, CodeKind)>,
    contexts: Vec<Context>,
    /// The native frames that were taken since the last item, outermost first.
    run: Vec<(Frame, CodeKind)>,
    parts: Vec<StackPart>,
    /// The address at which the remaining frames end.
    end: u64,
    /// The stack pointer of the innermost frame, where the used part of the stack begins.
    innermost: u64,
}

impl<'a> Interleaver<'a> {
    pub fn new(recording: &'a Recording) -> Result<Interleaver<'a>> {
        let mut kinds = Vec::new();
        kinds.try_extend_from(recording.modules.iter().map(kind))?;
        Ok(Interleaver {
            kinds,
            unwinder: recording.modules.iter().position(is_unwinder),
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

    /// The parts of a stack, outermost first; `None` if their order is uncertain. R's line has `items` items, which
    /// are the innermost contexts. `is_call` returns whether an item is one of R's builtins that call native code;
    /// these are replaced by the code that they called.
    pub fn interleave(
        &mut self,
        tick: &Tick,
        items: usize,
        is_call: impl Fn(usize) -> bool,
    ) -> Result<Option<&[StackPart]>> {
        self.parts.clear();
        self.run.clear();
        self.contexts.clear();
        for context in tick.contexts() {
            self.contexts.try_push(context)?;
        }
        self.take_frames(tick)?;
        if self.is_changed_by_unwinder() {
            return Ok(None);
        }
        let is_copy = self.is_copy();
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
                // R truncated its line here, so outer items are unknown.
                self.run.clear();
                if number >= items {
                    continue;
                }
            }
            if !self.end_run(true, &is_call)? {
                return Ok(None);
            }
            self.parts.try_push(StackPart::Item(number))?;
        }
        while self.take_frame()?.is_some() {}
        let certain = self.end_run(false, &is_call)?;
        if is_copy {
            self.parts.try_push(StackPart::Copy)?;
        }
        Ok(certain.then_some(&self.parts))
    }

    /// Sets the frames of a tick, without those outside R: the start of the program, or the program that embeds R.
    fn take_frames(&mut self, tick: &Tick) -> Result<()> {
        self.frames.clear();
        // What a hook does is not part of the code that is recorded.
        let first = tick.frames().position(|frame| {
            let mut hooks = self.evaluator.hooks.iter();
            hooks.any(|hook| hook.contains(&frame.address))
        });
        let first = first.map_or(0, |hook| hook + 1);
        for (number, frame) in tick.frames().enumerate().skip(first) {
            let kind = match frame.module {
                Some(module) => self.kinds.get(module).copied(),
                // The innermost frame may be in code that was generated at run time. An outer frame without a module
                // is more likely the result of a damaged stack.
                None if number == 0 => Some(CodeKind::Foreign),
                None => None,
            };
            if let Some(kind) = kind {
                self.frames.try_push((frame, kind))?;
            }
        }
        if tick.has_whole_stack() {
            let outermost = self.frames.iter().rposition(|f| f.1 == CodeKind::Evaluator);
            self.frames.truncate(outermost.map_or(0, |at| at + 1));
        }
        self.innermost = self.frames.first().map_or(u64::MAX, |f| f.0.stack_pointer);
        // If outer frames are missing, it is unknown where the last one ends.
        self.end = match self.frames.last() {
            Some((last, _)) if !tick.has_whole_stack() => last.stack_pointer,
            _ => self.stack_top,
        };
        Ok(())
    }

    /// Whether the stack is the one that C++ prepares for a jump: it stores the address at which the function with the
    /// handler was left as the return address of its own frame, so that this address occurs twice in a row. Otherwise it
    /// cannot: a function that calls itself there has not called the unwinder there.
    fn is_changed_by_unwinder(&self) -> bool {
        self.frames.windows(3).any(|frames| {
            let [(callee, _), (inner, _), (outer, _)] = frames else {
                return false;
            };
            inner.address == outer.address
                && callee.module == self.unwinder
                && self.unwinder.is_some()
                && inner.module != self.unwinder
        })
    }

    /// Whether R copies an object. Native code may have called the function that copies, but none runs inside of it.
    /// Allocating memory for the copy, which may collect garbage, is not copying.
    fn is_copy(&self) -> bool {
        let Evaluator {
            eval,
            interpreter,
            closures,
            copying,
            allocating,
            ..
        } = self.evaluator;
        for (frame, kind) in &self.frames {
            let is_one_of = |functions: &[Range<u64>]| {
                let mut functions = functions.iter();
                functions.any(|function| function.contains(&frame.address))
            };
            if *kind == CodeKind::Foreign {
                return false;
            } else if is_one_of(copying) {
                return true;
            } else if eval.contains(&frame.address)
                || interpreter.contains(&frame.address)
                || is_one_of(closures)
                || is_one_of(allocating)
            {
                return false;
            }
        }
        false
    }

    fn is_on_stack(&self, address: u64) -> bool {
        address >= self.innermost && address < self.stack_top
    }

    /// Takes frames up to the one that contains an address of the C stack.
    fn run_up_to(&mut self, address: u64) -> Result<()> {
        while address < self.end && self.take_frame()?.is_some_and(|start| address < start) {}
        Ok(())
    }

    /// Takes the evaluator's frames up to the next frame of other code, or up to the one that contains
    /// the next context on the C stack.
    fn run_evaluator(&mut self, next: Option<u64>) -> Result<()> {
        while let Some((frame, kind)) = self.frames.last() {
            if *kind != CodeKind::Evaluator || holds(frame, next) {
                break;
            }
            self.take_frame()?;
        }
        Ok(())
    }

    /// Whether, before the frame that contains the next context, foreign code makes R run byte code
    /// that is not a promise. A context on the node stack may belong to that byte code or to
    /// code further out; if the byte code were a promise, the context would refer to it.
    ///
    /// To evaluate a promise, `Rf_eval()` calls itself, and then the interpreter. For loops, which R
    /// compiles before it runs them, it calls other functions in between.
    fn interprets_for_c_code(&self, next: Option<u64>) -> bool {
        let Evaluator {
            eval,
            interpreter,
            between,
            ..
        } = self.evaluator;
        // The number of calls of `Rf_eval()` since the last frame of foreign code, and of frames
        // since the last of these calls.
        let mut foreign = false;
        let mut evals = 0;
        let mut since = 0;
        for (frame, kind) in self.frames.iter().rev() {
            if holds(frame, next) {
                break;
            }
            if *kind != CodeKind::Evaluator {
                foreign = true;
                evals = 0;
            } else if eval.contains(&frame.address) {
                evals += 1;
                since = 0;
                if foreign && interpreter.is_empty() {
                    // Without the address of the interpreter, it is unknown what runs.
                    return true;
                }
            } else if interpreter.contains(&frame.address) {
                if foreign && !(evals > 1 && since == *between) {
                    return true;
                }
                // The code that it calls belongs to the promise.
                foreign = false;
            } else {
                since += 1;
            }
        }
        false
    }

    /// Takes the outermost remaining frame; returns the lowest address that it may contain.
    fn take_frame(&mut self) -> Result<Option<u64>> {
        let Some(frame) = self.frames.pop() else {
            return Ok(None);
        };
        self.run.try_push(frame)?;
        self.end = frame.0.stack_pointer;
        Ok(Some(self.end))
    }

    /// Adds the run of native frames before an item, or at the innermost end, to the parts. Returns whether it
    /// certainly lacks no record of a call.
    fn end_run(&mut self, before_item: bool, is_call: impl Fn(usize) -> bool) -> Result<bool> {
        let foreign = |part: &(Frame, CodeKind)| part.1 == CodeKind::Foreign;
        if let Some(first) = self.run.iter().position(foreign) {
            let end = match self.run.iter().rposition(foreign) {
                Some(last) if before_item => last + 1,
                _ => self.run.len(),
            };
            if matches!(self.parts.last(), Some(StackPart::Item(number)) if is_call(*number)) {
                self.parts.pop();
            }
            let kept = self.run[first..end].iter();
            self.parts
                .try_extend_from(kept.map(|(frame, _)| StackPart::Native(*frame)))?;
        }
        let certain = !self.lacks_a_call();
        self.run.clear();
        Ok(certain)
    }

    /// Whether foreign code in the run was called by a closure that has no record. A frame that contains a record is
    /// always the last one of its run.
    fn lacks_a_call(&self) -> bool {
        let calls_closure = |(frame, _): &(Frame, CodeKind)| {
            let mut functions = self.evaluator.closures.iter();
            functions.any(|function| function.contains(&frame.address))
        };
        let inside = self.run.iter().skip_while(|part| !calls_closure(part));
        inside.skip(1).any(|(_, kind)| *kind == CodeKind::Foreign)
    }
}

/// Whether a frame contains an address. The next outer frame does not contain it, since that frame was already taken.
fn holds(frame: &Frame, address: Option<u64>) -> bool {
    address.is_some_and(|address| frame.stack_pointer <= address)
}

fn file_name(module: &Module) -> &str {
    module.path.rsplit('/').next().unwrap_or_default()
}

fn is_unwinder(module: &Module) -> bool {
    file_name(module).starts_with("libgcc_s.")
}

fn kind(module: &Module) -> CodeKind {
    if module.role == Role::Evaluator {
        return CodeKind::Evaluator;
    }
    let name = file_name(module);
    let is_c_library = C_LIBRARY.iter().any(|part| {
        let rest = name.strip_prefix(part);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    });
    // R's dispatch of S4 methods is in a package.
    let is_dispatch = module.path.ends_with("/methods/libs/methods.so");
    if is_c_library || is_dispatch {
        CodeKind::OfR
    } else {
        CodeKind::Foreign
    }
}

/// The names of the libraries of the C library, of the loader, and of the code that the kernel adds.
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
