//! What the first attempt to read a stack has found, if it changed meanwhile.
//!
//! A stack of functions that end within microseconds is hard to read. When it was read at last, other functions are
//! running, and those that take longer would get more samples than their share. So the sample is what was found first,
//! as far as it is a stack: the calls that are still there, and the inner ones that are known to belong to them
//! (`chain.rs`). Sometimes the innermost ones are missing.

use crate::calls::Calls;
use crate::chain::{Called, Known};
use crate::places::Root;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub struct Outer {
    /// Innermost first.
    roots: Vec<Called>,
    innermost: Option<Root>,
    since: Option<Instant>,
    /// Whether inner calls were left out.
    pub lacks_inner: bool,
}

impl Outer {
    pub fn clear(&mut self) {
        self.roots.clear();
        self.since = None;
    }

    pub fn is_empty(&self) -> bool {
        self.since.is_none()
    }

    /// Notes calls that were read some time ago.
    pub fn note(&mut self, roots: &[Called], innermost: Root, age: Duration) -> Result<()> {
        self.roots.try_extend(roots, "a stack")?;
        self.innermost = Some(innermost);
        self.since = Instant::now().checked_sub(age);
        Ok(())
    }

    /// How long ago they were read.
    pub fn age(&self) -> Duration {
        self.since.map_or(Duration::MAX, |since| since.elapsed())
    }

    /// The number of these calls that are still there.
    fn common(&self, now: &Calls) -> usize {
        let both = self.roots.iter().rev().zip(now.calls.iter().rev());
        both.take_while(|(root, call)| root.call.is(call)).count()
    }

    /// Whether all of these calls are still there.
    pub fn goes_on_in(&self, now: &Calls) -> bool {
        self.is_empty() || self.common(now) == self.roots.len()
    }

    /// Gives those that are a stack, and where the innermost one is.
    pub fn take(
        &mut self,
        now: &Calls,
        known: &Known,
        roots: &mut Vec<Called>,
    ) -> Result<Option<Root>> {
        let mut count = self.common(now);
        let calls = &self.roots;
        let number = |count: usize| calls.len().checked_sub(count + 1);
        while let Some(inner) = number(count) {
            if !known.is_call(&calls[inner], calls.get(inner + 1)) {
                break;
            }
            count += 1;
        }
        let left = number(count);
        let stack = &calls[left.map_or(0, |left| left + 1)..];
        let Some(first) = stack.first() else {
            return Ok(None);
        };
        let innermost = match (left, self.innermost) {
            (Some(left), _) => {
                let site = calls[left].called_at;
                known.has_site(first.call.function, &site).then_some(site)
            }
            (None, innermost) => innermost.filter(|root| known.is_innermost(first, root)),
        };
        self.lacks_inner = left.is_some();
        roots.clear();
        roots.try_extend(stack, "a stack")?;
        Ok(Some(innermost.unwrap_or(Root::Nothing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{INNERMOST, calls};

    /// The functions of what is left of `first`, if these calls are there later, where the innermost one is, and
    /// whether others were left out.
    fn taken(first: &[Called], later: &[Called]) -> Option<(Vec<u64>, Root, bool)> {
        let mut known = Known::default();
        known.learn(&calls(), &INNERMOST).unwrap();
        let mut outer = Outer::default();
        outer.note(first, INNERMOST, Duration::ZERO).unwrap();
        let mut now = Calls::default();
        now.calls = later.iter().map(|called| called.call).collect();
        let mut roots = Vec::new();
        let innermost = outer.take(&now, &known, &mut roots).unwrap()?;
        let functions = roots.iter().map(|called| called.call.function);
        Some((functions.collect(), innermost, outer.lacks_inner))
    }

    #[test]
    fn calls_that_returned_are_kept_if_they_are_known() {
        for later in [&calls()[..], &calls()[1..], &calls()[2..], &[]] {
            let all = (vec![8, 7, 6], INNERMOST, false);
            assert_eq!(taken(&calls(), later), Some(all));
        }
    }

    #[test]
    fn others_are_left_out() {
        let mut function = calls();
        function[0].call.function = 9;
        let mut from_elsewhere = calls();
        from_elsewhere[0].call.called_from = 1;
        let site = calls()[0].called_at;
        for first in [function, from_elsewhere] {
            let rest = (vec![7, 6], site, true);
            assert_eq!(taken(&first, &calls()[2..]), Some(rest));
        }
        let mut nowhere = function;
        nowhere[0].called_at = INNERMOST;
        let rest = (vec![7, 6], Root::Nothing, true);
        assert_eq!(taken(&nowhere, &calls()[1..]), Some(rest));
    }

    #[test]
    fn nothing_is_taken_of_what_was_never_there() {
        let mut first = calls();
        first[2].call.function = 9;
        assert_eq!(taken(&first, &[]), None);
    }

    #[test]
    fn calls_go_on_if_none_has_returned() {
        let mut outer = Outer::default();
        let mut now = Calls::default();
        assert!(outer.goes_on_in(&now));
        outer
            .note(&calls()[1..], INNERMOST, Duration::ZERO)
            .unwrap();
        assert!(!outer.goes_on_in(&now));
        now.calls = calls().iter().map(|called| called.call).collect();
        assert!(outer.goes_on_in(&now));
    }
}
