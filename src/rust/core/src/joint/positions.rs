//! Positions in byte code. R's profiler writes lines only for code that has source references; for other code, the sampler
//! records where it runs, and lines are found when the recording ends: by a copy of the function that was compiled from its
//! deparsed text.

/// The bits of an address in a word that has a number in the upper bits.
pub const ADDRESS: u64 = (1 << 48) - 1;
/// The number of words of a position.
const WORDS: usize = 2;

/// A position in byte code: two words, which are
///
/// ```text
/// address of the code | bits 32 to 47 of its number << 48, position | bits 0 to 31 of its number << 32
/// ```
///
/// The number distinguishes code from other code that was at the same address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position([u64; WORDS]);

/// The part of a position that identifies the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeId([u64; WORDS]);

impl CodeId {
    pub fn new(address: u64, number: u64) -> CodeId {
        let upper = number >> 32 & 0xffff;
        CodeId([address & ADDRESS | upper << 48, number << 32])
    }

    pub fn address(self) -> u64 {
        self.0[0] & ADDRESS
    }
}

impl Position {
    /// The words of no position.
    pub const NONE: [u64; WORDS] = [0; WORDS];

    /// `words`: the number of words of the instructions before it. `None` if no code has so many.
    pub fn new(code: CodeId, words: u64) -> Option<Position> {
        let words = u32::try_from(words).ok()?;
        Some(Position([code.0[0], code.0[1] | u64::from(words)]))
    }

    pub(super) fn of_words(words: &[u64]) -> Option<Position> {
        let words = <[u64; WORDS]>::try_from(words).ok()?;
        (words != Position::NONE).then_some(Position(words))
    }

    pub fn to_words(self) -> [u64; WORDS] {
        self.0
    }

    pub fn code(self) -> CodeId {
        CodeId([self.0[0], self.0[1] & !0xffff_ffff])
    }

    pub fn words(self) -> u64 {
        self.0[1] & 0xffff_ffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_contain_the_address_the_number_and_the_position() {
        let code = CodeId::new(0x7fff_1234_5678, 0xabcd_1234_5678_9abc);
        let position = Position::new(code, 77).unwrap();
        assert_eq!(position.code(), code);
        assert_eq!(position.words(), 77);
        assert_eq!(code.address(), 0x7fff_1234_5678);
        let words = position.to_words();
        assert_eq!(Position::of_words(&words), Some(position));
        assert_eq!(Position::of_words(&Position::NONE), None);
        assert_eq!(Position::new(code, 1 << 32), None);
        // Other code at this address has another number.
        for bit in [0, 31, 32, 47] {
            let other = CodeId::new(0x7fff_1234_5678, 0xabcd_1234_5678_9abc ^ 1 << bit);
            assert_ne!(other, code, "{bit}");
        }
    }
}
