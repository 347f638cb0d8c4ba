//! The memory of a process, from its core file.

use super::elf::Segments;
use super::input::{Input, LIMITS};
use profile_core::message;
use profile_runtime::memory::Memory;

pub struct CoreMemory {
    input: Input,
    segments: Segments,
    /// Whether reads failed because the file is cut off.
    was_cut: bool,
}

impl CoreMemory {
    pub(super) fn new(input: Input, segments: Segments) -> CoreMemory {
        CoreMemory {
            input,
            segments,
            was_cut: false,
        }
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
}

impl Memory for &mut CoreMemory {
    fn read(&mut self, mut address: u64, mut into: &mut [u8]) -> bool {
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
