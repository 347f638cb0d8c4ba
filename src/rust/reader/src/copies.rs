//! Copies of what a stack needs: R's variables, the records of its calls, and variables of its functions.
//!
//! Copying takes two system calls. The first one copies R's variables. One of them is the address of the innermost
//! record at this moment, which determines what the second system call copies. It begins at the innermost record,
//! since the innermost calls return soonest, and copies everything twice, to find out what existed the whole time:
//!
//! - the innermost record and the position of its function, and R's variables again: if this function has returned by
//!   then, its position may be a later one, and the record that of a later call;
//! - the next outer records, the address of the innermost record, and the first ones again, inwards;
//! - the other records outwards, the address of the innermost record, these again, inwards, and the innermost one.
//!
//! A record remains in memory after its call has returned. So a call existed the whole time only if both copies of
//! its record are the same and it was on the stack in between.

use crate::memory::{Memory, Piece, at};
use crate::pieces::{Group, Key, Kind, NEAR, Sequence};
use crate::walk::is_same_record;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use std::collections::HashMap;

/// The number of innermost pieces that are copied again before the outer ones, because small functions return within
/// microseconds.
const INNERMOST: usize = 3;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Something that a stack needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    pub key: Key,
    pub size: usize,
    /// For records: the number of outer records.
    pub depth: usize,
}

#[derive(Debug, Default)]
pub struct Copies {
    /// R's variables, which the first system call copies.
    variables: Sequence,
    /// Where each variable is in these copies.
    places: Map<u64, usize>,
    /// The variable with the address of the innermost record.
    head: u64,
    /// What the second system call copies, for each address of the innermost record, and for unknown ones.
    plans: Map<u64, Plan>,
    other: Plan,
    /// The innermost record whose plan was used for the current copies.
    current: Option<u64>,
    bytes: Vec<u8>,
}

/// What the second system call copies.
#[derive(Debug, Default)]
struct Plan {
    sequence: Sequence,
    /// Where the copies of variables begin.
    variables: usize,
    /// Where the addresses of the innermost record are, and the third copy of the innermost piece.
    checks: [usize; 2],
    third: usize,
    places: Map<Key, Place>,
}

/// Where the two copies of something are, and the number of the check in between. Both copies are the same
/// if there is only one.
#[derive(Debug, Clone, Copy)]
struct Place {
    size: usize,
    starts: [usize; 2],
    check: usize,
}

impl Copies {
    /// Discards the copies.
    pub fn clear(&mut self) {
        self.current = None;
    }

    /// Discards all plans.
    pub fn forget(&mut self) {
        self.plans.clear();
        self.current = None;
    }

    /// Replaces the variables, and discards all plans. The first variable points to the innermost record.
    pub fn begin_with(&mut self, variables: &[u64]) -> Result<()> {
        self.forget();
        let mut needs = Vec::new();
        for &address in variables {
            needs.try_push((0, address, (Kind::Variable, address), 8))?;
        }
        needs.sort_unstable();
        needs.dedup();
        let group = Group::of(&needs)?;
        self.head = variables.first().copied().unwrap_or(0);
        self.variables = Sequence::default();
        self.places.clear();
        let starts = self.variables.add_all(group.pieces.iter())?;
        for member in &group.members {
            let start = starts[member.piece] + member.inside;
            self.places.try_put(member.key.1, start)?;
        }
        self.other = self.plan(&[])?;
        Ok(())
    }

    /// Makes a plan for stacks with this innermost record.
    pub fn prepare(&mut self, head: u64, needs: &[Need]) -> Result<()> {
        let plan = self.plan(needs)?;
        self.current = self.current.filter(|current| *current != head);
        self.plans.try_put(head, plan)?;
        Ok(())
    }

    /// Copies the variables. Returns the address of the innermost record, or `None` if something cannot be read.
    pub fn take_variables(&mut self, memory: &mut impl Memory) -> Result<Option<u64>> {
        self.current = None;
        let Sequence { pieces, size } = &self.variables;
        self.bytes.try_fill(*size, 0)?;
        let Some(bytes) = self.bytes.get_mut(..*size) else {
            return Ok(None);
        };
        let read = memory.read_pieces(pieces, bytes);
        let head = self.places.get(&self.head).filter(|_| read == pieces.len());
        Ok(head.map(|start| at(bytes, *start)))
    }

    /// Copies the rest for this innermost record. Returns the first piece that cannot be read, because it was freed.
    pub fn take(&mut self, memory: &mut impl Memory, head: u64) -> Result<Option<Piece>> {
        let plan = self.plans.get(&head).unwrap_or(&self.other);
        let begin = self.variables.size;
        let end = begin + plan.sequence.size;
        self.bytes.try_fill(end, 0)?;
        let Some(bytes) = self.bytes.get_mut(begin..end) else {
            return Ok(None);
        };
        let read = memory.read_pieces(&plan.sequence.pieces, bytes);
        self.current = Some(head);
        Ok(plan.sequence.pieces.get(read).copied())
    }

