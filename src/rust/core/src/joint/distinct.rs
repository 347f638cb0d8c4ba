//! The different positions in byte code of a recording, and their lines.

use super::positions::Position;
use super::recording::Recording;
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The different positions of a recording, in the order in which they occur first.
#[derive(Debug, Default)]
pub struct Distinct {
    pub positions: Vec<Position>,
    /// How often each occurs.
    pub counts: Vec<u64>,
    rows: HashMap<Position, usize, RandomState>,
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
    use crate::joint::positions::CodeId;

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
