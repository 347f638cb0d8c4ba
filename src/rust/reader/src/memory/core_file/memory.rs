//! The memory of a process, from its core file.

use super::elf::Segments;
use super::input::{Input, LIMITS};
use super::stand_in::{SIZE, START};
use profile_core::message;
use profile_runtime::memory::Memory;

pub struct CoreMemory {
    input: Input,
    segments: Segments,
    /// The module with the symbols of R's variables, if the core file lacks R's own.
    stand_in: Vec<u8>,
    /// Whether reads failed because the file is cut off.
    was_cut: bool,
}

impl CoreMemory {
    pub(super) fn new(input: Input, segments: Segments) -> CoreMemory {
        CoreMemory {
            input,
            segments,
            stand_in: Vec::new(),
            was_cut: false,
        }
    }

    /// Adds the module with the symbols of R's variables.
    pub(super) fn stand_in(&mut self, module: Vec<u8>) {
        self.stand_in = module;
    }

    /// The path of the core file in messages.
    pub fn shown(&self) -> &str {
        &self.input.shown
    }

    /// The problem, if reads failed because the file is cut off.
    pub fn cut_off(&self) -> Option<String> {
        let (size, end) = (self.input.size(), self.segments.end_in_file());
        self.was_cut
            .then(|| message!("It is cut off: it has {size} of {end} bytes. {LIMITS}"))
    }

    /// Copies a part of the module with the symbols.
    fn read_stand_in(&self, address: u64, into: &mut [u8]) -> bool {
        let start = address.wrapping_sub(START) as usize;
        let found = self.stand_in.get(start..start.saturating_add(into.len()));
        found.map(|found| into.copy_from_slice(found)).is_some()
    }
}

impl Memory for &mut CoreMemory {
    fn read(&mut self, mut address: u64, mut into: &mut [u8]) -> bool {
        if (START..START + SIZE).contains(&address) {
            return self.read_stand_in(address, into);
        }
        while !into.is_empty() {
            let Some((offset, left)) = self.segments.at(address) else {
                return false;
            };
            let size = left.min(into.len() as u64);
            let (part, rest) = into.split_at_mut(size as usize);
            if !self.input.read(offset, part) {
                self.was_cut |= !self.input.has(offset, size);
                return false;
            }
            into = rest;
            // The end of the address space belongs to the kernel.
            address = address.saturating_add(size);
        }
        true
    }
}
