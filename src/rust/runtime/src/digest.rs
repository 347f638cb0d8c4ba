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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::code_at;
    use crate::fake::{Objects, address};
    use crate::objects::LANGSXP;

    const BASE: u64 = 0x7f00_0000_0000;
    const GETFUN: u64 = 0x1000;
    const CALL: u64 = 0x1010;

    fn digest(r: &mut Objects, code: usize, base: u64) -> Option<Digest> {
        let (_, code) = code_at(r, address(code)).unwrap().unwrap();
        Digest::of(r, code, base).unwrap()
    }

    /// `name(...)`, with a literal, in a process whose library is at `base`.
    fn code(r: &mut Objects, base: u64, name: &str, literal: &str) -> usize {
        let expression = r.add(LANGSXP, &[]);
        let name = r.symbol(name);
        let literal = r.text(literal);
        r.byte_code(
            &[12, base + GETFUN, 1, base + CALL, 2],
            &[expression, name, literal],
        )
    }

    #[test]
    fn it_is_the_same_wherever_the_library_and_the_objects_are() {
        let mut r = Objects::new();
        let one = code(&mut r, BASE, "f", "a");
        r.flag(1);
        let other = code(&mut r, BASE + 0x5000, "f", "a");
        let found = digest(&mut r, one, BASE);
        assert!(found.is_some());
        assert_eq!(digest(&mut r, other, BASE + 0x5000), found);
        assert_ne!(digest(&mut r, other, BASE), found);
    }

    #[test]
    fn instructions_names_and_literals_count() {
        let mut r = Objects::new();
        let plain = code(&mut r, BASE, "f", "a");
        let known = digest(&mut r, plain, BASE);
        for (name, literal) in [("g", "a"), ("f", "b"), ("ff", "a"), ("f", ""), ("f", "aa")] {
            let other = code(&mut r, BASE, name, literal);
            assert_ne!(digest(&mut r, other, BASE), known, "{name} {literal}");
        }
        let constants: Vec<usize> = ["f", "a"].map(|name| r.symbol(name)).to_vec();
        let expression = r.add(LANGSXP, &[]);
        let numbers = [1, 2].map(|value| r.integers(&[value]));
        let codes = [
            r.byte_code(&[12, BASE + GETFUN], &[expression]),
            r.byte_code(&[12, BASE + CALL], &[expression]),
            r.byte_code(&[12, BASE + CALL, 1], &[expression]),
            r.byte_code(&[12, BASE + CALL, 2], &[expression]),
            r.byte_code(&[12, BASE + CALL, 2], &constants),
            r.byte_code(&[12, BASE + CALL, 2], &[numbers[0]]),
            r.byte_code(&[12, BASE + CALL, 2], &[numbers[1]]),
        ];
        for (number, &code) in codes.iter().enumerate() {
            for &other in &codes[..number] {
                assert_ne!(digest(&mut r, code, BASE), digest(&mut r, other, BASE));
            }
        }
    }

    #[test]
    fn expressions_and_computed_vectors_do_not_count() {
        let mut r = Objects::new();
        let [one, other] = [1, 2].map(|word| r.add(LANGSXP, &[word, word]));
        let [short, long] = [1, 5].map(|length| r.integers(&vec![7; length]));
        for vector in [short, long] {
            r.0[vector][0] |= ALTREP;
        }
        for (one, other) in [(one, other), (short, long)] {
            let [one, other] = [one, other].map(|constant| r.byte_code(&[12, BASE], &[constant]));
            assert_eq!(digest(&mut r, one, BASE), digest(&mut r, other, BASE));
        }
    }

    #[test]
    fn damaged_code_has_none() {
        let mut r = Objects::new();
        let empty = r.byte_code(&[], &[]);
        assert_eq!(digest(&mut r, empty, BASE), None);
        let damaged = code(&mut r, BASE, "f", "a");
        let constants = r.0[damaged][5];
        for wrong in [0, 8, u64::MAX] {
            r.object(constants).unwrap()[7] = wrong;
            assert_eq!(digest(&mut r, damaged, BASE), None);
        }
        let name = r.add(SYMSXP, &[address(0)]);
        r.object(constants).unwrap()[7] = address(name);
        assert_eq!(digest(&mut r, damaged, BASE), None);
        // A text that is longer than its memory.
        let text = r.string("f");
        r.0[text][4] = 1 << 40;
        r.0[name][4] = address(text);
        assert_eq!(digest(&mut r, damaged, BASE), None);
    }
}
