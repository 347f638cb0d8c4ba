//! Copies of pieces of memory, found by their addresses.
//!
//! A system call that copies a hundred pieces takes little longer than one that copies a single piece. Consecutive
//! stacks need mostly the same pieces, so what the last stack needed is copied in one call for the next one. Whatever
//! else is needed is copied on its own.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_runtime::memory::{self, Limited, Memory, Piece};
use std::collections::HashMap;

/// Pieces with less than this between them are copied together. It takes longer to begin another piece than to copy
/// this number of bytes.
const GAP: u64 = 512;
/// The maximum number of addresses that are remembered for the next call.
const MOST: usize = 100_000;

/// Copies of pieces of the same size.
#[derive(Debug, Default)]
pub struct Copies<const SIZE: usize> {
    /// What is copied in one call. Sorted by address.
    plan: Vec<Piece>,
    /// The copies of the plan, one after the other, and then those that were not planned.
    bytes: Vec<u8>,
    starts: HashMap<u64, Start, foldhash::fast::RandomState>,
    /// The size of the copies of the plan.
    planned: usize,
    /// The addresses that were needed in this round, each of them once, in the order in which they were needed.
    needed: Vec<u64>,
    round: u64,
    is_copied: bool,
    /// Whether the plan differs from what was needed.
    is_outdated: bool,
    /// Whether what is needed from now on is not planned for the next round.
    is_unplanned: bool,
}

/// Where a copy starts, and the last round in which it was needed.
#[derive(Debug, Clone, Copy)]
struct Start {
    at: usize,
    round: u64,
}

impl<const SIZE: usize> Copies<SIZE> {
    /// Decides what to copy in one call in the next round: what was needed in this one.
    pub fn plan(&mut self) -> Result<()> {
        let is_same = !self.is_outdated && self.needed.len() == self.starts.len();
        // Without a need, the last round has ended early.
        if is_same || self.needed.is_empty() {
            return Ok(());
        }
        let mut addresses = Vec::new();
        addresses.try_extend(&self.needed)?;
        addresses.sort_unstable();
        self.plan.clear();
        self.starts.clear();
        self.planned = 0;
        for address in addresses {
            self.add(address)?;
        }
        self.is_outdated = false;
        Ok(())
    }

    /// Adds an address to the plan. It is not lower than the ones before.
    fn add(&mut self, address: u64) -> Result<()> {
        let last = self.plan.last_mut();
        let near = last.filter(|piece| address - piece.address <= piece.size as u64 + GAP);
        let at = match near {
            Some(piece) => {
                let inside = (address - piece.address) as usize;
                let before = self.planned - piece.size;
                piece.size = piece.size.max(inside + SIZE);
                self.planned = before + piece.size;
                before + inside
            }
            None => {
                let at = self.planned;
                self.plan.try_push(Piece {
                    address,
                    size: SIZE,
                })?;
                self.planned += SIZE;
                at
            }
        };
        let start = Start { at, round: 0 };
        self.starts.try_put(address, start)?;
        Ok(())
    }

    /// Begins a round. The copies of the plan are made when the first one is needed.
    pub fn begin(&mut self) -> Result<()> {
        self.plan()?;
        self.needed.clear();
        self.round += 1;
        self.is_copied = false;
        self.is_unplanned = false;
        self.bytes.truncate(self.planned);
        self.bytes.try_fill(self.planned, 0)
    }

    /// What was at an address when it was copied in this round. `None` if it cannot be read.
    pub fn get<M: Memory>(
        &mut self,
        memory: &mut Limited<M>,
        address: u64,
    ) -> Result<Option<[u8; SIZE]>> {
        if !self.is_copied {
            self.copy(memory);
            self.is_copied = true;
        }
        if let Some(start) = self.starts.get_mut(&address) {
            let at = start.at;
            if start.round != self.round && !self.is_unplanned {
                start.round = self.round;
                self.needed.try_push(address)?;
            }
            return Ok(self.copy_at(at));
        }
        let Some(copy) = memory::array::<SIZE>(memory, address) else {
            return Ok(None);
        };
        self.is_outdated = true;
        if self.starts.len() < MOST {
            let (at, round) = (self.bytes.len(), self.round);
            self.bytes.try_extend(&copy)?;
            self.starts.try_put(address, Start { at, round })?;
            if !self.is_unplanned {
                self.needed.try_push(address)?;
            }
        }
        Ok(Some(copy))
    }

    /// What is needed in the rest of this round is not copied in one call in the next one.
    pub fn stop_planning(&mut self) {
        self.is_unplanned = true;
    }

    fn copy_at(&self, at: usize) -> Option<[u8; SIZE]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }

    /// Makes the copies of the plan. What cannot be read any more is left out.
    fn copy<M: Memory>(&mut self, memory: &mut Limited<M>) {
        let (mut number, mut at) = (0, 0);
        while let Some(rest) = self.plan.get(number..).filter(|rest| !rest.is_empty()) {
            let into = self.bytes.get_mut(at..self.planned).unwrap_or_default();
            let read = memory.read_pieces(rest, into);
            at += rest
                .iter()
                .take(read)
                .map(|piece| piece.size)
                .sum::<usize>();
            number += read;
            let Some(wrong) = self.plan.get(number) else {
                return;
            };
            self.is_outdated = true;
            if memory.is_exhausted() {
                self.starts.retain(|_, start| start.at < at);
                return;
            }
            let missing = at..at + wrong.size;
            self.starts.retain(|_, start| !missing.contains(&start.at));
            at = missing.end;
            number += 1;
        }
    }

    /// What was needed in this round, with the copies, in the order in which it was needed.
    pub fn needed(&self) -> impl Iterator<Item = (u64, [u8; SIZE])> {
        let copy = |address: &u64| Some((*address, self.copy_at(self.starts.get(address)?.at)?));
        self.needed.iter().filter_map(copy)
    }

    /// The number of different addresses that were needed in this round, up to a maximum.
    pub fn count(&self) -> usize {
        self.needed.len()
    }
}
