//! Reads the stack of another process, which takes longer than many functions run.
//!
//! A sample is the stack at one moment, whatever that stack is. If only stacks that are easy to read were used,
//! functions that return within microseconds would get fewer samples than their share, and those that follow them
//! more. So the calls are copied once. If they are not a stack, because they changed meanwhile, the sample is what is
//! known about that moment:
//!
//! - the outer calls that existed, and inner ones that are known to belong to them (`part.rs`);
//! - or, if the list of calls was broken, those calls of the next stack that existed at that moment;
//! - completed by a whole stack with the same calls, since most calls are made in loops: by one of the last samples
//!   (`recent.rs`), or by one that follows soon. Without such a stack, the innermost calls are missing.

use crate::calls::Site;
use crate::chain::{Called, site};
use crate::memory::{self, Memory};
use crate::part::Part;
use crate::places::Root;
use crate::stack::{Reader, Stack};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::time::Instant;

/// The number of further attempts to find the stack of the first attempt.
const TRIES: usize = 6;

/// What is known about the stack at a moment.
struct Found {
    stack: Stack,
    /// Outer calls of the stack, or all of them.
    calls: Vec<Called>,
    inner: Inner,
    /// The position of the innermost function of `calls`, if it is known.
    innermost: Option<Root>,
    /// Whether this is the complete stack.
    is_whole: bool,
}

/// What is known about the innermost calls, if those in between are missing.
enum Inner {
    Nothing,
    /// The calls, because only the record of the call that made them belongs to a later one.
    Calls(Vec<Called>),
    /// The address of the innermost record, and the byte code or the srcref of its function, because the record itself
    /// belongs to a later call. Then the outer calls may be later ones as well.
    Head(u64, u64),
}

impl Inner {
    /// Whether a stack of these calls ends with the same inner calls. `code` is that of the innermost function.
    fn ends(&self, calls: &[Called], code: u64) -> bool {
        match self {
            Inner::Nothing => false,
            Inner::Calls(inner) => {
                let mut both = calls.iter().zip(inner);
                calls.len() > inner.len()
                    && both.all(|(one, other)| {
                        one.call.record.address == other.call.record.address
                            && one.is_of_same(other)
                    })
            }
            Inner::Head(address, known) => {
                let head = calls.first().map(|called| called.call.record.address);
                (head, code) == (Some(*address), *known)
            }
        }
    }
}

impl Found {
    /// How well a stack of these calls fits: whether it has the same inner calls, and how many outer ones. `None` if
    /// it does not. Calls of the same functions at the same places count as the same.
    fn rank(&self, calls: &[Called], code: u64) -> Option<(bool, usize)> {
        let both = calls.iter().rev().zip(self.calls.iter().rev());
        let outer = both.take_while(|(one, other)| one.is_like(other)).count();
        if outer > 0 && self.inner.ends(calls, code) {
            let is_head = matches!(self.inner, Inner::Head(..));
            return Some((true, if is_head { self.calls.len() } else { outer }));
        }
        let next = calls.iter().rev().nth(outer);
        let is_next = match (next, &self.innermost) {
            // The inner calls that are missing here must exist there.
            (None, _) => !self.stack.lacks_inner,
            (Some(next), Some(innermost)) => site(&next.called_at) == site(innermost),
            (Some(_), None) => self.stack.lacks_inner,
        };
        (outer == self.calls.len() && is_next).then_some((false, outer))
    }

    /// Whether a stack of these calls fits completely.
    fn is_like(&self, calls: &[Called], code: u64) -> bool {
        self.rank(calls, code)
            .is_some_and(|(_, outer)| outer == self.calls.len())
    }
}

