//! Copies of the objects that the calls of a stack refer to, made in one system call as soon as the records are
//! known.

use crate::memory::{Memory, at};
use crate::pieces::{Group, Kind, Sequence, end};
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::objects::{ATTRIBUTES, CELL, Type};

/// The maximum number of attempts. Each one omits the objects that could not be read before. Only stacks that change
/// while they are read refer to such objects.
const TRIES: usize = 4;

/// Copies of objects of R, of which only the first words are needed.
#[derive(Debug, Default)]
pub struct Objects {
    /// The address of each object, and the offset of its copy. Sorted.
    starts: Vec<(u64, usize)>,
    bytes: Vec<u8>,
}

impl Objects {
    pub fn clear(&mut self) {
        self.starts.clear();
    }

    /// Replaces the copies by those of the objects with these addresses, as far as they can be read.
    pub fn copy(
        &mut self,
        memory: &mut impl Memory,
        addresses: impl Iterator<Item = u64>,
    ) -> Result<()> {
        self.clear();
        let mut needs = Vec::new();
        for address in addresses {
            needs.try_push((0, address, (Kind::Object, address), CELL))?;
        }
        needs.sort_unstable();
        needs.dedup();
        for _ in 0..TRIES {
            let group = Group::of(&needs)?;
            let mut sequence = Sequence::default();
            let starts = sequence.add_all(group.pieces.iter())?;
            self.bytes.clear();
            self.bytes.try_fill(sequence.size, 0)?;
            let read = memory.read_pieces(&sequence.pieces, &mut self.bytes);
            let Some(piece) = group.pieces.get(read) else {
                for member in &group.members {
                    let (_, address) = member.key;
                    let start = starts[member.piece] + member.inside;
                    self.starts.try_push((address, start))?;
                }
                break;
            };
            let wrong = piece.address..end(piece);
            needs.retain(|(_, address, ..)| !wrong.contains(address));
        }
        Ok(())
    }

    /// The first bytes of an object, if they were copied.
    pub fn get(&self, address: u64, size: usize) -> Option<&[u8]> {
        let found = self.starts.binary_search_by_key(&address, |start| start.0);
        let (_, start) = self.starts.get(found.ok()?)?;
        self.bytes.get(*start..)?.get(..size.min(CELL))
    }
}

/// Whether both are copies of the same object. Garbage collection and reference counting change the header, but not
/// the type.
pub fn is_same(first: &[u8; CELL], second: &[u8; CELL]) -> bool {
    let (from, types) = (
        ATTRIBUTES,
        [first, second].map(|object| Type::of(at(object, 0))),
    );
    types[0] == types[1] && first[from..] == second[from..]
}
