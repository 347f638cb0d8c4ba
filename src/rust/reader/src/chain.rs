//! Whether records that changed while they were copied are a stack nevertheless.
//!
//! Some records had moved on before they were read the second time: one function had returned and another one, or the
//! same again, been called. What one of both readings found is a stack if each call is known to belong to the next
//! outer one, and each record is whole:
//!
//! - If two records have not changed, their calls were there the whole time. Otherwise the inner one must say that it
//!   was called from the environment of the outer one, which is new in each call. What is left of a call that has
//!   returned does not say so of the one that is where its caller was.
//! - A record that R was just filling has fields of two calls: the environments of the new one, say, and the function of
//!   the old one. So this function must have called that one from this site in a stack that did not change, and the
//!   innermost one must have been in this code.

use crate::ahead::Moved;
use crate::calls::Call;
use crate::memory::at;
use crate::places::Root;
use profile_core::error::Result;
use profile_core::limits::memory::TryPut;
use profile_runtime::objects::{CAR, CELL};
use std::collections::HashMap;

/// Some processes compile again and again what they evaluate.
const MOST: usize = 1 << 16;

/// A call, and what it refers to.
#[derive(Debug, Clone, Copy)]
pub struct Called {
    pub call: Call,
    pub cell: [u8; CELL],
    pub called_at: Root,
}

/// What was together in records that did not change.
#[derive(Debug, Default)]
pub struct Known(HashMap<Fields, (), foldhash::fast::RandomState>);

/// What a record says: the function, its name, which is the first element of the call, and the site of the call, which
/// is two words. The caller is the function of the next outer record. Without a caller and a name it is the site where
/// the function is, and without a function any call at this site. Calls themselves are not always the same: `lapply()` makes a new one each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Fields {
    caller: u64,
    function: u64,
    name: u64,
    site: [u64; 2],
}

impl Fields {
    fn of(called: &Called, caller: Option<&Called>) -> Fields {
        Fields {
            caller: caller.map_or(0, |caller| caller.call.function),
            function: called.call.function,
            name: at(&called.cell, CAR),
            site: site(&called.called_at),
        }
    }

    fn of_site(caller: u64, called_at: &Root) -> Fields {
        Fields {
            caller,
            function: 0,
            name: 0,
            site: site(called_at),
        }
    }

    fn of_innermost(called: &Called, innermost: &Root) -> Fields {
        let site = match *innermost {
            Root::Nothing => 0,
            Root::Srcref { address, .. } => address,
            Root::Code { object, .. } => object,
        };
        Fields {
            caller: 0,
            function: called.call.function,
            name: 0,
            site: [site, 0],
        }
    }
}

fn site(root: &Root) -> [u64; 2] {
    match *root {
        Root::Nothing => [0; 2],
        Root::Srcref { address, .. } => [address, 0],
        Root::Code {
            object, position, ..
        } => [object, position.wrapping_add(1)],
    }
}

/// Each call, innermost first, with the next outer one.
fn with_callers(calls: &[Called]) -> impl Iterator<Item = (&Called, Option<&Called>)> {
    let callers = calls.iter().skip(1).map(Some).chain([None]);
    calls.iter().zip(callers)
}

impl Known {
    /// Remembers calls that did not change, innermost first, and where the innermost function was.
    pub fn learn(&mut self, calls: &[Called], innermost: &Root) -> Result<()> {
        if self.0.len() > MOST {
            self.0.clear();
        }
        if let Some(first) = calls.first() {
            // While a function begins, R is still where it was called.
            if first.called_at != *innermost {
                self.put(Fields::of_innermost(first, innermost))?;
            }
        }
        with_callers(calls).try_for_each(|(called, caller)| {
            if let Some(caller) = caller {
                self.put(Fields::of_site(caller.call.function, &called.called_at))?;
            }
            self.put(Fields::of(called, caller))
        })
    }

    /// Whether this function has called another one here.
    pub fn has_site(&self, function: u64, site: &Root) -> bool {
        self.has(&Fields::of_site(function, site))
    }

    fn put(&mut self, fields: Fields) -> Result<()> {
        if !self.0.contains_key(&fields) {
            self.0.try_put(fields, (), "the calls of a process")?;
        }
        Ok(())
    }

    /// Whether these calls are a stack, although some of their records have moved on.
    pub fn is_stack(&self, calls: &[Called], innermost: &Root, moved: &Moved) -> bool {
        // They were read in the order of the calls.
        let mut moved = moved.records.iter().peekable();
        let mut inner: Option<(&Called, bool)> = None;
        for (called, caller) in with_callers(calls) {
            let has_moved = moved.next_if_eq(&&called.call.record.address).is_some();
            let is_right = match inner {
                Some((_, false)) if !has_moved => true,
                Some((inner, _)) => inner.call.called_from == called.call.environment,
                None if !has_moved => true,
                // Where it is may be unknown.
                None => {
                    *innermost == Root::Nothing
                        || self.has(&Fields::of_innermost(called, innermost))
                }
            };
            if !is_right || !self.has(&Fields::of(called, caller)) {
                return false;
            }
            inner = Some((called, has_moved));
        }
        // What is left is no call.
        moved.peek().is_none()
    }

    /// Whether the first call belongs to the second one, the next outer one.
    pub fn is_call(&self, called: &Called, caller: Option<&Called>) -> bool {
        caller.is_none_or(|caller| called.call.called_from == caller.call.environment)
            && self.has(&Fields::of(called, caller))
    }

    /// Whether the innermost function has been in this code.
    pub fn is_innermost(&self, called: &Called, innermost: &Root) -> bool {
        *innermost == Root::Nothing || self.has(&Fields::of_innermost(called, innermost))
    }

    fn has(&self, fields: &Fields) -> bool {
        self.0.contains_key(fields)
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
        known.learn(&self::calls(), &INNERMOST).unwrap();
        let moved = Moved {
            records: moved.to_vec(),
            has_position: false,
        };
        known.is_stack(calls, innermost, &moved)
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
                assert!(!is_stack(&calls, &INNERMOST, &[998]), "{number}");
            }
        }
    }

    /// The record of `h()` has the environments of its call by `i()`, but it is that of its call by `g()`.
    #[test]
    fn functions_that_never_called_each_other_are_not() {
        let mut calls = calls();
        calls[1] = called(2, 5, 102, 101);
        let others = [calls[1], calls[2]];
        let mut known = Known::default();
        known.learn(&self::calls(), &INNERMOST).unwrap();
        known.learn(&others, &INNERMOST).unwrap();
        let moved = |records: &[u64]| Moved {
            records: records.to_vec(),
            has_position: false,
        };
        assert!(known.is_stack(&others, &INNERMOST, &moved(&[998])));
        assert!(!known.is_stack(&calls, &INNERMOST, &moved(&[997, 998])));
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
        known.learn(&calls, &calls[0].called_at).unwrap();
        let moved = Moved {
            records: vec![997],
            has_position: false,
        };
        assert!(!known.is_stack(&calls, &calls[0].called_at, &moved));
    }
}
