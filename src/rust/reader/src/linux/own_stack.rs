//! The stack of the first thread of this process, which is R's, as far as it can be read without the kernel.
//!
//! To copy a few hundred bytes from R's thread by a system call takes a microsecond, and to copy a stack more than
//! many functions take. The kernel never removes a part of this stack as long as the process exists, so it may be read
//! like any other memory, although it changes meanwhile.

use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const WORD: u64 = size_of::<u64>() as u64;
/// It may have grown so much since it was looked for. What is further away is something else.
const GROWTH: u64 = 64 << 20;

#[derive(Debug, Clone, Copy)]
pub struct OwnStack {
    start: u64,
    end: u64,
}

impl OwnStack {
    pub fn find() -> Option<OwnStack> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let line = maps.lines().find(|line| line.ends_with(" [stack]"))?;
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(OwnStack {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
        })
    }

    fn addresses(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Whether this is a part of the stack, of whole words.
    pub fn contains(&mut self, address: u64, size: usize) -> bool {
        // It grows downwards.
        if address < self.start && self.start - address < GROWTH {
            match OwnStack::find() {
                Some(now) if now.end == self.end => *self = now,
                _ => return false,
            }
        }
        let size = size as u64;
        let is_whole = address % WORD == 0 && size % WORD == 0;
        is_whole && self.addresses().contains(&address) && size <= self.end - address
    }

    /// Copies a part of the stack; `false` if it is none.
    pub fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if !self.contains(address, into.len()) {
            return false;
        }
        let words = std::ptr::with_exposed_provenance_mut::<u64>(address as usize);
        for (number, bytes) in into.chunks_exact_mut(WORD as usize).enumerate() {
            // SAFETY: this word is part of the stack of the first thread, which is mapped until the process ends, and
            // it is aligned. R's thread may write it at the same time; a load of a whole word gives one of both values.
            let word = unsafe { AtomicU64::from_ptr(words.add(number)) }.load(Ordering::Acquire);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stack_is_read() {
        let mut stack = OwnStack::find().unwrap();
        let mut bytes = [0; 16];
        assert!(stack.read(stack.end - 16, &mut bytes));
        assert!(stack.read(stack.start, &mut bytes));
        for (address, size) in [
            (stack.end - 8, 16),
            (stack.end, 8),
            (stack.end - 12, 8),
            (stack.end - 16, 4),
            (stack.start - 8, 8),
            (8, 8),
            (u64::MAX - 7, 8),
        ] {
            assert!(!stack.contains(address, size), "{address:x} {size}");
        }
    }
}
