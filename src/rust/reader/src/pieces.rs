//! Groups the ranges of memory that are needed into pieces to copy, and locates the ranges in the copies.

use crate::memory::Piece;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

/// The smallest page size. If one byte of a page can be read, the whole page can.
const PAGE: u64 = 4096;
/// The maximum distance between the record of a function and the variables of the byte code interpreter, which are
/// two kilobytes apart.
pub const NEAR: u64 = 4096;

/// Ranges of a stack that are closer than this are copied as one piece: another piece takes longer than copying this
/// many bytes.
const GAP: u64 = NEAR;

/// What a range is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Object,
    Record,
    /// A variable of R.
    Variable,
    /// The position of the innermost function in its byte code.
    Position,
    /// The position of a function that has called another one.
    Caller,
}

/// Identifies a range. The kind is included because the same address may contain the position of the innermost
/// function in one stack, and that of a caller in the next.
pub type Key = (Kind, u64);

/// Pieces to copy. Ranges on the same page are combined into one piece: another piece takes longer than copying the
/// bytes in between.
#[derive(Default)]
pub struct Group {
    pub pieces: Vec<Piece>,
    pub members: Vec<Member>,
}

/// A range, the number of its piece, and its offset inside that piece.
pub struct Member {
    pub key: Key,
    pub size: usize,
    pub piece: usize,
    pub inside: usize,
}

impl Group {
    /// Each need consists of its position in the order, its address, its key and its size.
    pub fn of(needs: &[(usize, u64, Key, usize)]) -> Result<Group> {
        let mut group = Group::default();
        for &(_, address, key, size) in needs {
            let piece = Piece { address, size };
            match group.pieces.last_mut() {
                Some(last) if is_near(last, &piece, key.0) => *last = joined(last, &piece),
                _ => group.pieces.try_push(piece)?,
            }
            let member = Member {
                key,
                size,
                piece: group.pieces.len() - 1,
                inside: 0,
            };
            group.members.try_push(member)?;
        }
        // Only now the beginnings of the pieces are known.
        for (member, (_, address, ..)) in group.members.iter_mut().zip(needs) {
            member.inside = (address - group.pieces[member.piece].address) as usize;
        }
        Ok(group)
    }
}

/// Pieces in the order in which they are copied.
#[derive(Debug, Default)]
pub struct Sequence {
    pub pieces: Vec<Piece>,
    /// The size of all copies.
    pub size: usize,
}

impl Sequence {
    /// Adds a piece. Returns where its copy begins.
    pub fn add(&mut self, piece: Piece) -> Result<usize> {
        self.pieces.try_push(piece)?;
        let start = self.size;
        self.size += piece.size;
        Ok(start)
    }

    /// Adds pieces. Returns where their copies begin.
    pub fn add_all<'p>(&mut self, pieces: impl Iterator<Item = &'p Piece>) -> Result<Vec<usize>> {
        let mut starts = Vec::new();
        for &piece in pieces {
            starts.try_push(self.add(piece)?)?;
        }
        Ok(starts)
    }
}

/// Whether two pieces can be combined, because everything in between can be read. Records and positions are on
/// stacks, which have no holes.
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

/// The address after the last byte of a piece.
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
