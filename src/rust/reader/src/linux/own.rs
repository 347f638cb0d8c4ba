//! The parts of the memory of this process that are read without the kernel: the stack of the first thread, which is
//! R's; R's variables; and the node stack of the byte code interpreter, where R 4.4 and later store the records of
//! most calls.
//!
//! Copying a few hundred bytes of R's thread by a system call takes a microsecond, and copying a stack takes longer
//! than many functions run. As long as the process exists, the kernel never removes a part of the stack of a thread,
//! and R is not unloaded; R allocates the node stack at startup and never frees it. So these parts can be read like
//! any other memory, although they change meanwhile.

use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const WORD: u64 = size_of::<u64>() as u64;
/// The maximum growth of the stack since its range was read. An address farther away belongs to something else.
const GROWTH: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct Own {
    stack: Range<u64>,
    others: Vec<Range<u64>>,
}

impl Own {
    pub fn find() -> Option<Own> {
        Some(Own {
            stack: stack()?,
            others: Vec::new(),
        })
    }

    /// Adds parts that remain mapped as long as the process exists, if they are currently mapped.
    pub fn add(&mut self, parts: &[Range<u64>]) -> Result<()> {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        for part in parts {
            // A part may consist of mappings with different permissions.
            let mut start = part.start;
            for addresses in maps.lines().filter_map(readable) {
                if addresses.contains(&start) {
                    start = addresses.end;
                }
            }
            if start >= part.end {
                self.others.try_push(part.clone())?;
            }
        }
        Ok(())
    }

    /// Whether this range is inside one of these parts, and consists of whole words.
    pub fn contains(&mut self, address: u64, size: usize) -> bool {
        let size = size as u64;
        if address % WORD != 0 || size % WORD != 0 {
            return false;
        }
        let is_in = |part: &Range<u64>| part.contains(&address) && size <= part.end - address;
        if is_in(&self.stack) || self.others.iter().any(is_in) {
            return true;
        }
        // The stack grows downwards, so it may include the address now.
        if address < self.stack.start && self.stack.start - address < GROWTH {
            match stack() {
                Some(now) if now.end == self.stack.end => self.stack = now,
                _ => return false,
            }
        }
        self.stack.contains(&address) && size <= self.stack.end - address
    }

    /// Copies a range inside one of these parts; `false` if it is not inside.
    pub fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if !self.contains(address, into.len()) {
            return false;
        }
        let words = std::ptr::with_exposed_provenance_mut::<u64>(address as usize);
        for (number, bytes) in into.chunks_exact_mut(WORD as usize).enumerate() {
            // SAFETY: this word is aligned, and part of the stack of the first thread, of R's variables or of its
            // node stack, which are mapped until the process ends. R's thread may write it at the same time; loading
            // a whole word returns either the old or the new value.
            let word = unsafe { AtomicU64::from_ptr(words.add(number)) }.load(Ordering::Acquire);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        true
    }
}

/// The stack of the first thread.
fn stack() -> Option<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(" [stack]"))?;
    readable(line)
}

/// The addresses in a line of `/proc/self/maps`, if they can be read.
pub fn readable(line: &str) -> Option<Range<u64>> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    rest.starts_with('r').then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stack_is_read() {
        let mut own = Own::find().unwrap();
        let mut bytes = [0; 16];
        let Range { start, end } = own.stack;
        assert!(own.read(end - 16, &mut bytes));
        assert!(own.read(start, &mut bytes));
        for (address, size) in [
            (end - 8, 16),
            (end, 8),
            (end - 12, 8),
            (end - 16, 4),
            (start - 8, 8),
            (8, 8),
            (u64::MAX - 7, 8),
        ] {
            assert!(!own.contains(address, size), "{address:x} {size}");
        }
    }

    #[test]
    fn and_the_variables_that_exist() {
        let words = [1_u64, 2, 3];
        let start = words.as_ptr().expose_provenance() as u64;
        let mut own = Own::find().unwrap();
        assert!(!own.contains(8, 8));
        own.add(&[start..start + 24, 8..16]).unwrap();
        let mut bytes = [0; 16];
        assert!(own.read(start + 8, &mut bytes));
        assert_eq!(bytes[8], 3);
        assert!(!own.contains(start + 16, 16) || own.stack.contains(&start));
        assert!(!own.contains(8, 8));
    }
}
