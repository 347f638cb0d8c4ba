//! Checks whether records that changed while they were copied are a consistent stack nevertheless.
//!
//! A function may have returned before its record was copied, and another one, or the same one again, was called. The
//! copies are a stack if each call is known to belong to the next outer one, and the fields of each record belong to
//! the same call:
//!
//! - If two adjacent calls existed the whole time, they belong together. Otherwise the inner record must state that
//!   its call was made from the environment of the outer call. Each call has a new environment, so a leftover record
//!   of a call that has returned does not refer to the call that replaced its caller. Arguments are evaluated, and
//!   methods are called, from the environment of another outer call, which must be the same one as usual.
//! - A record that R was filling at the time may contain fields of two calls, for example the environments of the new
//!   call and the function of the old one. So the caller must have called this function from this site in a stack
//!   that did not change, and the innermost function must have been in this code.

use crate::calls::{Call, Site};
use crate::memory::at;
use crate::places::Root;
use profile_core::error::Result;
use profile_core::limits::memory::TryPut;
use profile_runtime::objects::{CAR, CELL};
use std::collections::HashMap;
use std::iter::Peekable;
use std::slice::Iter;

/// The maximum number of entries. Some processes repeatedly compile the code that they evaluate.
const MOST: usize = 1 << 16;
/// The number of outer calls whose environment is compared with the one that a call was made from.
const MOST_OUTER: usize = 16;

/// A call, and what it refers to.
#[derive(Debug, Clone, Copy)]
pub struct Called {
    pub call: Call,
    pub cell: [u8; CELL],
    pub called_at: Root,
}

impl Called {
    /// Whether it is a call of the same function by the same name.
    pub fn is_of_same(&self, other: &Called) -> bool {
        Fields::without_site(self, &[]) == Fields::without_site(other, &[])
    }

    /// Whether it is a call of the same function by the same name, made at the same place.
    pub fn is_like(&self, other: &Called) -> bool {
        Fields::of(self, &[]) == Fields::of(other, &[])
    }
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Combinations of fields that occurred in records that did not change.
#[derive(Debug, Default)]
pub struct Known {
    fields: Map<Fields, ()>,
    /// Where a function makes such calls, if there is only one such site. The fields are those of the call, without
    /// the site.
    sites: Map<Fields, Option<Root>>,
}

/// The fields of a record that are compared: the function, its name, which is the first element of the call, and the
/// site of the call, as two words. The caller is the function of the next outer record. Without a caller and a name,
/// the site is the position of the function itself; without a function, the entry stands for any call at this site.
/// The call object itself is not compared, since it is not always the same: `lapply()` makes a new one each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Fields {
    caller: u64,
    function: u64,
    name: u64,
    site: [u64; 2],
    /// Which outer call has the environment that the call was made from: 1 for the caller, 0 for none.
    from: usize,
}

impl Fields {
    /// `outer` are the outer calls. Without them, the entry stands for such calls by any function.
    fn of(called: &Called, outer: &[Called]) -> Fields {
        let mut near = outer.iter().take(MOST_OUTER);
        let from = near.position(|outer| outer.call.environment == called.call.called_from);
        Fields {
            caller: outer.first().map_or(0, |caller| caller.call.function),
            function: called.call.function,
            name: at(&called.cell, CAR),
            site: site(&called.called_at),
            from: from.map_or(0, |number| number + 1),
        }
    }

    /// Stands for such calls at any site.
    fn without_site(called: &Called, outer: &[Called]) -> Fields {
        Fields {
            site: [u64::MAX; 2],
            ..Fields::of(called, outer)
        }
    }

    fn of_site(caller: u64, called_at: &Root) -> Fields {
        Fields {
            caller,
            function: 0,
            name: 0,
            site: site(called_at),
            from: 0,
        }
    }

    fn of_innermost(called: &Called, innermost: &Root) -> Fields {
        Fields::of_code(called, innermost.object())
    }

