//! What distinguishes stacks of R: a number made from everything that the names and places of a stack depend on. The
//! stack is read and its names are looked up only if the number is new.
//!
//! Addresses of objects that R may free and use again do not suffice, so what they refer to is included, too: the symbol
//! that is called, the first line of a source reference, the instructions of byte code. Of calls and closures, only that is
//! included: R makes a new call for each method, and a function that is defined in another one is new each time.

use super::hash::Hash;
use super::module::address_of;
use super::native::Frame;
use super::titles::Titles;
use profile_core::error::{Error, Result};
use profile_core::message;
use profile_reader::running_r::RunningR;
use profile_reader::stack::calls::PositionVariables;
use profile_runtime::contexts::{
    BCBODY, BCPC, CALL, CALLFLAG, CALLFUN, CLOENV, Head, JUMP_TARGET, Layout, NEXT, TOPLEVEL,
};
use profile_runtime::objects::{
    ATTRIBUTES, BCODESXP, CAR, CDR, CLOSXP, CODE, CONSTANTS, DATA, ENCLOSING, ENVIRONMENT, ENVSXP,
    HASHTAB, LANGSXP, Type,
};
use profile_runtime::variables::TOPLEVEL_EXEC;

/// More records than R allows by far.
const MOST_RECORDS: usize = 1 << 20;

/// More environments than functions have around them.
const MOST_ENCLOSING: usize = 20;

/// The words of the record of a span with its ids.
const SPAN_WORDS: u64 = 4;

/// Where R has its records, and the position of the innermost function.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    head: u64,
    srcref: u64,
    positions: PositionVariables,
    marker: u64,
    nil: u64,
    layout: Layout,
    /// What the records of finalizers have in common, see [`JUMP_TARGET`].
    finalizer: Option<u64>,
}

/// The number while a finalizer runs that is not R code: wherever the garbage collection happened.
pub const OF_FINALIZER: u64 = u64::MAX;

impl Identity {
    /// Fails if a variable of this R is not known exactly.
    pub fn new(r: &RunningR, positions: Option<PositionVariables>) -> Result<Identity> {
        match (
            r.head.addresses(),
            r.srcrefs.as_slice(),
            r.layout,
            positions,
        ) {
            (&[head], &[srcref], Some(layout), Some(positions)) => Ok(Identity {
                head,
                srcref,
                positions,
                marker: r.values.in_byte_code,
                nil: r.values.nil,
                layout,
                finalizer: None,
            }),
            _ => Err(Error::Unsupported(message!(
                "This R stores the position of running functions in an unknown way."
            ))),
        }
    }

    /// Learns how R's records of finalizers are recognized, when one runs, given the native frames. `R_ToplevelExec()` makes
    /// records with the same values, so the code that makes them is what distinguishes them.
    ///
    /// # Safety
    /// As for [`Identity::of_stack()`].
    pub unsafe fn learn_finalizer(&mut self, frames: &[Frame]) {
        // SAFETY: by the contract of this function.
        let records = unsafe { self.records() };
        let targets = || {
            // SAFETY: a record of R.
            let target = |record| unsafe { word(record + JUMP_TARGET) };
            let records = records.clone();
            records.map(move |(record, head)| (record, target(record), head.flags))
        };
        let found = targets().find(|(_, _, flags)| *flags == TOPLEVEL);
        self.finalizer = found.and_then(|(record, target, _)| {
            // A library may have replaced `sigsetjmp()`, so that all records have the same value.
            let is_unique = targets().filter(|(_, other, _)| *other == target).count() == 1;
            let outside = frames
                .iter()
                .position(|frame| frame.stack_pointer > record)?;
            let maker = frames.get(outside.checked_sub(1)?)?;
            let is_own = maker.function != address_of(TOPLEVEL_EXEC);
            (is_unique && is_own).then_some(target)
        });
    }

    /// Whether a finalizer runs, and no R code that it has called.
    ///
    /// # Safety
    /// As for [`Identity::of_stack()`].
    pub unsafe fn is_in_finalizer(&self) -> bool {
        // SAFETY: by the contract of this function.
        unsafe {
            self.records()
                .take_while(|(_, head)| !head.is_call())
                .any(|(record, head)| {
                    head.flags == TOPLEVEL && self.finalizer == Some(word(record + JUMP_TARGET))
                })
        }
    }

    /// R's records, except for the outermost one, with their addresses.
    ///
    /// # Safety
    /// As for [`Identity::of_stack()`], as long as the result is used.
    unsafe fn records(&self) -> impl Iterator<Item = (u64, Head)> + Clone + use<> {
        // SAFETY: a variable of R.
        let mut record = unsafe { word(self.head) };
        let records = std::iter::from_fn(move || {
            // SAFETY: a record of R.
            let (next, flags) = unsafe { (word(record + NEXT), word(record + CALLFLAG) as u32) };
            let found = (record, Head { next, flags });
            record = next;
            (next != 0).then_some(found)
        });
        records.take(MOST_RECORDS)
    }

