//! The memory of a process, accessed by numeric addresses. These may be invalid, in which case reading fails: nothing
//! is dereferenced except R's stacks and variables in this process.

use profile_core::error::Result;
use std::ops::Range;

/// The memory of a process that may change at any time.
pub trait Memory {
    /// Copies what is at `address`. Returns `false` if not all of it can be read.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;

    /// Declares that these ranges remain mapped as long as the process exists.
    fn keep_at_hand(&mut self, _parts: &[Range<u64>]) -> Result<()> {
        Ok(())
    }

    /// Copies pieces one after the other to `into`, which has room for all, in as few system calls as possible. Stops
    /// at the first piece that cannot be read. Returns the number of pieces that were read.
    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        let mut start = 0_usize;
        let failed = pieces.iter().position(|piece| {
            let part = into.get_mut(start..start.saturating_add(piece.size));
            start = start.saturating_add(piece.size);
            !part.is_some_and(|part| self.read(piece.address, part))
        });
        failed.unwrap_or(pieces.len())
    }
}

/// Memory that does not change for some time, so that it can be looked at without copying it.
pub trait View<'m>: Memory {
    /// `None` if not all of it can be read.
    fn view(&mut self, address: u64, size: usize) -> Option<&'m [u8]>;
}

/// The size of the smallest pages of memory of any system. Larger ones have a multiple of it, so all or nothing of such a
/// part can be read.
pub const MEMORY_PAGE: u64 = 4096;

/// A part of the address space of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub addresses: Range<u64>,
    /// Whether it maps the start of a file.
    pub starts_file: bool,
}

/// A piece of memory. It has the layout of an `iovec` of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    pub address: u64,
    pub size: usize,
}

/// Memory with a limit on the amount that is read. After that, reads fail. The contents of a process may be damaged,
/// or crafted, so that it would take hours to read them as R does.
#[derive(Debug)]
pub struct Limited<M> {
    memory: M,
    /// The remaining amount, in units of about a microsecond.
    left: u64,
}

impl<M> Limited<M> {
    pub fn new(memory: M, limit: u64) -> Limited<M> {
        Limited {
            memory,
            left: limit,
        }
    }

    /// The memory without the limit.
    pub fn inner(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Sets a new limit, which replaces the rest of the last one.
    pub fn limit(&mut self, limit: u64) {
        self.left = limit;
    }

    /// Whether the limit was reached. Some reads may have failed only for that reason.
    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Charges a read to the limit. Returns whether the limit allows it. A system call costs one unit, and so do 3
    /// pieces or a kilobyte. The cost of bytes includes their processing by the caller.
    fn pays(&mut self, pieces: usize, bytes: usize) -> bool {
        let cost = 1 + pieces / 3 + bytes / 1024;
        self.left = self.left.saturating_sub(cost as u64);
        self.left > 0
    }
}

impl<M: Memory> Memory for Limited<M> {
    #[inline]
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        self.pays(1, into.len()) && self.memory.read(address, into)
    }

    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        if self.pays(pieces.len(), into.len()) {
            self.memory.read_pieces(pieces, into)
        } else {
            0
        }
    }
}

/// The word at an address.
pub fn word(memory: &mut impl Memory, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory
        .read(address, &mut bytes)
        .then(|| u64::from_le_bytes(bytes))
}

/// An array at an address.
pub fn array<const SIZE: usize>(memory: &mut impl Memory, address: u64) -> Option<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    memory.read(address, &mut bytes).then_some(bytes)
}

/// The word at an offset in bytes that were read; 0 beyond their end.
#[inline]
pub fn at(bytes: &[u8], offset: usize) -> u64 {
    match bytes.get(offset..).and_then(<[u8]>::first_chunk) {
        Some(word) => u64::from_le_bytes(*word),
        None => 0,
    }
}

/// The 4 bytes at an offset in bytes that were read; 0 beyond their end.
#[inline]
pub fn half_at(bytes: &[u8], offset: usize) -> u32 {
    match bytes.get(offset..).and_then(<[u8]>::first_chunk) {
        Some(word) => u32::from_le_bytes(*word),
        None => 0,
    }
}
