//! The memory that an object outside of R's pages was given, from the header of glibc's `malloc()`.
//!
//! The length of a vector does not tell: packages make vectors longer than they say, to append to them later. R marks only
//! vectors that it has made so itself ([`crate::objects::GROWABLE`]). `TRUELENGTH` may be the length with which a vector
//! was made, but also a hash, a number of used elements, or a mark that somebody has left there.
//!
//! Before the memory of a chunk there are its size and three flags, one of which says that it is a mapping of its own
//! (`malloc/malloc.c` of glibc).

use crate::memory::MEMORY_PAGE;
use crate::node::Node;
use crate::objects::DATA;

/// The size of the header.
pub const HEADER: u64 = 8;
const FLAGS: u64 = 7;
const IS_MAPPED: u64 = 2;
/// What a chunk may be larger than it has to be: its size is a multiple of 16 bytes, and a rest of 16 is not split off.
const SPARE: u64 = 32;

/// A chunk, which is given by its header.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    /// The bytes that it has for a vector's data.
    room: u64,
    /// How many of them may be unused for other reasons than the length of the vector.
    spare: u64,
}

impl Chunk {
    pub fn new(header: u64) -> Chunk {
        let size = header & !FLAGS;
        let (own, spare) = if header & IS_MAPPED == 0 {
            (HEADER, SPARE)
        } else {
            (2 * HEADER, MEMORY_PAGE + SPARE)
        };
        Chunk {
            room: size.saturating_sub(own + DATA as u64),
            spare,
        }
    }

    fn fits(&self, data: u64) -> bool {
        data <= self.room && self.room - data <= self.spare
    }

    /// Whether this is the chunk of a vector of a length that it says.
    pub fn is_of(&self, node: Node) -> bool {
        self.fits(node.data()) || self.fits(node.data_made())
    }

    /// The bytes of data that the vector was made with, or that its chunk has room for. `None` if this cannot be its chunk.
    pub fn data(&self, node: Node) -> Option<u64> {
        let (data, made) = (node.data(), node.data_made());
        if node.is_altrep() || self.fits(data) {
            Some(data)
        } else if data > self.room {
            None
        } else if self.fits(made) {
            Some(made)
        } else {
            Some(self.room & !7)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{GROWABLE, LENGTH, TRUE_LENGTH, Type, VECSXP};

    fn vector(type_: Type, length: u64, true_length: u64) -> Vec<u8> {
        let mut bytes = vec![0; DATA];
        bytes[0] = type_.0;
        bytes[LENGTH..LENGTH + 8].copy_from_slice(&length.to_le_bytes());
        bytes[TRUE_LENGTH..TRUE_LENGTH + 8].copy_from_slice(&true_length.to_le_bytes());
        bytes
    }

    /// The header of a chunk for so many bytes of data.
    fn header(data: u64, is_mapped: bool) -> u64 {
        let size = HEADER + DATA as u64 + data;
        if is_mapped {
            (size + HEADER).next_multiple_of(MEMORY_PAGE) | IS_MAPPED
        } else {
            size.next_multiple_of(16) | 1
        }
    }

    #[test]
    fn vectors_have_the_size_with_which_they_were_made() {
        for is_mapped in [false, true] {
            // Length, length when it was made according to the vector, and in truth.
            for (length, noted, made, expected) in [
                (1000, 0, 1000, 1000),
                // A list of data.table.
                (1, 1025, 1025, 1025),
                // A hash, or a mark.
                (1000, 123_456_789, 1000, 1000),
                (1000, u64::MAX, 1000, 1000),
                (1000, 1001, 1000, 1000),
            ] {
                let bytes = vector(VECSXP, length, noted);
                let chunk = Chunk::new(header(8 * made, is_mapped));
                assert_eq!(chunk.data(Node::new(&bytes)), Some(8 * expected));
            }
            // Shortened without a note.
            let bytes = vector(VECSXP, 10, 0);
            let chunk = Chunk::new(header(80_000, is_mapped));
            let data = chunk.data(Node::new(&bytes)).unwrap();
            assert!((80_000..80_000 + chunk.spare).contains(&data), "{data}");
            // The memory is not glibc's.
            for other in [0, 1, header(2000, is_mapped)] {
                let bytes = vector(VECSXP, 1000, 0);
                assert_eq!(Chunk::new(other).data(Node::new(&bytes)), None);
            }
        }
        assert_eq!(GROWABLE.count_ones(), 1);
    }
}
