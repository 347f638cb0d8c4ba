//! The titles of running calls, such as the package that `loadNamespace()` loads, see [`profile_core::model::titled`].
//!
//! Which function a call runs is in its record, on one of R's stacks. Only for these few functions, R's objects are read,
//! by the kernel: an address at which nothing is mapped is no fault then.

use super::contexts::Contexts;
use super::memory::Stack;
use profile_core::joint::recording::{PAIR, Title};
use profile_core::model::titled::{LONGEST_TITLE, TITLED};
use profile_runtime::arguments::{Symbols, title};
use profile_runtime::contexts::CLOSURE;
use profile_runtime::memory::{Memory, array, at};
use profile_runtime::objects::{CHARSXP, DATA, LENGTH, Type};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// More titles than a stack has: further out, calls have none.
const MOST_TITLES: usize = 100;

/// The addresses of the functions in the table.
static FUNCTIONS: [AtomicU64; TITLED.len()] = [const { AtomicU64::new(0) }; TITLED.len()];

/// Tells which functions those of the table are, from now on: an address is 0 if it is unknown, because the package is
/// not loaded.
pub fn set_titled(functions: [u64; TITLED.len()]) {
    for (known, address) in FUNCTIONS.iter().zip(functions) {
        known.store(address, Ordering::Relaxed);
    }
}

/// Reads titles. It keeps the addresses of symbols.
#[derive(Default)]
pub struct Titles {
    symbols: Symbols,
}

impl Titles {
    /// Writes the titles of these calls, which are pairs of words of a tick. Returns the number of words. In a signal
    /// handler: it takes no lock and allocates nothing.
    pub fn write(
        &mut self,
        contexts: &Contexts,
        stack: Stack,
        calls: &[u64],
        room: &mut [u64],
    ) -> usize {
        let mut memory = Heap;
        let (mut used, mut count) = (0, 0);
        for (number, call) in calls.chunks_exact(PAIR).enumerate() {
            if call[0] >> 48 & u64::from(CLOSURE) == 0 {
                continue;
            }
            let address = call[0] << 16 >> 16;
            let Some([function, environment]) = contexts.function(stack, address) else {
                continue;
            };
            let is_known = |known: &AtomicU64| known.load(Ordering::Relaxed) == function;
            let Some(row) = FUNCTIONS
                .iter()
                .position(is_known)
                .filter(|_| function != 0)
            else {
                continue;
            };
            let text = title(&mut memory, environment, &TITLED[row], &mut self.symbols);
            let title = text.and_then(|text| read_title(&mut memory, text));
            let words = title.and_then(|title| title.write(number, room.get_mut(used..)?));
            used += words.unwrap_or(0);
            count += 1;
            if count == MOST_TITLES {
                break;
            }
        }
        used
    }
}

/// The text of a `CHARSXP`, if it is not empty and not too long.
fn read_title(memory: &mut Heap, text: u64) -> Option<Title> {
    let header = array::<DATA>(memory, text)?;
    let length = at(&header, LENGTH);
    if Type::of(at(&header, 0)) != CHARSXP || !(1..=LONGEST_TITLE as u64).contains(&length) {
        return None;
    }
    let mut bytes = [0; LONGEST_TITLE];
    let bytes = bytes.get_mut(..length as usize)?;
    if !memory.read(text.wrapping_add(DATA as u64), bytes) {
        return None;
    }
    Title::new(bytes)
}

/// All memory of this process.
struct Heap;

impl Memory for Heap {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut c_void,
            iov_len: into.len(),
        };
        // SAFETY: the kernel writes to `into` only, at most as much as it has.
        let count = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        usize::try_from(count) == Ok(into.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A string of R.
    fn string(text: &[u8], length: u64) -> Vec<u64> {
        let mut words = vec![0; DATA / 8 + text.len().div_ceil(8)];
        words[0] = u64::from(CHARSXP.0);
        words[LENGTH / 8] = length;
        for (word, bytes) in words[DATA / 8..].iter_mut().zip(text.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        words
    }

    #[test]
    fn texts_are_read_and_wrong_addresses_are_no_fault() {
        let read = |words: &[u64]| read_title(&mut Heap, words.as_ptr() as u64);
        let text = string(b"R.methodsS3", 11);
        assert_eq!(read(&text), Title::new(b"R.methodsS3"));
        // Empty, too long, and of another type.
        assert_eq!(read(&string(b"", 0)), None);
        assert_eq!(read(&string(&[b'x'; 129], 129)), None);
        assert_eq!(read(&string(b"dplyr", u64::MAX)), None);
        assert_eq!(read(&vec![16; 100]), None);
        for address in [0, 8, 1, u64::MAX, u64::MAX - 60, 1 << 47] {
            assert_eq!(read_title(&mut Heap, address), None);
        }
    }

    #[test]
    fn damaged_environments_have_no_title() {
        let mut symbols = Symbols::default();
        // Memory whose words all point to itself, with each type in turn.
        for kind in 0..32 {
            let mut words = vec![0_u64; 100];
            let address = words.as_ptr() as u64;
            words.fill(address);
            words[0] = kind;
            for titled in &TITLED {
                assert_eq!(title(&mut Heap, address, titled, &mut symbols), None);
            }
        }
        for address in [0, 1, u64::MAX] {
            assert_eq!(title(&mut Heap, address, &TITLED[0], &mut symbols), None);
        }
    }
}