    /// `object` determines the place of the function: byte code or a srcref.
    fn of_code(called: &Called, object: u64) -> Fields {
        let site = object;
        Fields {
            caller: 0,
            function: called.call.function,
            name: 0,
            site: [site, 0],
            from: 0,
        }
    }
}

/// What identifies a site.
pub fn site(root: &Root) -> [u64; 2] {
    match *root {
        Root::Nothing => [0; 2],
        Root::Srcref { address, .. } => [address, 0],
        Root::Code {
            object, position, ..
        } => [object, position.wrapping_add(1)],
    }
}

/// Each call, innermost first, with the outer ones.
fn with_outer(calls: &[Called]) -> impl Iterator<Item = (&Called, &[Called])> {
    let outer = (1..).map_while(|number| calls.get(number..));
    calls.iter().zip(outer)
}

/// Whether a call or the next outer one has moved. `moved` are the addresses of the records that have, beginning with
/// this call.
fn has_moved(called: &Called, outer: &[Called], moved: &mut Peekable<Iter<u64>>) -> bool {
    let address = |called: &Called| called.call.record.address;
    let has_moved = moved.next_if_eq(&&address(called)).is_some();
    has_moved
        || outer
            .first()
            .is_some_and(|outer| moved.peek() == Some(&&address(outer)))
}

impl Known {
    /// Remembers these calls, innermost first, except those whose records have `moved`, and the position of the
    /// innermost function, if it belongs to that call. The addresses in `moved` are in the same order.
    pub fn learn(
        &mut self,
        calls: &[Called],
        innermost: Option<&Root>,
        moved: &[u64],
    ) -> Result<()> {
        if self.fields.len() > MOST {
            *self = Known::default();
        }
        let mut moved = moved.iter().peekable();
        for (number, (called, outer)) in with_outer(calls).enumerate() {
            if has_moved(called, outer, &mut moved) {
                continue;
            }
            // When a function has just been called, R's position is still that of the call.
            let innermost = innermost.filter(|innermost| called.called_at != **innermost);
            if let Some(innermost) = innermost.filter(|_| number == 0) {
                self.put(Fields::of_innermost(called, innermost))?;
            }
            if let Some(caller) = outer.first() {
                self.put(Fields::of_site(caller.call.function, &called.called_at))?;
            }
            if self.put(Fields::of(called, outer))? {
                self.put(Fields::without_site(called, &[]))?;
                self.put_site(Fields::without_site(called, outer), called.called_at)?;
            }
        }
        Ok(())
    }

    fn put_site(&mut self, fields: Fields, root: Root) -> Result<()> {
        let only = match self.sites.get(&fields) {
            None => Some(root),
            Some(known) => known.filter(|known| site(known) == site(&root)),
        };
        self.sites.try_put(fields, only)?;
        Ok(())
    }

    /// Replaces sites that are unknown by the only known one. The position of a function that was copied after the
    /// call had returned is a later one.
    pub fn correct_sites(&self, calls: &mut [Called]) {
        for number in 0..calls.len() {
            let (inner, outer) = calls.split_at_mut(number + 1);
            let Some(called) = inner.last_mut() else {
                return;
            };
            let is_variable = matches!(called.call.site, Site::Absolute { .. });
            if !is_variable || self.has(&Fields::of(called, outer)) {
                continue;
            }
            if let Some(Some(root)) = self.sites.get(&Fields::without_site(called, outer)) {
                called.called_at = *root;
            }
        }
    }

    /// Whether this function has called another one at this site before.
    pub fn has_site(&self, function: u64, site: &Root) -> bool {
        self.has(&Fields::of_site(function, site))
    }

    /// Returns whether they are new.
    fn put(&mut self, fields: Fields) -> Result<bool> {
        let is_new = !self.has(&fields);
        if is_new {
            self.fields.try_put(fields, ())?;
        }
        Ok(is_new)
    }

