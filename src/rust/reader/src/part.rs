//! Finds the part of a stack that is known although the stack changed while it was read.
//!
//! A stack of functions that return within microseconds is hard to read. If reading were repeated until it succeeds,
//! other functions would be running by then, and those that take longer would get more samples than their share. So
//! the sample is the stack at the first attempt, as far as it is consistent. Sometimes the innermost calls are
//! missing.

use crate::calls::{Call, is_call};
use crate::chain::{Called, Known};
use crate::memory::{at, half_at};
use crate::places::Root;
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::{CALLFLAG, NEXT};
use std::time::{Duration, Instant};

/// The part of a list of calls that is a stack.
#[derive(Debug)]
pub struct Part {
    /// The number of inner calls that are left out.
    pub left_out: usize,
    /// The position of the innermost remaining call, if it is known.
    pub innermost: Option<Root>,
    /// The number of inner calls that are not part of it, but were in the stack: the call that made them has returned,
    /// and a later one has taken its place. This one is left out as well.
    pub inner: usize,
}

impl Part {
    /// Finds that part of these calls, innermost first: the outer calls that existed the whole time, and the inner
    /// calls that are known to belong to them (`chain.rs`). `moved` are the addresses of the other records, in order.
    pub fn of(
        calls: &[Called],
        innermost: Root,
        moved: &[u64],
        known: &Known,
    ) -> Result<Option<Part>> {
        let mut have_moved = Vec::new();
        let mut moved = moved.iter().peekable();
        for called in calls {
            let has_moved = moved.next_if_eq(&&called.call.record.address).is_some();
            have_moved.try_push(has_moved)?;
        }
        let unchanged = have_moved.iter().rev().take_while(|has_moved| !**has_moved);
        let mut left_out = calls.len() - unchanged.count();
        while let Some(inner) = left_out.checked_sub(1) {
            let mut both = have_moved[inner..].iter().take(2);
            let has_moved = both.any(|has_moved| *has_moved);
            if has_moved && !known.is_call(&calls[inner], &calls[left_out..]) {
                break;
            }
            left_out = inner;
        }
        Ok(Part::without(calls, left_out, innermost, known))
    }

    /// These calls without the inner ones.
    fn without(calls: &[Called], left_out: usize, innermost: Root, known: &Known) -> Option<Part> {
        let first = calls.get(left_out)?;
        let Some(last_inner) = left_out.checked_sub(1) else {
            let is_known = known.is_innermost(first, &innermost);
            return Some(Part {
                left_out,
                innermost: is_known.then_some(innermost),
                inner: 0,
            });
        };
        if known.is_of_others(&calls[last_inner], &calls[left_out..]) && left_out + 1 < calls.len()
        {
            return Some(Part {
                left_out: left_out + 1,
                innermost: None,
                inner: left_out,
            });
        }
        let site = calls[last_inner].called_at;
        let is_known = known.has_site(first.call.function, &site);
        Some(Part {
            left_out,
            innermost: is_known.then_some(site),
            inner: 0,
        })
    }
}

/// The records of calls that existed at the first attempt. It is unknown which of them belonged to the stack then,
/// since records remain in memory for some time after the call.
#[derive(Debug)]
pub struct Held {
    /// Each call, preceded by the address of the record of the next outer one.
    calls: Vec<(u64, Call)>,
    since: Instant,
}

impl Default for Held {
    fn default() -> Held {
        Held {
            calls: Vec::new(),
            since: Instant::now(),
        }
    }
}

impl Held {
    /// Replaces the records with these, given with their addresses. They were read `age` ago.
    pub fn hold<'r>(
        &mut self,
        records: impl Iterator<Item = (u64, &'r [u8])>,
        age: Duration,
        target: &Target,
    ) -> Result<()> {
        self.calls.clear();
        let mut others = Vec::new();
        let now = Instant::now();
        self.since = now.checked_sub(age).unwrap_or(now);
        for (address, record) in records {
            let next = at(record, NEXT as usize);
            let is_call = is_call(half_at(record, CALLFLAG as usize));
            let call = is_call.then(|| Call::of(address, record, target));
            match call {
                Some(call) => self.calls.try_push((next, call))?,
                None => others.try_push((address, next))?,
            }
        }
        // The records of loops are skipped.
        for (next, _) in &mut self.calls {
            for _ in 0..others.len() {
                let other = others.iter().find(|(address, _)| address == next);
                let Some((_, outer)) = other else {
                    break;
                };
                *next = *outer;
            }
        }
        Ok(())
    }

