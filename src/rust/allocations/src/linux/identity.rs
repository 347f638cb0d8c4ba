//! What distinguishes stacks of R: a number made from everything that the names and places of a stack depend on. The
//! stack is read and its names are looked up only if the number is new.
//!
//! Addresses of objects that R may free and use again do not suffice, so what they refer to is included, too: the symbol
//! that is called, the first line of a source reference, the instructions of byte code. Of calls and closures, only that is
//! included: R makes a new call for each method, and a function that is defined in another one is new each time.

use profile_core::error::{Error, Result};
use profile_core::message;
use profile_reader::running_r::RunningR;
use profile_reader::stack::calls::PositionVariables;
use profile_runtime::contexts::{BCBODY, BCPC, CALL, CALLFLAG, CALLFUN, Head, Layout, NEXT};
use profile_runtime::objects::{
    ATTRIBUTES, BCODESXP, CAR, CDR, CLOSXP, CODE, CONSTANTS, DATA, ENCLOSING, ENVIRONMENT, ENVSXP,
    HASHTAB, LANGSXP, Type,
};

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
}

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
            }),
            _ => Err(Error::Unsupported(message!(
                "This R stores the position of running functions in an unknown way."
            ))),
        }
    }

    /// The number of the current stack. `span` is the address of the record of the active span, and `mark`
    /// another number that is part of it.
    ///
    /// # Safety
    /// This is the thread that runs R, which is between two of R's calls.
    pub unsafe fn of_stack(&self, span: Option<u64>, mark: u64) -> u64 {
        let mut hash = Hash(0);
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
            let mut record = word(self.head);
            for _ in 0..MOST_RECORDS {
                let next = word(record + NEXT);
                if next == 0 {
                    break;
                }
                let flags = word(record + CALLFLAG) as u32;
                let head = Head { next, flags };
                if head.is_call() {
                    hash.add(self.origin(word(record + CALLFUN)));
                    add_call(&mut hash, word(record + CALL));
                    let code = word(record + BCBODY);
                    let srcref = word(record + self.layout.srcref);
                    self.add_site(&mut hash, srcref, code, || self.position(record));
                }
                record = next;
            }
        }
        hash.0
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

/// A number that depends on all words that were added, and on their order.
struct Hash(u64);

impl Hash {
    #[inline]
    fn add(&mut self, word: u64) {
        // The upper and the lower half of a product depend on all bits of its factors.
        let factors = (
            self.0 ^ word,
            0x9e37_79b9_7f4a_7c15 ^ self.0.rotate_left(32),
        );
        let product = u128::from(factors.0) * u128::from(factors.1);
        self.0 = (product as u64) ^ ((product >> 64) as u64).wrapping_add(word);
    }
}