    /// Whether these calls are a stack, although the records at these addresses have changed, in the same order.
    pub fn is_stack(&self, calls: &[Called], innermost: &Root, moved: &[u64]) -> bool {
        let mut moved = moved.iter().peekable();
        for (number, (called, outer)) in with_outer(calls).enumerate() {
            let is_first_moved = number == 0 && moved.peek() == Some(&&called.call.record.address);
            // The position of the innermost function may be unknown.
            if is_first_moved && !self.is_innermost(called, innermost) {
                return false;
            }
            if has_moved(called, outer, &mut moved) && !self.is_call(called, outer) {
                return false;
            }
        }
        // Any address that remains is not that of a call.
        moved.peek().is_none()
    }

    /// Whether a call belongs to these outer ones, although one of them may have changed.
    pub fn is_call(&self, called: &Called, outer: &[Called]) -> bool {
        let fields = Fields::of(called, outer);
        (outer.is_empty() || fields.from > 0) && self.has(&fields)
    }

    /// Whether a call is known, but was made from the environment of none of these outer ones. It was made by one
    /// that has returned.
    pub fn is_of_others(&self, called: &Called, outer: &[Called]) -> bool {
        Fields::of(called, outer).from == 0 && self.has(&Fields::without_site(called, &[]))
    }

    /// Whether the innermost function has been in this code before.
    pub fn is_innermost(&self, called: &Called, innermost: &Root) -> bool {
        *innermost == Root::Nothing || self.has(&Fields::of_innermost(called, innermost))
    }

    /// Whether the innermost function has been in this code before, or has just been called from it.
    pub fn may_be_in(&self, called: &Called, object: u64) -> bool {
        object == called.called_at.object() || self.has(&Fields::of_code(called, object))
    }

