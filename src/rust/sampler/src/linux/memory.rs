//! The memory that ticks are written to, and the stack that they are read from.

use profile_core::error::{Error, Result};
use profile_unwind::image::HEAD;
use std::ops::Range;
use std::ptr::NonNull;

/// The block that ticks are written to, one after the other.
pub struct Buffer {
    base: NonNull<u64>,
    words: usize,
    used: usize,
    /// Whether a tick did not fit. No further ticks are recorded then, so the recorded ticks are
    /// the first ones.
    full: bool,
}

impl Buffer {
    /// Reserves address space. The system allocates a page when it is first used.
    pub fn new(bytes: usize) -> Result<Buffer> {
        let words = bytes / size_of::<u64>();
        // SAFETY: a new mapping, which nothing else refers to.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                words * size_of::<u64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::Memory);
        }
        let base = NonNull::new(base.cast::<u64>()).ok_or(Error::Memory)?;
        Ok(Buffer {
            base,
            words,
            used: 0,
            full: false,
        })
    }

    pub fn words(&self) -> &[u64] {
        // SAFETY: the mapping lives as long as `self`, and unused words are zero, which is valid.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.used) }
    }

    /// The free memory, to which the next tick is written; `None` if a tick did not fit.
    pub fn room(&mut self) -> Option<&mut [u64]> {
        if self.full {
            return None;
        }
        // SAFETY: as above; `used` never exceeds the mapping.
        Some(unsafe {
            std::slice::from_raw_parts_mut(
                self.base.as_ptr().add(self.used),
                self.words - self.used,
            )
        })
    }

    /// Keeps the first `count` words of the free memory.
    pub fn keep(&mut self, count: usize) {
        self.used = (self.used + count).min(self.words);
    }

    pub fn close(&mut self) {
        self.full = true;
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping that new() made; nothing outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}

/// The size of a page of memory. It is 4 KiB on x86-64, and may be larger on other processors.
pub fn page_size() -> u64 {
    // SAFETY: it has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // It is always known.
    u64::try_from(size).unwrap_or(HEAD)
}

/// The number of bytes below the stack pointer that a function may use, by the ABI. In a function
/// that is about to return they contain its caller's registers.
const RED_ZONE: u64 = 128;

/// The part of a thread's stack that is in use, and can therefore be read.
#[derive(Debug, Clone, Copy)]
pub struct Stack {
    /// The lowest address that can be read: `pointer` less the red zone.
    low: u64,
    pointer: u64,
    top: u64,
}

impl Stack {
    /// The used part of a stack, in a thread whose stack pointer is `pointer`; empty if the stack
    /// pointer is outside the stack.
    pub fn in_use(pointer: u64, limits: Limits) -> Stack {
        let inside = pointer >= limits.low && pointer < limits.top;
        let pointer = if inside { pointer } else { limits.top };
        Stack {
            low: pointer.saturating_sub(RED_ZONE).max(limits.low),
            pointer,
            top: limits.top,
        }
    }

    pub fn has(self, address: u64) -> bool {
        address >= self.pointer && address < self.top
    }

    /// Whether all of these addresses are inside.
    pub fn has_all(self, addresses: Range<u64>) -> bool {
        addresses.start >= self.pointer && addresses.end <= self.top
    }
}

impl profile_unwind::Stack for Stack {
    fn read(self, address: u64) -> Option<u64> {
        let end = address.checked_add(size_of::<u64>() as u64)?;
        if address < self.low || end > self.top {
            return None;
        }
        // SAFETY: inside the stack, and where its pages have been used.
        Some(unsafe { (address as *const u64).read_unaligned() })
    }
}

/// The lowest and the highest address of the stack of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub low: u64,
    pub top: u64,
}

impl Limits {
    pub fn current() -> Result<Limits> {
        let mut low = std::ptr::null_mut();
        let mut size = 0;
        // SAFETY: the attributes are filled by the first call, if it succeeds, and freed by the
        // last.
        let found = unsafe {
            let mut attributes = std::mem::zeroed();
            let got = libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) == 0;
            if got {
                libc::pthread_attr_getstack(&attributes, &mut low, &mut size);
                libc::pthread_attr_destroy(&mut attributes);
            }
            got
        };
        if !found || low.is_null() {
            return Err(Error::Unsupported(
                "The limits of the C stack are unknown.".to_owned(),
            ));
        }
        let low = low as u64;
        Ok(Limits {
            low,
            top: low + size as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile_unwind::Stack as _;

    #[test]
    fn a_buffer_keeps_what_fits_and_is_closed_for_good() {
        let mut buffer = Buffer::new(10 * 8 + 7).unwrap();
        assert_eq!(buffer.room().unwrap().len(), 10);
        buffer.room().unwrap()[..3].copy_from_slice(&[1, 2, 3]);
        assert!(buffer.words().is_empty());
        buffer.keep(3);
        assert_eq!(buffer.words(), [1, 2, 3]);
        assert_eq!(buffer.room().unwrap().len(), 7);
        buffer.room().unwrap()[0] = 4;
        buffer.keep(1);
        assert_eq!(buffer.words(), [1, 2, 3, 4]);
        buffer.keep(100);
        assert_eq!(buffer.words().len(), 10);
        buffer.close();
        assert!(buffer.room().is_none());
        assert_eq!(buffer.words()[..4], [1, 2, 3, 4]);
    }

    #[test]
    fn a_stack_is_read_where_it_is_in_use() {
        let memory: Vec<u64> = (0..100).collect();
        let low = memory.as_ptr() as u64;
        let limits = Limits {
            low,
            top: low + 800,
        };
        let pointer = low + 400;
        let stack = Stack::in_use(pointer, limits);
        assert_eq!(stack.read(pointer), Some(50));
        assert_eq!(stack.read(low + 792), Some(99));
        assert_eq!(stack.read(low + 793), None);
        assert_eq!(stack.read(u64::MAX), None);
        // In a function that is about to return, the caller's registers are below the stack
        // pointer.
        assert_eq!(stack.read(pointer - 128), Some(34));
        assert_eq!(stack.read(pointer - 129), None);
        assert_eq!(
            [pointer - 1, pointer, low + 799, low + 800].map(|at| stack.has(at)),
            [false, true, true, false]
        );
        // The red zone does not go beyond the stack.
        assert_eq!(Stack::in_use(low + 8, limits).read(low - 8), None);
        assert_eq!(Stack::in_use(low + 8, limits).read(low), Some(0));
        // The stack pointer is outside of the stack: nothing is in use.
        for elsewhere in [low - 8, low + 800] {
            let stack = Stack::in_use(elsewhere, limits);
            assert!(!stack.has(pointer));
            assert_eq!(stack.read(pointer), None);
        }
        assert_eq!(Stack::in_use(low, limits).read(low), Some(0));
    }

    #[test]
    fn the_limits_contain_this_stack() {
        let here = 0_u64;
        let limits = Limits::current().unwrap();
        let address = &raw const here as u64;
        assert!(limits.low < address && address < limits.top);
    }
}
