//! The parts of the memory of this process that are read without the kernel: the stack of the first thread, in which R
//! usually runs; R's variables; and the node stack of the byte code interpreter, where R 4.4 and later store the records of
//! most calls.
//!
//! Copying a few hundred bytes of R's thread by a system call takes a microsecond, and copying a stack takes longer
//! than many functions run. As long as the process exists, the kernel never removes a part of the stack of its first
//! thread, and R is not unloaded; R allocates the node stack at startup and never frees it. So these parts can be read
//! like any other memory, although they change meanwhile. The stack of another thread is removed when the thread ends, so
//! it is read by system calls.

use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use std::fs;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const WORD: u64 = size_of::<u64>() as u64;
/// The maximum growth of the stack since its range was read. An address farther away belongs to something else.
const GROWTH: u64 = 64 << 20;

#[derive(Debug, Clone)]
pub struct Own {
    stack: Stack,
    others: Vec<Range<u64>>,
}

/// The stack of the first thread, which grows downwards.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stack {
    addresses: Range<u64>,
    /// The addresses below it that it may include later.
    growth: Range<u64>,
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
        if is_in(&self.stack.addresses) || self.others.iter().any(is_in) {
            return true;
        }
        // It may include the address now.
        if self.stack.growth.contains(&address) {
            match stack() {
                Some(now) if now.addresses.end == self.stack.addresses.end => self.stack = now,
                _ => return false,
            }
        }
        is_in(&self.stack.addresses)
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
            let word = unsafe { AtomicU64::from_ptr(words.add(number)) }.load(Ordering::Relaxed);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        // What is read from now on is at least as new. Of memory that may be read only, as some variables are, relaxed
        // loads are the only ones allowed.
        fence(Ordering::Acquire);
        true
    }
}

fn stack() -> Option<Stack> {
    stack_in(&fs::read_to_string("/proc/self/maps").ok()?)
}

fn stack_in(maps: &str) -> Option<Stack> {
    // The lines are in the order of addresses. The stack never grows into another mapping, such as a library close to
    // it, so an address there is no reason to read this file again, which takes longer than reading memory.
    let mut below = 0;
    for line in maps.lines() {
        if line.ends_with(" [stack]") {
            let addresses = readable(line)?;
            let lowest = below.max(addresses.start.saturating_sub(GROWTH));
            let growth = lowest..addresses.start;
            return Some(Stack { addresses, growth });
        }
        below = mapped(line)?.0.end;
    }
    None
}

/// The addresses in a line of `/proc/self/maps`, if they can be read.
pub fn readable(line: &str) -> Option<Range<u64>> {
    let (addresses, rest) = mapped(line)?;
    rest.starts_with('r').then_some(addresses)
}

/// The addresses in a line of `/proc/self/maps`, and the rest of the line.
fn mapped(line: &str) -> Option<(Range<u64>, &str)> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    Some((start..end, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stack_is_read() {
        let mut own = Own::find().unwrap();
        let mut bytes = [0; 16];
        let Range { start, end } = own.stack.addresses;
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
        assert!(!own.contains(start + 16, 16) || own.stack.addresses.contains(&start));
        assert!(!own.contains(8, 8));
    }

    #[test]
    fn the_stack_grows_only_where_nothing_is_mapped() {
        let stack_above = |rest: &str| {
            let maps = format!("{rest}70000000-70100000 rw-p 00000000 00:00 0   [stack]\n");
            let stack = stack_in(&maps).unwrap();
            assert_eq!(stack.addresses, 0x7000_0000..0x7010_0000);
            stack.growth
        };
        let far = "1000-3000 r-xp 00000000 08:01 5   /usr/lib/libR.so\n";
        let near = "6ff00000-6ff10000 r--p 00000000 08:01 5   /usr/lib/libR.so\n";
        let guard = "6ffff000-70000000 ---p 00000000 00:00 0\n";
        assert_eq!(stack_above(""), 0x6c00_0000..0x7000_0000);
        assert_eq!(stack_above(far), 0x6c00_0000..0x7000_0000);
        assert_eq!(stack_above(near), 0x6ff1_0000..0x7000_0000);
        assert!(stack_above(&[far, near, guard].concat()).is_empty());
        assert_eq!(stack_in(near), None);
    }
}
