//! Calls that have a title, such as the package that `loadNamespace()` loads, see [`profile_core::model::titled`]: it is
//! part of what distinguishes stacks. The reader adds it to the name of the call.

use super::hash::Hash;
use super::memory::OwnMemory;
use profile_core::model::titled::{LONGEST_TITLE, TITLED};
use profile_runtime::arguments::{Symbols, title};
use profile_runtime::memory::{Memory, array, at};
use profile_runtime::objects::{CHARSXP, DATA, LENGTH, Type};

/// Finds titles. It keeps the addresses of symbols.
pub struct Titles {
    /// The addresses of the functions in the table, 0 for unknown ones.
    functions: [u64; TITLED.len()],
    symbols: Symbols,
}

impl Titles {
    pub fn new(functions: [u64; TITLED.len()]) -> Titles {
        Titles {
            functions,
            symbols: Symbols::default(),
        }
    }

    /// Adds the title of a call of this function, if it has one, given the environment of the call.
    ///
    /// # Safety
    /// This is the thread that runs R, which is in the hook, and the call runs.
    #[inline]
    pub unsafe fn add(&mut self, hash: &mut Hash, function: u64, environment: u64) {
        let mut functions = self.functions.iter();
        let Some(row) = functions.position(|known| *known == function && *known != 0) else {
            return;
        };
        // SAFETY: by the contract of this function, R refers to what is read.
        let mut memory = unsafe { OwnMemory::new() };
        if let Some(text) = title(&mut memory, environment, &TITLED[row], &mut self.symbols) {
            add_text(hash, &mut memory, text);
        }
    }
}

/// Adds what a string of R contains: it may be freed, and its address be used again.
fn add_text(hash: &mut Hash, memory: &mut impl Memory, text: u64) {
    let Some(header) = array::<DATA>(memory, text) else {
        return;
    };
    let length = at(&header, LENGTH);
    if Type::of(at(&header, 0)) != CHARSXP || !(1..=LONGEST_TITLE as u64).contains(&length) {
        return;
    }
    let mut bytes = [0; LONGEST_TITLE.next_multiple_of(8)];
    let read = bytes.get_mut(..length as usize);
    if !read.is_some_and(|bytes| memory.read(text.wrapping_add(DATA as u64), bytes)) {
        return;
    }
    hash.add(length);
    for start in (0..length as usize).step_by(8) {
        hash.add(at(&bytes, start));
    }
}
