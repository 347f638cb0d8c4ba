//! Recognizes byte code of another process: a digest that is the same wherever this R runs code that was compiled from the
//! same expression.
//!
//! It covers the instructions, and the constants as far as instructions refer to them by their value: the names of
//! functions and variables, and the starts of texts and numbers. Expressions and source references are left out, since
//! instructions do not evaluate them.

use crate::byte_code::{Code, constant};
use crate::compiled::{OPERANDS, instructions};
use crate::memory::{self, Memory, at};
use crate::objects::{
    ALTREP, CHARSXP, DATA, INTSXP, LENGTH, LGLSXP, PRINTNAME, REALSXP, STRSXP, SYMSXP, Type,
};
use profile_core::error::Result;

/// The number of bytes of a text or of numbers that count.
const MOST_BYTES: u64 = 64;

/// Identifies code by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub u64);

impl Digest {
    /// `base` is an address in R's library: instructions are addresses of R's interpreter, at a fixed distance from it.
    /// `None` if not all of the code can be read.
    pub fn of(memory: &mut impl Memory, code: Code, base: u64) -> Result<Option<Digest>> {
        let words = instructions(memory, code)?;
        if words.is_empty() {
            return Ok(None);
        }
        let mut sum = Sum::default();
        sum.add(words.len() as u64);
        for word in words {
            sum.add(if word < OPERANDS {
                word
            } else {
                word.wrapping_sub(base)
            });
        }
        let constants = code.constants(memory);
        sum.add(constants);
        for number in 0..constants {
            let added = match constant(memory, code, number) {
                Some(address) => sum.add_constant(memory, address),
                None => None,
            };
            if added.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(Digest(sum.0)))
    }
}

#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }

    /// `None` if it cannot be read.
    fn add_constant(&mut self, memory: &mut impl Memory, address: u64) -> Option<()> {
        // Vectors without elements may be smaller than other objects.
        let header = memory::array::<DATA>(memory, address)?;
        let kind = Type::of(at(&header, 0));
        self.add(u64::from(kind.0));
        if at(&header, 0) & ALTREP != 0 {
            return Some(());
        }
        match kind {
            SYMSXP => self.add_text(memory, at(&header, PRINTNAME)),
            STRSXP => {
                self.add(at(&header, LENGTH));
                if at(&header, LENGTH) == 0 {
                    return Some(());
                }
                let first = memory::word(memory, address.wrapping_add(DATA as u64))?;
                self.add_text(memory, first)
            }
            LGLSXP | INTSXP => self.add_data(memory, address, at(&header, LENGTH), 4),
            REALSXP => self.add_data(memory, address, at(&header, LENGTH), 8),
            _ => Some(()),
        }
    }

    fn add_text(&mut self, memory: &mut impl Memory, address: u64) -> Option<()> {
        let header = memory::array::<DATA>(memory, address)?;
        if Type::of(at(&header, 0)) != CHARSXP {
            return None;
        }
        self.add_data(memory, address, at(&header, LENGTH), 1)
    }

    fn add_data(
        &mut self,
        memory: &mut impl Memory,
        address: u64,
        length: u64,
        size: u64,
    ) -> Option<()> {
        self.add(length);
        let mut bytes = [0; MOST_BYTES as usize];
        let count = length.saturating_mul(size).min(MOST_BYTES) as usize;
        let bytes = bytes.get_mut(..count)?;
        if !memory.read(address.wrapping_add(DATA as u64), bytes) {
            return None;
        }
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded.get_mut(..word.len())?.copy_from_slice(word);
            self.add(u64::from_le_bytes(padded));
        }
        Some(())
    }
}
