//! Finds the position of the innermost function in its byte code, which R keeps in its variables `R_BCbody` and
//! `R_BCpc`. These are not exported.
//!
//! They are found among R's variables by their values. While a closure runs, the first one usually points to its byte
//! code, and the second one to a variable on the C stack that points into the instructions of that code. A few times,
//! all variables are searched for such values, which takes longer than many functions run. After that, only the
//! candidates are read, together with the calls, and those with such values get a vote. Without a clear majority,
//! the line of the innermost function is left out.

use crate::running_r::RunningR;
use crate::stack::calls::{Calls, PositionVariables};
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_runtime::byte_code::code_of_closure;
use profile_runtime::memory::{self, Memory, at};
use std::ops::Range;

/// R's variables take less than a megabyte.
const MOST_BYTES: u64 = 16 << 20;
/// Larger than the number of variables that have such values at a time.
const MOST_FOUND: usize = 1000;
/// The number of votes that are required for a decision.
const ENOUGH: u32 = 12;
/// The number of initial searches of all variables, and the number of stacks after which they are searched again if
/// there is no decision, or no candidate: the function has often returned before the end of a search.
const SCANS: u32 = 4;
const SCAN_AGAIN: u32 = 64;
const SCAN_WITHOUT: u32 = 4;

/// The search for these variables.
#[derive(Debug, Default)]
pub struct PositionSearch {
    looks: u32,
    votes: u32,
    pc_votes: u32,
    code: Candidates,
    pc: Candidates,
    /// The values of the candidates at the last calls: for the code the value itself, for the position
    /// the word that the value points to.
    codes: Vec<Option<u64>>,
    pcs: Vec<Option<u64>>,
    bytes: Vec<u8>,
}

/// Addresses of variables, and their votes.
#[derive(Debug, Default)]
struct Candidates(Vec<(u64, u32)>);

impl Candidates {
    /// Adds the addresses that are new. Returns whether there were any.
    fn add(&mut self, addresses: &[u64]) -> Result<bool> {
        let mut is_new = false;
        for &address in addresses {
            let is_known = self.0.iter().any(|candidate| candidate.0 == address);
            if !is_known && self.0.len() < MOST_FOUND {
                self.0.try_push((address, 0))?;
                is_new = true;
            }
        }
        Ok(is_new)
    }

    /// Gives a vote to those whose value is right.
    fn vote(&mut self, values: &[Option<u64>], is_right: impl Fn(u64) -> bool) {
        for (candidate, value) in self.0.iter_mut().zip(values) {
            candidate.1 += u32::from(value.is_some_and(&is_right));
        }
    }

    fn forget_votes(&mut self) {
        for candidate in &mut self.0 {
            candidate.1 = 0;
        }
    }

    /// The variable with more votes than any other, and more than half of all.
    fn winner(&self, votes: u32) -> Option<u64> {
        let (address, most) = self.0.iter().copied().max_by_key(|candidate| candidate.1)?;
        let others = self.0.iter().filter(|candidate| candidate.1 == most);
        (most * 2 > votes && others.count() == 1).then_some(address)
    }
}

impl PositionSearch {
    /// Notes the values that the candidates have at the moment of the snapshot.
    pub fn observe<M: Memory>(&mut self, snapshot: &mut Snapshot<M>, r: &RunningR) -> Result<()> {
        self.codes.clear();
        self.pcs.clear();
        for candidate in &self.code.0 {
            self.codes.try_push(snapshot.variable(candidate.0)?)?;
        }
        for candidate in &self.pc.0 {
            let variable = snapshot.variable(candidate.0)?;
            let pc = match variable.filter(|variable| may_be_position(*variable, r)) {
                Some(variable) => snapshot.variable(variable)?,
                None => None,
            };
            self.pcs.try_push(pc)?;
        }
        Ok(())
    }

    /// Counts votes after a stack was read, and searches all variables if necessary. Returns the result when there
    /// are enough votes.
    pub fn look(
        &mut self,
        memory: &mut impl Memory,
        r: &RunningR,
        calls: &Calls,
    ) -> Result<Option<PositionVariables>> {
        let Some(function) = calls.calls.first().map(|call| call.function) else {
            return Ok(None);
        };
        let Some(code) = Code::read(memory, function) else {
            return Ok(None);
        };
        if self.codes.iter().any(Option::is_some) {
            self.code.vote(&self.codes, |value| value == code.object);
            self.votes += 1;
        }
        if self.pcs.iter().any(Option::is_some) {
            self.pc
                .vote(&self.pcs, |value| code.instructions.contains(&value));
            self.pc_votes += 1;
        }
        let has_candidates = !self.code.0.is_empty() && !self.pc.0.is_empty();
        let again = if has_candidates {
            SCAN_AGAIN
        } else {
            SCAN_WITHOUT
        };
        if self.looks < SCANS || self.looks % again == 0 {
            self.scan(memory, r, &code)?;
        }
        self.looks = self.looks.wrapping_add(1);
        Ok(self.result())
    }

