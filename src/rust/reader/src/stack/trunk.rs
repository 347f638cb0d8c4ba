//! The outer calls of the last stack, which mostly are those of the next one, too.
//!
//! Reading ten thousand calls takes milliseconds, for which no process should be stopped. But between two stacks, most of
//! them do not change: a call ends only after all calls inside it. So a call that is still there proves that all further
//! out are, and their names and places are known.
//!
//! What tells a call from others that have been at its address are addresses of objects, which R may free and use again.
//! Therefore the innermost calls ([`NEAR`]) are always read, with all that they refer to, and further out it takes
//! dozens of equal calls ([`Trunk::join`]), not one.

use crate::stack::frames::MOST_CALLS;
use crate::stack::frames::OnStack;
use crate::stack::frames::Package;
use crate::stack::frames::Where;
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::model::StringId;
use profile_runtime::contexts::{Identity, Record};
use profile_runtime::memory::Memory;
use std::collections::HashMap;

/// The number of innermost calls that are read for each stack. Most stacks are not deeper.
pub const NEAR: usize = 200;
/// The number of calls further out that are compared, if there are so many: every call, every second one, every fourth one
/// and so on.
const COMPARED: usize = 128;

/// A call whose function and place were looked up.
#[derive(Debug, Clone, Copy)]
pub struct KnownCall {
    pub record: OnStack,
    pub identity: Identity,
    /// The name of the function, and what the call says; `None` if it is not a call of a function.
    pub name: Option<(StringId, StringId)>,
    pub package: Package,
    /// The builtin that made the call, if it has no record.
    pub builtin: Option<StringId>,
    /// Where the call is.
    pub at: Where,
}

/// The calls of the last stack without the [`NEAR`] ones.
#[derive(Debug, Default)]
pub struct Trunk {
    /// Outermost first.
    calls: Vec<KnownCall>,
    /// Their rows, by the addresses of their records.
    rows: HashMap<u64, usize, foldhash::fast::RandomState>,
    /// Whether outer calls are missing, because the stack is too deep.
    is_cut: bool,
}

impl Trunk {
    /// Whether there may be a known call at this address.
    pub fn has(&self, address: u64) -> bool {
        self.rows.contains_key(&address)
    }

    /// If this record, inside which there are `inner` calls, is the one of a known call, and it and the calls further out
    /// have not changed: the number of calls from there on. Calls that have changed are removed.
    pub fn join<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        inner: usize,
        address: u64,
        record: &Record,
    ) -> Result<Option<usize>> {
        let Some(&row) = self.rows.get(&address) else {
            return Ok(None);
        };
        // The stack is not too deep any more.
        if self.is_cut && inner + row + 1 < MOST_CALLS {
            self.keep(0);
            return Ok(None);
        }
        let step = (row / COMPARED + 1).next_power_of_two();
        for outer in (0..row).step_by(step) {
            let KnownCall {
                record, identity, ..
            } = self.calls[outer];
            let copy = snapshot.record(record.address)?;
            if copy.is_none_or(|copy| Identity::parse(&copy.0) != identity) {
                self.keep(outer);
                return Ok(None);
            }
        }
        if self.calls[row].identity != Identity::parse(&record.0) {
            self.keep(row);
            return Ok(None);
        }
        Ok(Some(row + 1))
    }

    /// Keeps so many outermost calls.
    pub fn keep(&mut self, count: usize) {
        while self.calls.len() > count {
            let gone = self.calls.pop();
            gone.map(|gone| self.rows.remove(&gone.record.address));
        }
        self.is_cut &= !self.calls.is_empty();
    }

    /// Adds a call inside the others.
    pub fn push(&mut self, call: KnownCall) -> Result<()> {
        self.rows.try_put(call.record.address, self.calls.len())?;
        self.calls.try_push(call)
    }

    pub fn set_cut(&mut self) {
        self.is_cut = true;
    }

    /// Whether outer calls are missing.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub fn count(&self) -> usize {
        self.calls.len()
    }

    /// Innermost first.
    pub fn calls(&self) -> impl Iterator<Item = &KnownCall> {
        self.calls.iter().rev()
    }
}
