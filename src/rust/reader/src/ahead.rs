//! Reads at once what the last stack needed, because the next one probably needs the same.
//!
//! A system call takes longer than copying what it reads, and each call of a stack takes several reads.

use crate::memory::Memory;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_runtime::contexts::RECORD;
use profile_runtime::objects::CELL;
use std::collections::HashMap;

const WHAT: &str = "the memory of a process";

/// A memory with copies of some pieces.
#[derive(Debug)]
pub struct Ahead<M> {
    memory: M,
    records: Copies,
    cells: Copies,
}

/// Copies of pieces of one size, valid until the next stack is read.
#[derive(Debug)]
struct Copies {
    size: usize,
    bytes: Vec<u8>,
    places: HashMap<u64, usize, foldhash::fast::RandomState>,
    /// The addresses that this stack has needed.
    needed: Vec<u64>,
}

impl<M: Memory> Ahead<M> {
    pub fn new(memory: M) -> Ahead<M> {
        let copies = |size| Copies {
            size,
            bytes: Vec::new(),
            places: HashMap::default(),
            needed: Vec::new(),
        };
        Ahead {
            memory,
            records: copies(RECORD),
            cells: copies(CELL),
        }
    }

    /// Copies the records that the last stack needed. To be called before the first record is read.
    pub fn copy_records(&mut self) -> Result<()> {
        self.cells.places.clear();
        self.records.copy(&mut self.memory)
    }

    /// Copies the objects that the last stack needed. To be called when all records were read: an object that was
    /// copied before may be another one when a record refers to it.
    pub fn copy_cells(&mut self) -> Result<()> {
        self.cells.copy(&mut self.memory)
    }
}

impl Copies {
    fn copy(&mut self, memory: &mut impl Memory) -> Result<()> {
        self.places.clear();
        self.bytes.clear();
        // Recursion needs the same objects many times.
        self.needed.sort_unstable();
        self.needed.dedup();
        let size = self.needed.len().saturating_mul(self.size);
        self.bytes.try_fill(size, 0, WHAT)?;
        let copied = memory.read_each(&self.needed, &mut self.bytes);
        for (number, &address) in self.needed.iter().take(copied).enumerate() {
            self.places.try_put(address, number * self.size, WHAT)?;
        }
        self.needed.clear();
        Ok(())
    }

    /// The copy of what is at an address. It is copied for the next stack.
    fn get(&mut self, address: u64, size: usize) -> Option<&[u8]> {
        // Without memory for it, it is read again.
        let _ = self.needed.try_push(address, WHAT);
        let start = *self.places.get(&address)?;
        self.bytes.get(start..start + size)
    }
}

impl<M: Memory> Memory for Ahead<M> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let copies = match into.len() {
            RECORD => &mut self.records,
            0..=CELL => &mut self.cells,
            _ => return self.memory.read(address, into),
        };
        match copies.get(address, into.len()) {
            Some(copy) => {
                into.copy_from_slice(copy);
                true
            }
            None => self.memory.read(address, into),
        }
    }

    /// Never of copies.
    fn read_each(&mut self, addresses: &[u64], into: &mut [u8]) -> usize {
        self.memory.read_each(addresses, into)
    }
}