    /// Searches all variables for candidates. This takes longer than many functions run, so the function may have
    /// returned meanwhile.
    fn scan(&mut self, memory: &mut impl Memory, r: &RunningR, code: &Code) -> Result<()> {
        let (mut codes, mut pcs) = (Vec::new(), Vec::new());
        let mut left = MOST_BYTES;
        for variables in &r.variables {
            let size = variables.end.saturating_sub(variables.start).min(left);
            left -= size;
            self.bytes.clear();
            self.bytes.try_fill(size as usize, 0)?;
            if !memory.read(variables.start, &mut self.bytes) {
                continue;
            }
            for (number, word) in self.bytes.chunks_exact(8).enumerate() {
                let value = at(word, 0);
                let address = variables.start + 8 * number as u64;
                if codes.len() + pcs.len() > MOST_FOUND {
                    return Ok(());
                }
                if value == code.object {
                    codes.try_push(address)?;
                }
                if code.has_position_at(memory, r, value) {
                    pcs.try_push(address)?;
                }
            }
        }
        let is_new = self.code.add(&codes)? | self.pc.add(&pcs)?;
        if is_new {
            // All candidates start again, with the same chance.
            (self.votes, self.pc_votes) = (0, 0);
            self.code.forget_votes();
            self.pc.forget_votes();
        }
        Ok(())
    }

    fn result(&self) -> Option<PositionVariables> {
        if self.votes.min(self.pc_votes) < ENOUGH {
            return None;
        }
        Some(PositionVariables {
            code: self.code.winner(self.votes)?,
            pc: self.pc.winner(self.pc_votes)?,
        })
    }
}

/// Variables that have such values at several moments.
#[derive(Debug, Default)]
pub struct Seen(Option<[Vec<u64>; 2]>);

/// These variables, if their values leave no doubt: at this moment, at which nothing but the function that calls this runs,
/// which is byte code, and at those that were seen before.
pub fn find_now(
    memory: &mut impl Memory,
    r: &RunningR,
    function: u64,
    seen: &mut Seen,
) -> Result<Option<PositionVariables>> {
    let mut search = PositionSearch::default();
    if let Some(code) = Code::read(memory, function) {
        search.scan(memory, r, &code)?;
    }
    let mut found = [search.code, search.pc].map(|found| found.0);
    if let Some(seen) = &seen.0 {
        for (found, seen) in found.iter_mut().zip(seen) {
            found.retain(|(address, _)| seen.contains(address));
        }
    }
    let positions = match [found[0].as_slice(), found[1].as_slice()] {
        [&[(code, _)], &[(pc, _)]] => Some(PositionVariables { code, pc }),
        _ => None,
    };
    let [code, pc] = found.map(|found| found.into_iter().map(|(address, _)| address).try_vec());
    seen.0 = Some([code?, pc?]);
    Ok(positions)
}

/// Where R keeps the position of the innermost function, for other readers of the same process.
#[derive(Debug)]
pub struct Known {
    /// The marker for a position in byte code.
    pub marker: u64,
    /// See [`RunningR::srcrefs`].
    pub srcrefs: Vec<u64>,
    pub variables: Option<PositionVariables>,
    /// The address where R's library starts.
    pub base: u64,
}

/// The byte code of a function, and the addresses of its instructions.
struct Code {
    object: u64,
    instructions: Range<u64>,
}

impl Code {
    /// The byte code of a closure.
    fn read(memory: &mut impl Memory, closure: u64) -> Option<Code> {
        let (object, instructions) = code_of_closure(memory, closure)?;
        Some(Code {
            object,
            instructions,
        })
    }

    /// Whether this is the address of a variable on the stack that points to an instruction.
    fn has_position_at(&self, memory: &mut impl Memory, r: &RunningR, address: u64) -> bool {
        may_be_position(address, r)
            && memory::word(memory, address).is_some_and(|pc| self.instructions.contains(&pc))
    }
}

/// Whether it may be the address of a variable on the stack.
fn may_be_position(address: u64, r: &RunningR) -> bool {
    address % 8 == 0 && r.stack.contains(&address)
}
