//! A simulated process: its memory consists of arrays, in which R is laid out as in a real process. The tests of this
//! crate and its fuzzer read it.
//!
//! - `mod.rs`: the memory;
//! - `module.rs`: the module that exports R's variables;
//! - `objects.rs`: R's objects;
//! - `process.rs`: variables, stacks and records, and how all of it is put together;
//! - `recording.rs`: a recording of it.

// The fuzzer does not use everything that the tests use.
#![allow(unused)]

pub mod module;
pub mod objects;
pub mod process;
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod recording;

use profile_runtime::memory::{Memory, Piece};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// A part of the address space.
#[derive(Debug, Clone)]
pub struct Region {
    pub start: u64,
    pub bytes: Vec<u8>,
}

impl Region {
    fn part(&self, address: u64, size: usize) -> Option<Range<usize>> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(size)?;
        (to <= self.bytes.len()).then_some(from..to)
    }
}

/// An address space. A range that crosses the end of a region cannot be read.
#[derive(Debug, Clone, Default)]
pub struct Space {
    /// Sorted by address.
    pub regions: Vec<Region>,
    /// Ranges that cannot be read any more.
    pub holes: Vec<Range<u64>>,
}

impl Space {
    pub fn add(&mut self, start: u64, size: usize) {
        self.add_bytes(start, vec![0; size]);
    }

    pub fn add_bytes(&mut self, start: u64, bytes: Vec<u8>) {
        let after = self.regions.partition_point(|region| region.start < start);
        self.regions.insert(after, Region { start, bytes });
    }

    fn part(&self, address: u64, size: usize) -> Option<(usize, Range<usize>)> {
        let after = self
            .regions
            .partition_point(|region| region.start <= address);
        let number = after.checked_sub(1)?;
        Some((number, self.regions[number].part(address, size)?))
    }

    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        // The kernel does not check the address if nothing is read.
        if into.is_empty() {
            return true;
        }
        let Some((number, part)) = self.part(address, into.len()) else {
            return false;
        };
        let end = address + into.len() as u64;
        if self
            .holes
            .iter()
            .any(|hole| hole.start < end && address < hole.end)
        {
            return false;
        }
        into.copy_from_slice(&self.regions[number].bytes[part]);
        true
    }

    /// The word at an address that exists.
    pub fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        assert!(self.read(address, &mut bytes), "nothing at {address:#x}");
        u64::from_le_bytes(bytes)
    }

    /// Changes what is at an address that exists.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        if let Some((number, part)) = self.part(address, bytes.len()) {
            self.regions[number].bytes[part].copy_from_slice(bytes);
            return;
        }
        panic!("nothing at {address:#x}");
    }

    pub fn set(&mut self, address: u64, word: u64) {
        self.write(address, &word.to_le_bytes());
    }

    /// Makes a range unreadable.
    pub fn hide(&mut self, range: Range<u64>) {
        self.holes.push(range);
    }
}

type Hook = Box<dyn FnMut(&mut Space, u64)>;

/// The memory of a process, shared by the reader and the test, which changes it meanwhile.
#[derive(Clone)]
pub struct FakeMemory(Rc<RefCell<Inner>>);

struct Inner {
    space: Space,
    calls: u64,
    reads: u64,
    bytes: u64,
    before_read: Option<Hook>,
}

impl FakeMemory {
    pub fn new(space: Space) -> FakeMemory {
        FakeMemory(Rc::new(RefCell::new(Inner {
            space,
            calls: 0,
            reads: 0,
            bytes: 0,
            before_read: None,
        })))
    }

    pub fn change<R>(&self, with: impl FnOnce(&mut Space) -> R) -> R {
        with(&mut self.0.borrow_mut().space)
    }

    /// The number of system calls that the reads would take in a real process.
    pub fn calls(&self) -> u64 {
        self.0.borrow().calls
    }

    /// The number of reads; each piece counts.
    pub fn reads(&self) -> u64 {
        self.0.borrow().reads
    }

    /// The number of bytes that were requested.
    pub fn bytes(&self) -> u64 {
        self.0.borrow().bytes
    }

    /// Calls the hook before each read, with the number of previous reads, counted from now on.
    pub fn before_read(&self, mut hook: impl FnMut(&mut Space, u64) + 'static) {
        let first = self.reads();
        let hook = move |space: &mut Space, reads| hook(space, reads - first);
        self.0.borrow_mut().before_read = Some(Box::new(hook));
    }

    pub fn leave_alone(&self) {
        self.0.borrow_mut().before_read = None;
    }
}

impl Inner {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if let Some(hook) = &mut self.before_read {
            hook(&mut self.space, self.reads);
        }
        self.reads += 1;
        self.bytes += into.len() as u64;
        self.space.read(address, into)
    }
}

impl Memory for FakeMemory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let mut inner = self.0.borrow_mut();
        inner.calls += 1;
        inner.read(address, into)
    }

    fn read_pieces(&mut self, pieces: &[Piece], mut into: &mut [u8]) -> usize {
        let mut inner = self.0.borrow_mut();
        inner.calls += 1;
        let failed = pieces.iter().position(|piece| {
            let (part, rest) = std::mem::take(&mut into).split_at_mut(piece.size);
            into = rest;
            !inner.read(piece.address, part)
        });
        failed.unwrap_or(pieces.len())
    }
}
