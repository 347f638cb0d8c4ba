//! Positions in byte code. R's profiler writes lines only for code that has source references; for other code, the sampler
//! records where it runs, and lines are found when the recording ends: by a copy of the function that was compiled from its
//! deparsed text.

use super::recording::{ADDRESS, PAIR, Recording};
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut};
use std::collections::HashMap;

/// A position in byte code: two words, which are
///
/// ```text
/// address of the code | bits 32 to 47 of its number << 48, position | bits 0 to 31 of its number << 32
/// ```
///
/// The number distinguishes code from other code that was at the same address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position([u64; PAIR]);

/// The part of a position that identifies the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeId([u64; PAIR]);

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
    pub const NONE: [u64; PAIR] = [0; PAIR];

    /// `words`: the number of words of the instructions before it. `None` if no code has so many.
    pub fn new(code: CodeId, words: u64) -> Option<Position> {
        let words = u32::try_from(words).ok()?;
        Some(Position([code.0[0], code.0[1] | u64::from(words)]))
    }

    pub(super) fn of_words(words: &[u64]) -> Option<Position> {
        let words = <[u64; PAIR]>::try_from(words).ok()?;
        (words != Position::NONE).then_some(Position(words))
    }

    pub fn to_words(self) -> [u64; PAIR] {
        self.0
    }

    pub fn code(self) -> CodeId {
        CodeId([self.0[0], self.0[1] & !0xffff_ffff])
    }

    pub fn words(self) -> u64 {
        self.0[1] & 0xffff_ffff
    }
}

/// The different positions of a recording, in the order in which they occur first.
#[derive(Debug, Default)]
pub struct Distinct {
    pub positions: Vec<Position>,
    /// How often each occurs.
    pub counts: Vec<u64>,
    rows: HashMap<Position, usize>,
}

impl Distinct {
    pub fn of(recording: &Recording) -> Result<Distinct> {
        let mut distinct = Distinct::default();
        for tick in recording.ticks() {
            for position in tick.positions().flatten() {
                distinct.add(position)?;
            }
        }
        Ok(distinct)
    }

    pub fn add(&mut self, position: Position) -> Result<()> {
        if let Some(&row) = self.rows.get(&position) {
            self.counts[row] += 1;
            return Ok(());
        }
        self.rows.try_put(position, self.positions.len())?;
        self.counts.try_push(1)?;
        self.positions.try_push(position)
    }

    pub fn row(&self, position: Position) -> Option<usize> {
        self.rows.get(&position).copied()
    }
}

/// The line of a position, in the file of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub file: &'a str,
    pub line: i64,
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

    #[test]
    fn distinct_positions_are_counted() {
        let code = CodeId::new(8, 1);
        let [one, two] = [1, 2].map(|words| Position::new(code, words).unwrap());
        let mut distinct = Distinct::default();
        for position in [two, one, two] {
            distinct.add(position).unwrap();
        }
        assert_eq!(distinct.positions, [two, one]);
        assert_eq!(distinct.counts, [2, 1]);
        assert_eq!(distinct.row(one), Some(1));
        assert_eq!(distinct.row(Position::new(code, 3).unwrap()), None);
    }
}