    /// The number of the current stack. `span` is the address of the record of the active span, and `mark`
    /// another number that is part of it.
    ///
    /// # Safety
    /// This is the thread that runs R, which is between two of R's calls.
    pub unsafe fn of_stack(&self, titles: &mut Titles, span: Option<u64>, mark: u64) -> u64 {
        let mut hash = Hash::default();
        hash.add(mark);
        // SAFETY: R's variables and records, and the objects to which they refer; by the contract of this function, they
        // exist and do not change.
        unsafe {
            if let Some(span) = span {
                (0..SPAN_WORDS).for_each(|number| hash.add(word(span + 8 * number)));
            }
            let code = word(self.positions.code);
            let pc = word(self.positions.pc);
            self.add_site(&mut hash, word(self.srcref), code, || absolute(pc));
            for (record, head) in self.records() {
                if head.is_call() {
                    let function = word(record + CALLFUN);
                    hash.add(self.origin(function));
                    titles.add(&mut hash, function, word(record + CLOENV));
                    add_call(&mut hash, word(record + CALL));
                    let code = word(record + BCBODY);
                    let srcref = word(record + self.layout.srcref);
                    self.add_site(&mut hash, srcref, code, || self.position(record));
                }
            }
        }
        hash.number()
    }

    /// What the package of a function depends on: the environment around a closure that has a table of variables, such as a
    /// namespace, or a builtin itself.
    unsafe fn origin(&self, function: u64) -> u64 {
        // SAFETY: by the contract of `of_stack()`.
        unsafe {
            if function == 0 || Type::of(word(function)) != CLOSXP {
                return function;
            }
            let mut environment = word(function + ENVIRONMENT as u64);
            for _ in 0..MOST_ENCLOSING {
                let is_plain = Type::of(word(environment)) == ENVSXP
                    && word(environment + HASHTAB as u64) == self.nil;
                let around = word(environment + ENCLOSING as u64);
                if !is_plain || around == 0 || around == self.nil {
                    break;
                }
                environment = around;
            }
            environment
        }
    }

    /// Adds a position: a source reference, or that of an instruction in byte code.
    unsafe fn add_site(
        &self,
        hash: &mut Hash,
        srcref: u64,
        code: u64,
        position: impl FnOnce() -> Position,
    ) {
        // SAFETY: by the contract of `of_stack()`.
        unsafe {
            if srcref == self.marker {
                let is_code = code != 0 && Type::of(word(code)) == BCODESXP;
                hash.add(code);
                if is_code {
                    let [instructions, constants] =
                        [CODE, CONSTANTS].map(|field| word(code + field as u64));
                    hash.add(word(constants + DATA as u64));
                    hash.add(match position() {
                        Position::Relative(words) => words,
                        Position::Instruction(at) => at.wrapping_sub(instructions),
                    });
                }
            } else if srcref != self.nil && srcref != 0 {
                hash.add(srcref);
                hash.add(word(srcref + DATA as u64));
                hash.add(word(srcref + ATTRIBUTES as u64));
            }
        }
    }

    unsafe fn position(&self, record: u64) -> Position {
        // SAFETY: a record of R.
        unsafe {
            match self.layout.relative_pc.map(|field| word(record + field)) {
                Some(words) if (1..1 << 32).contains(&words) => Position::Relative(words),
                _ => absolute(word(record + BCPC)),
            }
        }
    }
}

enum Position {
    Relative(u64),
    /// The address of an instruction.
    Instruction(u64),
}

/// The position that a variable of the evaluator has.
unsafe fn absolute(variable: u64) -> Position {
    // SAFETY: by the contract of `of_stack()`.
    let at = if variable == 0 {
        0
    } else {
        unsafe { word(variable) }
    };
    Position::Instruction(at)
}

/// Adds what the name of a call depends on.
unsafe fn add_call(hash: &mut Hash, call: u64) {
    // SAFETY: by the contract of `of_stack()`.
    unsafe {
        if call == 0 || Type::of(word(call)) != LANGSXP {
            return;
        }
        let function = word(call + CAR as u64);
        if Type::of(word(function)) != LANGSXP {
            hash.add(function);
        } else {
            // `pkg::name` and the like.
            let mut cell = function;
            for _ in 0..3 {
                hash.add(word(cell + CAR as u64));
                cell = word(cell + CDR as u64);
                if cell == 0 {
                    break;
                }
            }
        }
    }
}

/// # Safety
/// There is a word at the address.
unsafe fn word(address: u64) -> u64 {
    // SAFETY: by the contract of this function.
    unsafe { (address as *const u64).read() }
}

#[cfg(test)]
mod tests;
