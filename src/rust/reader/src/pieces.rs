//! Which pieces of memory are copied, so that all that is needed is in them, and where it is in the copies.

use crate::memory::Piece;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

const WHAT: &str = "the memory of a process";
/// The smallest size of pages. If one byte can be read, all of its page can.
const PAGE: u64 = 4096;
/// The variables of the byte code interpreter are two kilobytes from the record of its function.
pub const NEAR: u64 = 4096;

/// Another piece of a stack takes longer than copying so much.
const GAP: u64 = NEAR;

/// What is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Object,
    Record,
    /// A variable of R.
    Variable,
    /// The position of the innermost function in its byte code.
    Position,
    /// That of a function that has called another one.
    Caller,
}

/// A piece by its address. A position may be that of the innermost function in one stack, and not in the next.
pub type Key = (Kind, u64);

/// Pieces that are copied one after the other. What is on the same page becomes one piece: another piece takes
/// longer than copying what is in between.
#[derive(Default)]
pub struct Group {
    pub pieces: Vec<Piece>,
    pub size: usize,
    pub members: Vec<Member>,
}

/// What is needed of a piece. It starts here in the copies of the group, and here if they are made backwards.
pub struct Member {
    pub key: Key,
    pub size: usize,
    pub start: usize,
    pub start_backwards: usize,
}

impl Group {
    /// Each need has its order, its address, its key and its size.
    pub fn of(needs: &[(usize, u64, Key, usize)]) -> Result<Group> {
        let mut group = Group::default();
        let mut numbers = Vec::new();
        for &(_, address, (kind, _), size) in needs {
            let piece = Piece { address, size };
            match group.pieces.last_mut() {
                Some(last) if is_near(last, &piece, kind) => *last = joined(last, &piece),
                _ => group.pieces.try_push(piece, WHAT)?,
            }
            numbers.try_push(group.pieces.len() - 1, WHAT)?;
        }
        group.size = group.pieces.iter().map(|piece| piece.size).sum();
        let (mut start, mut number) = (0, 0);
        for (&(_, address, key, size), &of) in needs.iter().zip(&numbers) {
            while number < of {
                start += group.pieces[number].size;
                number += 1;
            }
            let piece = group.pieces[number];
            let inside = (address - piece.address) as usize;
            let member = Member {
                key,
                size,
                start: start + inside,
                start_backwards: group.size - start - piece.size + inside,
            };
            group.members.try_push(member, WHAT)?;
        }
        Ok(group)
    }
}

/// Whether what is in between can be read. Records and positions are on stacks, which have no holes.
fn is_near(one: &Piece, other: &Piece, kind: Kind) -> bool {
    let (first, second) = match one.address < other.address {
        true => (one, other),
        false => (other, one),
    };
    let is_on_stack = matches!(kind, Kind::Record | Kind::Position | Kind::Caller);
    if is_on_stack {
        return second.address.saturating_sub(end(first)) < GAP;
    }
    let pages = |piece: &Piece| piece.address / PAGE..=(end(piece) - 1) / PAGE;
    let (one, other) = (pages(one), pages(other));
    one.contains(other.start()) || other.contains(one.start())
}

/// The address behind a piece.
pub fn end(piece: &Piece) -> u64 {
    piece.address.saturating_add(piece.size as u64)
}

fn joined(one: &Piece, other: &Piece) -> Piece {
    let address = one.address.min(other.address);
    Piece {
        address,
        size: (end(one).max(end(other)) - address) as usize,
    }
}