    fn has(&self, fields: &Fields) -> bool {
        self.fields.contains_key(fields)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::calls::{OnStack, Site};

    /// The call of a function, with the number of its environment.
    pub fn called(number: u64, function: u64, environment: u64, called_from: u64) -> Called {
        Called {
            call: Call {
                record: OnStack {
                    address: 1000 - number,
                    promises: 0,
                },
                call: 0,
                function,
                environment,
                called_from,
                site: Site::Unknown,
            },
            cell: [function as u8; CELL],
            called_at: Root::Srcref {
                address: function,
                object: [0; CELL],
            },
        }
    }

    /// `f()` calls `g()`, which calls `h()`; innermost first.
    pub fn calls() -> [Called; 3] {
        [
            called(3, 8, 103, 102),
            called(2, 7, 102, 101),
            called(1, 6, 101, 100),
        ]
    }

    pub const INNERMOST: Root = Root::Srcref {
        address: 99,
        object: [0; CELL],
    };

    fn is_stack(calls: &[Called], innermost: &Root, moved: &[u64]) -> bool {
        let mut known = Known::default();
        known.learn(&self::calls(), Some(&INNERMOST), &[]).unwrap();
        known.is_stack(calls, innermost, moved)
    }

    #[test]
    fn calls_that_belong_together_are_a_stack() {
        for moved in [&[][..], &[997], &[998], &[997, 998], &[997, 998, 999]] {
            assert!(is_stack(&calls(), &INNERMOST, moved), "{moved:?}");
        }
    }

    #[test]
    fn calls_from_other_environments_are_not() {
        let mut calls = calls();
        calls[0].call.called_from = 1;
        assert!(!is_stack(&calls, &INNERMOST, &[997]));
        assert!(!is_stack(&calls, &INNERMOST, &[998]));
        assert!(is_stack(&calls, &INNERMOST, &[999]));
    }

    /// Finalizers, for example, are called from the environment of no call.
    #[test]
    fn calls_from_no_known_environment_are_not_although_they_are_known() {
        let mut calls = calls();
        calls[0].call.called_from = 1;
        let mut known = Known::default();
        known.learn(&calls, Some(&INNERMOST), &[]).unwrap();
        assert!(known.is_stack(&calls, &INNERMOST, &[]));
        assert!(!known.is_stack(&calls, &INNERMOST, &[997]));
        assert!(known.is_of_others(&calls[0], &calls[1..]));
    }

    #[test]
    fn records_that_were_never_seen_whole_are_not() {
        for number in 0..3 {
            let mut function = calls();
            function[number].call.function = 9;
            let mut name = calls();
            name[number].cell = [9; CELL];
            let mut site = calls();
            site[number].called_at = Root::Nothing;
            for calls in [function, name, site] {
                assert!(!is_stack(&calls, &INNERMOST, &[997, 998, 999]), "{number}");
            }
        }
    }

    /// The record of `h()` contains the environments of its call by `i()`, but its other fields are those of its call
    /// by `g()`.
    #[test]
    fn functions_that_never_called_each_other_are_not() {
        let mut calls = calls();
        calls[1] = called(2, 5, 102, 101);
        let others = [calls[1], calls[2]];
        let mut known = Known::default();
        known.learn(&self::calls(), Some(&INNERMOST), &[]).unwrap();
        known.learn(&others, Some(&INNERMOST), &[]).unwrap();
        assert!(known.is_stack(&others, &INNERMOST, &[998]));
        assert!(!known.is_stack(&calls, &INNERMOST, &[997, 998]));
    }

    #[test]
    fn the_innermost_function_must_have_been_in_this_code() {
        let other = Root::Srcref {
            address: 98,
            object: [0; CELL],
        };
        assert!(is_stack(&calls(), &other, &[998]));
        assert!(!is_stack(&calls(), &other, &[997]));
        assert!(is_stack(&calls(), &Root::Nothing, &[997]));
    }

    #[test]
    fn records_that_are_no_calls_must_not_move() {
        assert!(!is_stack(&calls(), &INNERMOST, &[500]));
        assert!(!is_stack(&calls(), &INNERMOST, &[998, 997]));
    }

    #[test]
    fn where_a_function_begins_is_not_learned() {
        let calls = calls();
        let mut known = Known::default();
        known.learn(&calls, Some(&calls[0].called_at), &[]).unwrap();
        assert!(!known.is_stack(&calls, &calls[0].called_at, &[997]));
    }

    #[test]
    fn calls_that_have_moved_are_not_learned_nor_are_their_callees() {
        let mut known = Known::default();
        known.learn(&calls(), Some(&INNERMOST), &[998]).unwrap();
        let is_call = |number: usize| known.is_call(&calls()[number], &calls()[number + 1..]);
        assert_eq!([0, 1, 2].map(is_call), [false, false, true]);
        assert!(!known.is_innermost(&calls()[0], &INNERMOST));
    }

    /// A method that `g()` dispatches to is called from the environment of `f()`.
    #[test]
    fn methods_are_called_from_where_their_generic_was_called() {
        let mut calls = calls();
        calls[0].call.called_from = calls[2].call.environment;
        let mut known = Known::default();
        known.learn(&calls, Some(&INNERMOST), &[]).unwrap();
        assert!(known.is_stack(&calls, &INNERMOST, &[997]));
        calls[0].call.called_from = calls[1].call.environment;
        assert!(!known.is_stack(&calls, &INNERMOST, &[997]));
    }

    #[test]
    fn a_later_position_is_replaced_by_the_only_site_of_such_calls() {
        let mut known = Known::default();
        known.learn(&calls(), Some(&INNERMOST), &[]).unwrap();
        let mut later = calls();
        later[1].called_at = Root::Nothing;
        // The position of a call that is stored in its record does not change.
        known.correct_sites(&mut later);
        assert_eq!(later[1].called_at, Root::Nothing);
        let (code, variable) = (0, 0);
        later[1].call.site = Site::Absolute { code, variable };
        known.correct_sites(&mut later);
        assert_eq!(later[1].called_at, calls()[1].called_at);
        // There are two such sites from now on.
        let mut other = calls();
        other[1].called_at = INNERMOST;
        known.learn(&other, None, &[]).unwrap();
        later[1].called_at = Root::Nothing;
        known.correct_sites(&mut later);
        assert_eq!(later[1].called_at, Root::Nothing);
    }
}