impl<M: Memory> Reader<M> {
    /// Reads the current stack, or a part of it. Returns `false` if it cannot be read.
    pub(crate) fn read_other(&mut self) -> Result<bool> {
        // An additional copy, because the first one after a pause takes three times as long as the next one.
        self.copy()?;
        if self.attempt()? && self.has_position() {
            let code = self.code();
            self.recent.keep(&self.stack, &self.roots, code)?;
            return Ok(true);
        }
        self.hold()?;
        let mut found = self.take_part()?;
        let mut tries = 0;
        while found.is_none() && tries < TRIES && !self.memory.is_exhausted() {
            tries += 1;
            let is_stack = self.attempt()?;
            let innermost = match is_stack {
                true => Some(self.has_position().then_some(self.innermost)),
                false => self.take_part()?.map(|part| part.innermost),
            };
            if let Some(innermost) = innermost {
                found = self.keep_held(is_stack, innermost)?;
            }
        }
        let Some(found) = found else {
            return Ok(false);
        };
        if found.is_whole || !self.complete(&found, tries)? {
            self.stack = found.stack;
        }
        Ok(true)
    }

    /// Finds a whole stack that fits, after this number of further attempts. Returns `false` if there is none.
    fn complete(&mut self, found: &Found, mut tries: usize) -> Result<bool> {
        if let Some(stack) = self.recent.best(|calls, code| found.rank(calls, code)) {
            self.stack.clone_from(stack);
            return Ok(true);
        }
        let begin = Instant::now();
        while (tries < TRIES || begin.elapsed() < self.wait) && !self.memory.is_exhausted() {
            tries += 1;
            if self.attempt()? && self.has_position() && found.is_like(&self.roots, self.code()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the position of the innermost function is known. It changes when the function returns.
    fn has_position(&self) -> bool {
        let is_variable = matches!(self.calls.innermost, Some(Site::Absolute { .. }));
        !is_variable || self.memory.inner_ref().is_steady()
    }

    /// Remembers the records that have just been copied.
    fn hold(&mut self) -> Result<()> {
        let ahead = self.memory.inner_ref();
        self.held
            .hold(ahead.first_records(), ahead.age(), &self.target)
    }

    /// Takes the part of the calls that is a stack, after an attempt that did not find a stack.
    fn take_part(&mut self) -> Result<Option<Found>> {
        // Without an object of a call, the outer calls are unknown.
        let is_known = self.roots.len() == self.calls.calls.len();
        if self.roots.is_empty() || !is_known || self.calls.is_cut {
            return Ok(None);
        }
        self.known.correct_sites(&mut self.roots);
        let part = match self.memory.inner_ref().were_copied() {
            true => {
                let moved = &self.memory.inner_ref().moved().records;
                Part::of(&self.roots, self.innermost, moved, &self.known)?
            }
            false => {
                let moved = self.changed_records()?;
                Part::of(&self.roots, self.innermost, &moved, &self.known)?
            }
        };
        let is_recent = self.memory.inner_ref().age() < self.shortest_collection;
        let Some(mut part) = part.filter(|_| is_recent) else {
            return Ok(None);
        };
        let is_later = self.is_later() && self.roots.len() > 1;
        let mut inner = Inner::Nothing;
        if is_later {
            inner = Inner::Head(self.calls.head(), self.code());
            if part.left_out == 0 {
                (part.left_out, part.innermost) = (1, None);
            }
        } else if part.inner > 0 {
            let mut calls = Vec::new();
            calls.try_extend(self.roots.get(..part.inner).unwrap_or_default())?;
            inner = Inner::Calls(calls);
        }
        let has_position = part.left_out > 0 || self.has_position();
        let innermost = part.innermost.filter(|_| has_position);
        self.roots.drain(..part.left_out);
        let is_whole = part.left_out == 0 && innermost.is_some();
        let found = self.found(innermost, is_whole, part.left_out > 0)?;
        Ok(found.map(|found| Found { inner, ..found }))
    }

    /// The addresses of the records of calls that have changed by now.
    fn changed_records(&mut self) -> Result<Vec<u64>> {
        let (calls, memory) = (&mut self.calls, &mut self.memory);
        let unchanged = calls.unchanged_calls(memory, &self.target)?;
        let changed = self.roots.len().saturating_sub(unchanged);
        let mut records = Vec::new();
        for called in self.roots.iter().take(changed) {
            records.try_push(called.call.record.address)?;
        }
        Ok(records)
    }

    /// Looks up the functions and places of the roots.
    fn found(
        &mut self,
        innermost: Option<Root>,
        is_whole: bool,
        lacks_inner: bool,
    ) -> Result<Option<Found>> {
        self.innermost = innermost.unwrap_or(Root::Nothing);
        self.calls.innermost = None;
        self.memory.inner().begin_late_lookup();
        if !self.resolve()? {
            return Ok(None);
        }
        self.stack.lacks_inner = lacks_inner;
        let mut calls = Vec::new();
        calls.try_extend(&self.roots)?;
        Ok(Some(Found {
            stack: self.stack.clone(),
            calls,
            inner: Inner::Nothing,
            innermost,
            is_whole,
        }))
    }

    /// Leaves out calls that did not exist at the first attempt, and adds calls that are known to have been made
    /// then. The roots are those of a whole stack, or of a part, with the position of the innermost one.
    fn keep_held(&mut self, is_stack: bool, innermost: Option<Root>) -> Result<Option<Found>> {
        let left_out = self.roots.len() - self.held.count(&self.roots);
        let mut roots = Vec::new();
        roots.try_extend(self.roots.get(left_out..).unwrap_or_default())?;
        if left_out > 0 {
            // Records that refer to each other have no end.
            for _ in 0..self.held.size() {
                let Some(call) = self.made_by(&roots)? else {
                    break;
                };
                roots.try_push(call)?;
                roots.rotate_right(1);
            }
        }
        let is_recent = self.held.age() < self.shortest_collection;
        // If there were no other calls, the inner calls may have existed at the first attempt.
        if roots.len() + left_out == self.roots.len() || !is_recent && is_stack {
            let is_whole = is_stack && innermost.is_some();
            return self.found(innermost, is_whole, self.stack.lacks_inner);
        }
        if !is_recent {
            return Ok(None);
        }
        self.roots = roots;
        self.found(None, false, true)
    }

    /// The call that the innermost of these calls had made at the first attempt, if it is known to make such calls.
    fn made_by(&mut self, outer: &[Called]) -> Result<Option<Called>> {
        let Some(last) = outer.first() else {
            return Ok(None);
        };
        let mut found = None;
        for call in self.held.made_by(&last.call)? {
            let Some(cell) = memory::array(&mut self.memory, call.call) else {
                continue;
            };
            let called_at = Root::of(&mut self.memory, &self.target, call.site);
            let called = Called {
                call,
                cell,
                called_at,
            };
            if self.known.is_call(&called, outer) && found.replace(called).is_some() {
                return Ok(None);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{called, calls};

    const CODE: u64 = 55;

    /// What is known if only `f()` and something about inner calls are.
    fn found(inner: Inner) -> Found {
        let stack = Stack {
            lacks_inner: true,
            ..Stack::default()
        };
        Found {
            stack,
            calls: calls()[2..].to_vec(),
            inner,
            innermost: None,
            is_whole: false,
        }
    }

    #[test]
    fn without_inner_calls_any_longer_stack_fits() {
        let found = found(Inner::Nothing);
        assert_eq!(found.rank(&calls(), CODE), Some((false, 1)));
        assert_eq!(found.rank(&calls()[2..], CODE), None);
        let other = [called(2, 7, 102, 101), called(1, 9, 101, 100)];
        assert_eq!(found.rank(&other, CODE), None);
    }

    #[test]
    fn a_stack_with_the_same_inner_calls_fits_best() {
        let found = found(Inner::Calls(calls()[..1].to_vec()));
        assert_eq!(found.rank(&calls(), CODE), Some((true, 1)));
        assert!(found.is_like(&calls(), CODE));
        assert_eq!(found.rank(&calls()[1..], CODE), Some((false, 1)));
        let mut elsewhere = calls();
        elsewhere[0].call.record.address += 8;
        assert_eq!(found.rank(&elsewhere, CODE), Some((false, 1)));
    }

    #[test]
    fn so_does_one_with_the_same_innermost_record_in_the_same_code() {
        let head = calls()[0].call.record.address;
        let found = found(Inner::Head(head, CODE));
        assert_eq!(found.rank(&calls(), CODE), Some((true, 1)));
        assert_eq!(found.rank(&calls(), CODE + 1), Some((false, 1)));
        assert_eq!(found.rank(&calls()[1..], CODE), Some((false, 1)));
    }
}
