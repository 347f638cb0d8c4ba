//! Where the innermost function is in its byte code: the variables `R_BCbody` and `R_BCpc` of R, which R does
//! not export.
//!
//! They are found among R's variables by their values. While a closure runs, the first usually points to its
//! byte code, and the second to a variable on the C stack which points into the instructions of
//! that code. Each time this is looked at, the variables with such values get a vote. Without a clear majority
//! the line of the innermost function is left out.

use crate::calls::Calls;
use crate::memory::{self, Memory, at};
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::objects::{BCODESXP, BODY, CELL, CLOSXP, CODE, DATA, INTSXP, LENGTH, Type};
use std::ops::Range;

const WHAT: &str = "the variables of R";
/// R's variables take less than a megabyte.
const MOST_BYTES: u64 = 16 << 20;
/// More variables with such values than there are at a time.
const MOST_FOUND: usize = 1000;
/// The number of votes after which there is a decision.
const ENOUGH: u32 = 12;

/// The addresses of `R_BCbody` and `R_BCpc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    pub code: u64,
    pub pc: u64,
}

/// The search for them.
#[derive(Debug, Default)]
pub struct Search {
    votes: u32,
    code: Candidates,
    pc: Candidates,
    bytes: Vec<u8>,
}

/// Addresses of variables, and their votes.
#[derive(Debug, Default)]
struct Candidates(Vec<(u64, u32)>);

impl Candidates {
    fn vote(&mut self, address: u64) -> Result<()> {
        let is_full = self.0.len() >= MOST_FOUND;
        match self.0.iter_mut().find(|candidate| candidate.0 == address) {
            Some(candidate) => candidate.1 += 1,
            // Those that come so late have no majority.
            None if is_full => {}
            None => self.0.try_push((address, 1), WHAT)?,
        }
        Ok(())
    }

    /// The variable with more votes than any other, and more than half of all.
    fn winner(&self, votes: u32) -> Option<u64> {
        let (address, most) = self.0.iter().copied().max_by_key(|candidate| candidate.1)?;
        let others = self.0.iter().filter(|candidate| candidate.1 == most);
        (most * 2 > votes && others.count() == 1).then_some(address)
    }
}

impl Search {
    /// Looks at R's variables after these calls were read. Returns the result after enough votes.
    pub fn look(
        &mut self,
        memory: &mut impl Memory,
        target: &Target,
        calls: &mut Calls,
    ) -> Result<Option<Registers>> {
        let Some(function) = calls.calls.first().map(|call| call.function) else {
            return Ok(None);
        };
        let Some((code, instructions)) = byte_code(memory, function) else {
            return Ok(None);
        };
        let mut found = Vec::new();
        let mut left = MOST_BYTES;
        for variables in &target.variables {
            let size = variables.end.saturating_sub(variables.start).min(left);
            left -= size;
            self.bytes.clear();
            self.bytes.try_fill(size as usize, 0, WHAT)?;
            if !memory.read(variables.start, &mut self.bytes) {
                return Ok(None);
            }
            if found.len() > MOST_FOUND {
                return Ok(None);
            }
            for (number, word) in self.bytes.chunks_exact(8).enumerate() {
                let value = at(word, 0);
                let address = variables.start + 8 * number as u64;
                if value == code {
                    found.try_push((address, true), WHAT)?;
                }
                let points_inside = |pc: u64| instructions.contains(&pc);
                if value % 8 == 0
                    && target.stack.contains(&value)
                    && memory::word(memory, value).is_some_and(points_inside)
                {
                    found.try_push((address, false), WHAT)?;
                }
            }
        }
        if !calls.are_unchanged(memory, target)? {
            return Ok(None);
        }
        for (address, is_code) in found {
            match is_code {
                true => self.code.vote(address)?,
                false => self.pc.vote(address)?,
            }
        }
        self.votes += 1;
        Ok(self.result())
    }

    fn result(&self) -> Option<Registers> {
        if self.votes < ENOUGH {
            return None;
        }
        Some(Registers {
            code: self.code.winner(self.votes)?,
            pc: self.pc.winner(self.votes)?,
        })
    }
}

/// The byte code of a closure, and the addresses of its instructions.
fn byte_code(memory: &mut impl Memory, closure: u64) -> Option<(u64, Range<u64>)> {
    let mut object = |address, kind| {
        let object = memory::array::<CELL>(memory, address)?;
        (Type::of(at(&object, 0)) == kind).then_some(object)
    };
    let code = at(&object(closure, CLOSXP)?, BODY);
    let instructions = at(&object(code, BCODESXP)?, CODE);
    let length = at(&object(instructions, INTSXP)?, LENGTH);
    let first = instructions.checked_add(DATA as u64)?;
    let end = first.checked_add(length.checked_mul(4)?)?;
    Some((code, first..end))
}
