//! R's calls and the native frames of a tick, in one order.
//!
//! R runs on the C stack, and its records of calls lie in the frames that made them.
//! So a record tells between which native frames its call belongs: they are gone
//! through from the outermost inwards, up to the one that holds the record, and then
//! comes R's item. R >= 4.4 has a byte-compiled call of a byte-compiled function go on
//! in the same frame, with its record on another stack: it follows the frames of the
//! evaluator, up to the first that is not R's. Where C code made R evaluate a promise,
//! the promise is on the C stack and tells the frame. Where C code made R evaluate byte
//! code of its own, nothing tells, and the order is not certain.
//!
//! R's functions stand for the evaluator's own frames. What remains is what R called
//! and what that called; the C library counts as R's where R calls it, and so does the
//! package methods.

use super::recording::{Context, Evaluator, Frame, Module, Recording, Role, Tick};
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
    /// The C library and the like: R's where R calls it.
    OfR,
    Foreign,
}

/// Weaves the ticks of one recording; its memory is used again and again.
pub struct Weaver<'a> {
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

impl<'a> Weaver<'a> {
    pub fn new(recording: &'a Recording) -> Result<Weaver<'a>> {
        let mut kinds = Vec::new();
        kinds.try_extend_from(recording.modules.iter().map(kind), "modules")?;
        Ok(Weaver {
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

    /// The parts of a stack, outermost first; `None` if their order is not certain. R's line has `items` items, which are the
    /// innermost contexts; `is_call` says of an item whether it is one of R's builtins
    /// that call native code: what they called stands for them.
    pub fn weave(
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
            self.end_run(true, &is_call)?;
            self.parts.try_push(Part::Item(number), "a stack")?;
        }
        while self.take_frame()?.is_some() {}
        self.end_run(false, &is_call)?;
        Ok(Some(&self.parts))
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
mod tests {
    use super::super::recording::{EXACT, PAIR, WHOLE_CONTEXTS, WHOLE_STACK};
    use super::*;
    use std::ops::Range;

    const R: u64 = 0;
    const PROGRAM: u64 = 1;
    const LIBC: u64 = 2;
    const OURS: u64 = 3;
    const TOP: u64 = 10_000;
    /// Records of calls that are not on the C stack.
    const NODES: u64 = 0x7000_0000;
    /// Frames of R with these numbers are of `Rf_eval()`, and of the interpreter.
    const EVAL: Range<u64> = 20..22;
    const INTERPRETER: Range<u64> = 22..24;

    /// Frames as (module, stack pointer), outermost first; contexts as (address, promise),
    /// outermost first. The program counter of a frame is 100 times its module and its
    /// number from outside.
    struct Example {
        frames: Vec<(u64, u64)>,
        contexts: Vec<(u64, u64)>,
        whole: bool,
        items: usize,
        calls: Vec<usize>,
    }

    /// The stack in a line, outermost first: items from `a` outwards in, native frames
    /// by module and number.
    fn woven(example: &Example) -> String {
        let mut words = vec![
            example.frames.len() as u64 | (example.contexts.len() as u64) << 32,
            WHOLE_CONTEXTS | if example.whole { WHOLE_STACK } else { 0 },
            0,
            0,
        ];
        let frames = example.frames.iter().enumerate().rev();
        for (number, &(module, pointer)) in frames {
            let innermost = number + 1 == example.frames.len();
            let counter = 100 * module + number as u64 + u64::from(!innermost);
            words.extend([
                counter | module << 48,
                pointer | (u64::from(innermost) * EXACT),
            ]);
        }
        for &(address, promise) in example.contexts.iter().rev() {
            words.extend([address | 4 << 48, promise]);
        }
        assert_eq!(words.len() % PAIR, 0);
        let module = |path: &str, role| Module {
            path: path.to_owned(),
            role,
            ..Module::default()
        };
        let recording = Recording {
            words: &words,
            modules: vec![
                module("/usr/lib/R/lib/libR.so", Role::Evaluator),
                module("/usr/lib/R/bin/exec/R", Role::Program),
                module("/lib/libc.so.6", Role::Library),
                module("/lib/libcustom.so", Role::Library),
            ],
            evaluator: Evaluator {
                eval: EVAL,
                interpreter: INTERPRETER,
                between: 0,
            },
            stack_top: TOP,
            sizes_tell: false,
            lost: 0,
        };
        let mut weaver = Weaver::new(&recording).unwrap();
        let tick = recording.ticks().next().unwrap();
        let all = example.contexts.len();
        let is_call = |item: usize| example.calls.contains(&(all - 1 - item));
        let Some(parts) = weaver.weave(&tick, example.items, is_call).unwrap() else {
            return "uncertain".to_owned();
        };
        let words: Vec<String> = parts
            .iter()
            .map(|part| match part {
                Part::Item(item) => char::from(b'a' + (all - 1 - item) as u8).to_string(),
                Part::Native(frame) => match frame.address {
                    100..200 => format!("program{}", frame.address - 100),
                    200..300 => format!("libc{}", frame.address - 200),
                    300.. => format!("ours{}", frame.address - 300),
                    address => format!("R{address}"),
                },
            })
            .collect();
        words.join(" ")
    }

    fn example(frames: &[(u64, u64)], contexts: &[(u64, u64)]) -> Example {
        Example {
            frames: frames.to_vec(),
            contexts: contexts.to_vec(),
            whole: true,
            items: contexts.len(),
            calls: Vec::new(),
        }
    }

    /// `a()` calls native code, that calls `b()`, that calls native code again.
    fn nested() -> Example {
        example(
            &[
                (PROGRAM, 9900),
                (LIBC, 9800),
                (R, 9700),
                (R, 9500), // has the record of a
                (OURS, 9300),
                (R, 9200),
                (R, 9000), // has the record of b
                (R, 8900),
                (OURS, 8800),
                (OURS, 8700),
            ],
            &[(9600, 0), (9100, 0)],
        )
    }

    #[test]
    fn native_frames_stand_below_the_call_that_made_them() {
        assert_eq!(woven(&nested()), "a ours4 b ours8 ours9");
    }

    #[test]
    fn what_is_outside_r_is_left_out() {
        let only_r = example(&[(PROGRAM, 9900), (LIBC, 9800), (R, 9700)], &[]);
        assert_eq!(woven(&only_r), "");
        let embedded = example(&[(OURS, 9900), (R, 9800), (OURS, 9700)], &[]);
        assert_eq!(woven(&embedded), "ours2");
    }

    #[test]
    fn the_c_library_counts_as_rs_where_r_calls_it() {
        let copies = example(&[(R, 9700), (LIBC, 9600)], &[(9800, 0)]);
        assert_eq!(woven(&copies), "a");
        let ours = example(
            &[(R, 9700), (OURS, 9600), (LIBC, 9500), (R, 9400)],
            &[(9800, 0)],
        );
        assert_eq!(woven(&ours), "a ours1 libc2 R3");
    }

    #[test]
    fn a_builtin_that_calls_native_code_is_replaced_by_it() {
        let mut call = example(&[(R, 9500), (OURS, 9400)], &[(9700, 0), (9600, 0)]);
        assert_eq!(woven(&call), "a b ours1");
        call.calls = vec![1];
        assert_eq!(woven(&call), "a ours1");
        // There is nothing yet to stand for it.
        call.frames.truncate(1);
        assert_eq!(woven(&call), "a b");
    }

    #[test]
    fn calls_off_the_c_stack_follow_the_evaluator() {
        let compiled = example(
            &[
                (R, 9700), // runs a, b and c
                (OURS, 9500),
                (R, 9300),
                (R, 9100), // has the record of d, runs e
                (OURS, 9000),
            ],
            &[
                (9800, 0),
                (NODES + 10, 0),
                (NODES + 20, 0),
                (9200, 0),
                (NODES + 30, 0),
            ],
        );
        assert_eq!(woven(&compiled), "a b c ours1 d e ours4");
    }

    #[test]
    fn a_promise_that_c_code_forced_tells_the_frame() {
        let promise = 9350;
        let forced = example(
            &[
                (R, 9700), // runs a and b
                (OURS, 9500),
                (R, 9300), // has the promise
                (R, 9100), // runs c
                (OURS, 9000),
            ],
            &[(9800, 0), (NODES + 10, 0), (NODES + 20, promise)],
        );
        assert_eq!(woven(&forced), "a b ours1 c ours4");
    }

    #[test]
    fn byte_code_that_c_code_had_evaluated_makes_the_order_uncertain() {
        let after = |foreign: usize, frames_of_r: usize| {
            let mut frames = vec![(R, 9700)];
            frames.resize(1 + foreign, (OURS, 9500));
            frames.resize(1 + foreign + frames_of_r, (R, 9300));
            frames.push((OURS, 9000));
            woven(&example(&frames, &[(9800, 0), (NODES + 10, 0)]))
        };
        // Frames 20 and 21 are of `Rf_eval()`, 22 and 23 of the interpreter.
        assert_eq!(after(20, 2), "uncertain");
        // One more in front: `Rf_eval()` had a promise evaluated.
        assert_eq!(
            after(19, 3).split(' ').skip(21).collect::<Vec<_>>(),
            ["R20", "R21", "R22", "ours23"]
        );
        // No interpreter, no byte code.
        assert!(after(20, 1).ends_with("ours20 R21 ours22"));
        // The interpreter, but not by `Rf_eval()`.
        assert_eq!(after(21, 1), "uncertain");
    }

    #[test]
    fn where_the_line_was_cut_nothing_further_out_is_told() {
        let mut cut = nested();
        cut.items = 1;
        assert_eq!(woven(&cut), "b ours8 ours9");
    }

    #[test]
    fn a_stack_that_was_not_followed_to_its_end_keeps_what_is_sure() {
        let mut lost = nested();
        lost.whole = false;
        lost.frames.drain(..5);
        // Frame 5 of the whole stack is now the outermost that is known.
        assert_eq!(woven(&lost), "a b ours3 ours4");
        // Only the innermost frame is.
        lost.frames.drain(..4);
        assert_eq!(woven(&lost), "a b ours0");
    }

    #[test]
    fn a_caller_in_no_module_is_damage() {
        let mut odd = example(&[(R, 9700), (OURS, 9600)], &[(9800, 0)]);
        odd.frames[0].0 = 99;
        odd.whole = false;
        assert_eq!(woven(&odd), "a ours1");
    }
}