    /// How long ago they were read.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// The number of all calls.
    pub fn size(&self) -> usize {
        self.calls.len()
    }

    /// The number of outer calls among these that existed at the first attempt.
    pub fn count(&self, calls: &[Called]) -> usize {
        let was_there = |called: &&Called| self.calls.iter().any(|(_, held)| held.is(&called.call));
        calls.iter().rev().take_while(was_there).count()
    }

    /// The calls that `outer` may have made.
    pub fn made_by(&self, outer: &Call) -> Result<Vec<Call>> {
        let mut calls = Vec::new();
        for (next, call) in &self.calls {
            if *next == outer.record.address {
                calls.try_push(*call)?;
            }
        }
        Ok(calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{INNERMOST, called, calls};

    /// Finds the part of these calls, given the number of outer calls that have not changed. Returns its functions,
    /// the position of the innermost one, and the number of inner calls that are known.
    fn part(calls: &[Called], unchanged: usize) -> Option<(Vec<u64>, Option<Root>, usize)> {
        let mut known = Known::default();
        known.learn(&self::calls(), Some(&INNERMOST), &[]).unwrap();
        let changed = calls[..calls.len() - unchanged].iter();
        let moved: Vec<u64> = changed.map(|called| called.call.record.address).collect();
        let part = Part::of(calls, INNERMOST, &moved, &known).unwrap()?;
        let functions = calls[part.left_out..].iter();
        let functions = functions.map(|called| called.call.function).collect();
        Some((functions, part.innermost, part.inner))
    }

    #[test]
    fn calls_that_returned_are_kept_if_they_are_known() {
        for unchanged in 0..=3 {
            let all = (vec![8, 7, 6], Some(INNERMOST), 0);
            assert_eq!(part(&calls(), unchanged), Some(all));
        }
    }

    #[test]
    fn others_are_left_out() {
        let mut function = calls();
        function[0].call.function = 9;
        let site = calls()[0].called_at;
        let rest = (vec![7, 6], Some(site), 0);
        assert_eq!(part(&function, 1), Some(rest));
        let mut nowhere = function;
        nowhere[0].called_at = INNERMOST;
        assert_eq!(part(&nowhere, 2), Some((vec![7, 6], None, 0)));
    }

    #[test]
    fn a_call_that_replaced_the_caller_is_left_out_and_the_inner_ones_are_known() {
        let mut from_elsewhere = calls();
        from_elsewhere[0].call.called_from = 1;
        assert_eq!(part(&from_elsewhere, 1), Some((vec![6], None, 1)));
        // The outermost call is not left out.
        from_elsewhere[1].call.called_from = 1;
        let site = from_elsewhere[1].called_at;
        let rest = (vec![6], Some(site), 0);
        assert_eq!(part(&from_elsewhere[1..], 1), Some(rest));
    }

    #[test]
    fn nothing_is_taken_of_what_was_never_there() {
        let mut first = calls();
        first[2].call.function = 9;
        assert_eq!(part(&first, 0), None);
    }

    fn held(calls: &[Called]) -> Held {
        let held = calls.iter().map(|called| {
            // See `called()`: the address of the next outer record is higher by 1.
            let outer = called.call.record.address + 1;
            (outer, called.call)
        });
        Held {
            calls: held.collect(),
            since: Instant::now(),
        }
    }

    #[test]
    fn outer_calls_that_were_there_are_counted() {
        let held = held(&calls());
        assert_eq!(held.count(&calls()), 3);
        let mut again = calls();
        again[1].call.environment = 200;
        assert_eq!(held.count(&again), 1);
        again[2].call.environment = 200;
        assert_eq!(held.count(&again), 0);
    }

    #[test]
    fn calls_that_the_outer_one_may_have_made_are_found() {
        let outer = calls()[2].call;
        let made = |calls: &[Called]| {
            let calls = held(calls).made_by(&outer).unwrap();
            calls.iter().map(|call| call.function).collect::<Vec<_>>()
        };
        assert_eq!(made(&calls()), [7]);
        assert!(made(&calls()[2..]).is_empty());
        // Of these two candidates, one has returned.
        let other = called(2, 9, 104, 101);
        assert_eq!(made(&[calls()[1], other]), [7, 9]);
    }
}
