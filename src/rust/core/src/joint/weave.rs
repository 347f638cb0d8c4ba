//! R's calls and the native frames of a tick, in one order.
//!
//! R runs on the C stack, and its records of calls lie in the frames that made them.
//! So a record tells between which native frames its call belongs: they are gone
//! through from the outermost inwards, up to the one that holds the record, and then
//! comes R's item. R >= 4.4 has a byte-compiled call of a byte-compiled function go on
//! in the same frame, with its record on another stack: it follows the frames of the
//! evaluator, up to the first that is not R's. Where C code made R evaluate a promise,
//! the promise is on the C stack and tells the frame.
//!
//! R's functions stand for the evaluator's own frames. What remains is what R called
//! and what that called; the C library counts as R's where R calls it.

use super::recording::{Context, Frame, Module, Role, Tick};
use crate::error::Result;
use crate::memory::TryGrow;

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
    CLibrary,
    Foreign,
}

/// Weaves the ticks of one recording; its memory is used again and again.
pub struct Weaver {
    /// Of each module.
    kinds: Vec<Kind>,
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

impl Weaver {
    pub fn new(modules: &[Module], stack_top: u64) -> Result<Weaver> {
        let mut kinds = Vec::new();
        kinds.try_extend_from(modules.iter().map(kind), "modules")?;
        Ok(Weaver {
            kinds,
            stack_top,
            frames: Vec::new(),
            contexts: Vec::new(),
            run: Vec::new(),
            parts: Vec::new(),
            end: 0,
            innermost: 0,
        })
    }

    /// The parts of a stack, outermost first. R's line has `items` items, which are the
    /// innermost contexts; `is_call` says of an item whether it is one of R's builtins
    /// that call native code: what they called stands for them.
    pub fn weave(
        &mut self,
        tick: &Tick,
        items: usize,
        is_call: impl Fn(usize) -> bool,
    ) -> Result<&[Part]> {
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
                self.run_evaluator(number)?;
            }
            if number >= items {
                // R cut its line here: what is further out is not known.
                self.run.clear();
                continue;
            }
            self.end_run(true, &is_call)?;
            self.parts.try_push(Part::Item(number), "a stack")?;
        }
        while self.take_frame()?.is_some() {}
        self.end_run(false, &is_call)?;
        Ok(&self.parts)
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
        // How far the last frame reaches nobody knows where more should follow.
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
    fn run_evaluator(&mut self, number: usize) -> Result<()> {
        let next = self.contexts[..number]
            .iter()
            .rev()
            .map(|context| context.address)
            .find(|&address| self.is_on_stack(address));
        while let Some(&(frame, kind)) = self.frames.last() {
            let holds_next = next.is_some_and(|address| frame.stack_pointer <= address);
            if kind != Kind::Evaluator || holds_next {
                break;
            }
            self.take_frame()?;
        }
        Ok(())
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

    /// Closes the run of native frames before an item, or at the innermost end.
    fn end_run(&mut self, before_item: bool, is_call: impl Fn(usize) -> bool) -> Result<()> {
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
        self.run.clear();
        Ok(())
    }
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
    if is_c_library {
        Kind::CLibrary
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
