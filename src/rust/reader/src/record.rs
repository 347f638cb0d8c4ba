//! Where R's record of a call is.

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
