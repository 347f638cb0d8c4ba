//! The C stack on which R runs.
//!
//! R itself takes the stack of the first thread for its own (`R_CStackStart`), also if a program that embeds R runs it in
//! another thread, as Java and servers do. The records of R's calls show where R runs: they are on the stack of its
//! thread, except those on the node stack.

use profile_runtime::contexts::{BCPC, Walk};
use profile_runtime::memory::{self, Memory};
use std::ops::Range;

/// More than a C stack takes, even without a limit on its size.
const MOST_STACK: u64 = 1 << 36;

/// The stack that contains an address, given what is mapped, in the order of addresses. It may grow downwards as far as
/// nothing else is mapped.
pub fn stack_at(mapped: impl Iterator<Item = Range<u64>>, address: u64) -> Option<Range<u64>> {
    let (mut below, mut end) = (0, None);
    for part in mapped {
        if part.contains(&address) {
            end = Some(part.end);
        } else if part.end <= address {
            below = part.end.max(below);
        }
    }
    end.map(|end| below.max(end.saturating_sub(MOST_STACK))..end)
}

/// An address on the C stack on which R runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// That of the innermost record on a C stack.
    Record(u64),
    /// If all records are on the node stack: what is probably the address of the variable with the position of the byte
    /// code interpreter.
    Position(u64),
}

impl Whereabouts {
    pub fn address(self) -> u64 {
        match self {
            Whereabouts::Record(address) | Whereabouts::Position(address) => address,
        }
    }
}

/// Where R runs, given its innermost record, the outermost one, and the node stack. `None` if R runs no function, or has
/// changed its records meanwhile.
pub fn whereabouts(
    memory: &mut impl Memory,
    innermost: u64,
    toplevel: u64,
    node_stack: &Range<u64>,
) -> Option<Whereabouts> {
    let mut walk = Walk::new(innermost);
    let mut position = None;
    while let Some((address, head)) = walk.next_head(memory) {
        if address == toplevel {
            return position.map(Whereabouts::Position);
        }
        if !head.is_possible() {
            return None;
        }
        if !node_stack.contains(&address) {
            return Some(Whereabouts::Record(address));
        }
        if position.is_none() {
            let variable = memory::word(memory, address.saturating_add(BCPC))?;
            let is_possible = |variable: &u64| {
                *variable != 0 && variable % 8 == 0 && !node_stack.contains(variable)
            };
            position = Some(variable).filter(is_possible);
        }
    }
    None
}
