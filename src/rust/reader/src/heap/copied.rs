//! A copy of R's heap, and of what its roots need. It can be read like the memory of the process, see
//! [`super::copying`] for how it is made.

use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, copied};
use profile_runtime::memory::{Memory, View};
use std::cmp::Reverse;

pub struct Part {
    pub address: u64,
    pub bytes: Vec<u8>,
}

impl Part {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes.len() as u64)
    }
}

/// Parts of the memory of a process.
#[derive(Default)]
pub struct Copied {
    /// After the copy is complete, in the order of their addresses.
    pub parts: Vec<Part>,
}

impl Copied {
    /// Sorts the parts, and drops those that are contained in others: a library's variables may contain R's heap. Chunks
    /// overlap otherwise, so that each page is contained in one.
    pub fn drop_contained(&mut self) {
        self.parts
            .sort_unstable_by_key(|part| (part.address, Reverse(part.bytes.len())));
        let mut end = 0;
        self.parts.retain(|part| {
            let is_new = part.end() > end;
            end = end.max(part.end());
            is_new
        });
    }

    fn find(&self, address: u64, size: usize) -> Option<&[u8]> {
        let after = self.parts.partition_point(|part| part.address <= address);
        let part = self.parts.get(after.checked_sub(1)?)?;
        let start = (address - part.address) as usize;
        part.bytes.get(start..start.checked_add(size)?)
    }
}

/// The copy as memory.
pub struct CopiedMemory<'m>(pub &'m Copied);

impl Memory for CopiedMemory<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        match self.0.find(address, into.len()) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}

impl<'m> View<'m> for CopiedMemory<'m> {
    fn view(&mut self, address: u64, size: usize) -> Option<&'m [u8]> {
        self.0.find(address, size)
    }
}

/// Memory, and everything that was read from it.
pub struct Noted<'n, M> {
    memory: &'n mut M,
    parts: Vec<Part>,
    error: Option<Error>,
}

impl<'n, M> Noted<'n, M> {
    pub fn new(memory: &'n mut M) -> Noted<'n, M> {
        Noted {
            memory,
            parts: Vec::new(),
            error: None,
        }
    }

    pub fn parts(self) -> Result<Vec<Part>> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.parts),
        }
    }
}

impl<M: Memory> Memory for Noted<'_, M> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if !self.memory.read(address, into) {
            return false;
        }
        let noted = copied(into).and_then(|bytes| self.parts.try_push(Part { address, bytes }));
        self.error = self.error.take().or(noted.err());
        true
    }
}