    fn plan(&self, needs: &[Need]) -> Result<Plan> {
        let (records, mut positions) = in_order(needs)?;
        positions.sort_unstable();
        positions.dedup();
        let (records, positions) = (Group::of(&records)?, Group::of(&positions)?);
        let head = Piece {
            address: self.head,
            size: 8,
        };

        let mut plan = Plan::default();
        let sequence = &mut plan.sequence;
        let innermost = records.pieces.len().min(INNERMOST);
        let mut firsts = sequence.add_all(records.pieces.iter().take(1))?;
        let starts = sequence.add_all(positions.pieces.iter())?;
        plan.variables = sequence.size;
        sequence.add_all(self.variables.pieces.iter())?;
        // One more, which is the caller of those that are copied again.
        let next = records.pieces.iter().skip(1).take(INNERMOST);
        firsts.try_extend(&sequence.add_all(next)?)?;
        plan.checks[0] = sequence.add(head)?;
        let mut seconds = sequence.add_all(records.pieces[..innermost].iter().rev())?;
        seconds.reverse();
        let next = records.pieces.iter().skip(1 + INNERMOST);
        firsts.try_extend(&sequence.add_all(next)?)?;
        plan.checks[1] = sequence.add(head)?;
        let mut others = sequence.add_all(records.pieces[innermost..].iter().rev())?;
        others.reverse();
        seconds.try_extend(&others)?;
        plan.third = sequence.size;
        sequence.add_all(records.pieces.iter().take(1))?;

        for member in &records.members {
            let starts = [&firsts, &seconds].map(|starts| starts[member.piece] + member.inside);
            let place = Place {
                size: member.size,
                starts,
                check: usize::from(member.piece >= innermost),
            };
            plan.places.try_put(member.key, place)?;
        }
        for member in &positions.members {
            let place = Place {
                size: member.size,
                starts: [starts[member.piece] + member.inside; 2],
                check: 0,
            };
            plan.places.try_put(member.key, place)?;
        }
        Ok(plan)
    }

    fn current_plan(&self) -> Option<&Plan> {
        Some(self.plans.get(&self.current?).unwrap_or(&self.other))
    }

    /// The first copies of records, with their addresses.
    pub fn first_records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let keys = self
            .current_plan()
            .into_iter()
            .flat_map(|plan| plan.places.keys());
        let records = keys.filter(|(kind, _)| *kind == Kind::Record);
        records.filter_map(|&key| self.get(key).map(|(copies, _)| (key.1, copies[0])))
    }

    /// The addresses of the innermost record at both checks, if that record was copied before and after the check.
    pub fn heads(&self) -> [Option<u64>; 2] {
        self.known_heads().unwrap_or_default()
    }

    fn known_heads(&self) -> Option<[Option<u64>; 2]> {
        let (innermost, plan) = (self.current?, self.current_plan()?);
        let bytes = self.bytes.get(self.variables.size..)?;
        let [first, second] = plan
            .checks
            .map(|start| bytes.get(start..).map(|bytes| at(bytes, 0)));
        let second = second.filter(|&head| {
            let place = plan.places.get(&(Kind::Record, head));
            place.is_some_and(|place| match head == innermost {
                true => {
                    let copy = |start: usize| bytes.get(start..start + place.size);
                    let [first, _] = place.starts;
                    let both = copy(first).zip(copy(plan.third + first));
                    both.is_some_and(|(first, third)| is_same_record(first, third))
                }
                false => place.check == 1,
            })
        });
        Some([first, second])
    }

    /// Both copies of something, and the number of the check in between.
    pub fn get(&self, key: Key) -> Option<([&[u8]; 2], usize)> {
        let plan = self.current_plan()?;
        let begin = self.variables.size;
        let copy = |start: usize, size| self.bytes.get(start..start + size);
        if key.0 == Kind::Variable {
            let start = *self.places.get(&key.1)?;
            let again = begin + plan.variables + start;
            return Some(([copy(start, 8)?, copy(again, 8)?], 0));
        }
        let Place {
            size,
            starts,
            check,
        } = *plan.places.get(&key)?;
        let [first, second] = starts.map(|start| copy(begin + start, size));
        Some(([first?, second?], check))
    }
}

/// What a group needs, see [`Group::of`].
type Needs = Vec<(usize, u64, Key, usize)>;

/// What is copied twice, innermost first, and positions that are copied once. Positions of functions that have called
/// another one are copied together with the record of their function, since they are usually close to it.
fn in_order(needs: &[Need]) -> Result<(Needs, Needs)> {
    let (mut order, mut positions) = (Vec::new(), Vec::new());
    let mut records = Vec::new();
    for &Need { key, depth, .. } in needs {
        if let (Kind::Record, address) = key {
            records.try_push((address, depth))?;
        }
    }
    records.sort_unstable();
    for &Need { key, size, depth } in needs {
        let (kind, address) = key;
        if kind == Kind::Record {
            order.try_push((1 + depth, address, key, size))?;
            continue;
        }
        let after = records.partition_point(|record| record.0 < address);
        match records.get(after) {
            Some(&(record, depth)) if kind == Kind::Caller || record - address < NEAR => {
                order.try_push((1 + depth, address, key, size))?;
            }
            _ if kind == Kind::Caller => order.try_push((0, address, key, size))?,
            _ => positions.try_push((1, address, key, size))?,
        }
    }
    order.sort_unstable();
    order.reverse();
    Ok((order, positions))
}
