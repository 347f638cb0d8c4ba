//! R's record of a call: where it is, and which call it is of.

use crate::memory::{at, half_at};
use profile_runtime::contexts::{BCBODY, BCPC, CALL, CALLFLAG, CALLFUN, CLOENV, NEXT, SYSPARENT};

/// Deeper stacks are cut: their outermost calls are left out. R's own limit is 5,000 calls by default.
pub const MOST_CALLS: usize = 100_000;

/// Where R has stored the record of a call. This determines the place of the call among native frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnStack {
    /// The address of the record; 0 if there is none.
    pub address: u64,
    /// The list of promises that were pending.
    pub promises: u64,
}

/// What tells a record from others that have been at its address: the fields that do not change while its function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity([u64; 8]);

impl Identity {
    /// The size of the part of a record that contains these fields.
    pub const SIZE: usize = BCPC as usize + 8;

    pub fn of(record: &[u8]) -> Identity {
        let words = [NEXT, CALLFUN, SYSPARENT, CALL, CLOENV, BCBODY, BCPC];
        let [next, function, parent, call, environment, code, pc] =
            words.map(|field| at(record, field as usize));
        let flags = half_at(record, CALLFLAG as usize).into();
        Identity([next, flags, function, parent, call, environment, code, pc])
    }
}
