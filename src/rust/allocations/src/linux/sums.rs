//! What each stack has allocated, and which vectors are still in use.

use super::sites::Kind;
use profile_core::collections::next_row;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::model::{StackId, StringId};
use profile_reader::stack::frames::Place;
use profile_reader::stack::spans::Span;
use std::collections::HashMap;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The number of copies of a row of which each is looked at.
const FIRST_COPIES: u64 = 3;

/// The number of larger and larger vectors that can hardly be a coincidence.
const FEWEST_STEPS: u64 = 20;

/// What distinguishes the rows of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub stack: StackId,
    /// Where the outermost function was called.
    pub toplevel: Option<Place>,
    pub span: Option<Span>,
    pub is_conversion: bool,
    /// See [`super::state::mark`].
    pub mark: u64,
}

/// A number of vectors and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub bytes: u64,
    pub objects: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.wrapping_add(bytes);
        self.objects = self.objects.wrapping_add(1);
    }

    fn remove(&mut self, bytes: u64) {
        self.bytes = self.bytes.wrapping_sub(bytes);
        self.objects = self.objects.wrapping_sub(1);
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub key: Key,
    pub allocated: Amount,
    pub copied: Amount,
    pub in_use: Amount,
    /// The bytes that were allocated since the last garbage collection, and the share of the time of collections so far, in
    /// nanoseconds.
    since: u64,
    pub collecting: u64,
    /// The size of the last vector, and the numbers of vectors that were larger and smaller than the one before.
    last: u64,
    rises: u64,
    falls: u64,
    /// Why most of the copies were made that were looked at: the reason, and their number.
    pub reason: Option<(StringId, u64)>,
}

impl Row {
    /// Whether vectors become larger and larger, as if an object is extended step by step.
    pub fn grows(&self) -> bool {
        self.rises >= FEWEST_STEPS && self.rises >= 20 * self.falls
    }
}

/// The number of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowId(u32);

#[derive(Debug, Default)]
pub struct Sums {
    rows: Vec<Row>,
    /// Rows by the identity of a stack, and by the stack itself.
    by_identity: Map<(u64, bool), RowId>,
    by_key: Map<Key, RowId>,
    /// The vectors in use, by their addresses: where they were allocated, and their bytes.
    in_use: Map<u64, (RowId, u64)>,
    /// The rows that have allocated since the last collection.
    recent: Vec<RowId>,
}

impl Sums {
    pub fn row_of(&self, identity: u64, kind: Kind) -> Option<RowId> {
        let key = (identity, kind == Kind::Conversion);
        self.by_identity.get(&key).copied()
    }

    /// Adds a stack, which has this identity.
    pub fn add_stack(&mut self, identity: u64, key: Key) -> Result<RowId> {
        let row = match self.by_key.get(&key) {
            Some(&row) => row,
            None => {
                let row = RowId(next_row(self.rows.len(), "stacks")?);
                self.rows.try_push(Row {
                    key,
                    allocated: Amount::default(),
                    copied: Amount::default(),
                    in_use: Amount::default(),
                    since: 0,
                    last: 0,
                    rises: 0,
                    falls: 0,
                    collecting: 0,
                    reason: None,
                })?;
                self.by_key.try_put(key, row)?;
                row
            }
        };
        self.by_identity
            .try_put((identity, key.is_conversion), row)?;
        Ok(row)
    }

    /// Adds a vector.
    pub fn allocate(&mut self, row: RowId, kind: Kind, address: u64, bytes: u64) -> Result<()> {
        self.in_use.try_put(address, (row, bytes))?;
        if let Some(sums) = self.rows.get_mut(row.0 as usize) {
            if sums.since == 0 {
                self.recent.try_push(row)?;
            }
            sums.since = sums.since.saturating_add(bytes);
        }
        if let Some(row) = self.rows.get_mut(row.0 as usize) {
            row.rises += u64::from(bytes > row.last && row.last > 0);
            row.falls += u64::from(bytes < row.last);
            row.last = bytes;
            row.allocated.add(bytes);
            row.in_use.add(bytes);
            if kind == Kind::Copy {
                row.copied.add(bytes);
            }
        }
        Ok(())
    }

    /// Whether it is to be looked up why the next copy of a row is made: for the first ones, and then less and less often.
    pub fn asks_why(&self, row: RowId) -> bool {
        let copies = self
            .rows
            .get(row.0 as usize)
            .map_or(0, |row| row.copied.objects);
        copies < FIRST_COPIES || copies.is_power_of_two()
    }

    /// Notes why a copy was made. A reason stays unless others are found more often.
    pub fn explain(&mut self, row: RowId, reason: StringId) {
        if let Some(row) = self.rows.get_mut(row.0 as usize) {
            row.reason = match row.reason {
                Some((known, count)) if known == reason => Some((known, count + 1)),
                Some((known, count)) if count > 1 => Some((known, count - 1)),
                _ => Some((reason, 1)),
            };
        }
    }

    /// Removes a vector, if it is one.
    pub fn free(&mut self, address: u64) {
        if let Some((row, bytes)) = self.in_use.remove(&address) {
            if let Some(row) = self.rows.get_mut(row.0 as usize) {
                row.in_use.remove(bytes);
            }
        }
    }

    /// Shares the time of a garbage collection by the bytes that each row has allocated since the last one.
    pub fn share(&mut self, nanoseconds: u64) {
        let mut left = nanoseconds;
        let mut bytes: u64 = self
            .recent
            .iter()
            .map(|row| self.rows[row.0 as usize].since)
            .sum();
        for row in self.recent.drain(..) {
            let row = &mut self.rows[row.0 as usize];
            let share = u128::from(left) * u128::from(row.since) / u128::from(bytes.max(1));
            // What is left is shared by the others, so that nothing is lost by rounding.
            left -= share as u64;
            bytes -= row.since;
            row.since = 0;
            row.collecting += share as u64;
        }
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile_core::model::{Profile, Strings};

    fn key(mark: u64) -> Key {
        Key {
            stack: Profile::default().stacks.intern(&[]).unwrap(),
            toplevel: None,
            span: None,
            is_conversion: false,
            mark,
        }
    }

    #[test]
    fn vectors_are_in_use_until_they_are_freed() {
        let mut sums = Sums::default();
        let row = sums.add_stack(1, key(0)).unwrap();
        sums.allocate(row, Kind::New, 1000, 100).unwrap();
        sums.allocate(row, Kind::Copy, 2000, 50).unwrap();
        sums.free(1000);
        // Not a vector, or not one any more.
        sums.free(1000);
        sums.free(3000);
        let [only] = sums.rows() else { panic!() };
        let amounts = [only.allocated, only.copied, only.in_use];
        let numbers = amounts.map(|amount| (amount.bytes, amount.objects));
        assert_eq!(numbers, [(150, 2), (50, 1), (50, 1)]);
    }

    #[test]
    fn stacks_with_several_identities_have_one_row() {
        let mut sums = Sums::default();
        let row = sums.add_stack(1, key(0)).unwrap();
        assert_eq!(sums.add_stack(2, key(0)).unwrap(), row);
        assert_ne!(sums.add_stack(3, key(1)).unwrap(), row);
        assert_eq!(sums.row_of(2, Kind::Copy), Some(row));
        assert_eq!(sums.row_of(2, Kind::Conversion), None);
        assert_eq!(sums.row_of(4, Kind::New), None);
    }

    #[test]
    fn the_time_of_collections_is_shared_by_recent_bytes() {
        let mut sums = Sums::default();
        let rows = [1, 2, 3].map(|mark| sums.add_stack(mark, key(mark)).unwrap());
        sums.allocate(rows[0], Kind::New, 1, 100).unwrap();
        sums.share(10);
        sums.allocate(rows[1], Kind::New, 2, 100).unwrap();
        sums.allocate(rows[2], Kind::New, 3, 200).unwrap();
        sums.share(100);
        // Nobody has allocated since.
        sums.share(1000);
        let shares: Vec<u64> = sums.rows().iter().map(|row| row.collecting).collect();
        assert_eq!(shares, [10, 33, 67]);
    }

    #[test]
    fn a_reason_is_the_one_that_is_found_most_often() {
        let mut sums = Sums::default();
        let row = sums.add_stack(1, key(0)).unwrap();
        let mut texts = Strings::default();
        let reasons = ["one", "two"].map(|text| texts.intern(text).unwrap());
        for (found, expected) in [(0, 0), (0, 0), (1, 0), (1, 1), (1, 1), (0, 1)] {
            sums.explain(row, reasons[found]);
            let reason = sums.rows()[0].reason.map(|(reason, _)| reason);
            assert_eq!(reason, Some(reasons[expected]));
        }
    }

    #[test]
    fn few_copies_are_looked_at() {
        let mut sums = Sums::default();
        let row = sums.add_stack(1, key(0)).unwrap();
        let looked_at = (0..100).filter(|&number| {
            let asks = sums.asks_why(row);
            sums.allocate(row, Kind::Copy, number, 8).unwrap();
            asks
        });
        assert_eq!(looked_at.collect::<Vec<_>>(), [0, 1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn growth_is_many_larger_vectors() {
        let grows = |sizes: &mut dyn Iterator<Item = u64>| {
            let mut sums = Sums::default();
            let row = sums.add_stack(1, key(0)).unwrap();
            for (address, size) in (0..).zip(sizes) {
                sums.allocate(row, Kind::New, address, size).unwrap();
            }
            sums.rows()[0].grows()
        };
        assert!(grows(&mut (0..200).map(|n| 176 + n / 2 * 8)));
        assert!(!grows(&mut (0..10).map(|n| 176 + n)));
        assert!(!grows(&mut (0..200).map(|_| 176)));
        assert!(!grows(&mut (0..200).map(|n| 176 + n % 5)));
    }
}
