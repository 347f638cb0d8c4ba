//! What each stack has allocated, and which vectors are still in use.

use super::counts::{Peak, SlotId, VALUES};
use super::sites::Kind;
use profile_core::collections::next_row;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::model::StringId;
use std::collections::HashMap;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The number of copies of a row of which each is looked at.
const FIRST_COPIES: u64 = 3;

/// The number of larger and larger vectors that can hardly be a coincidence.
const FEWEST_STEPS: u64 = 20;

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
    /// Where all processes have their rows.
    pub slot: SlotId,
    allocated: Amount,
    copied: Amount,
    in_use: Amount,
    /// What was in use at the last peak before this changed, and the number of that peak.
    before: Amount,
    before_peak: u64,
    /// The bytes that were allocated since the last garbage collection, and the share of the time of collections so far, in
    /// nanoseconds.
    since: u64,
    collecting: u64,
    /// The size of the last vector, and the numbers of vectors that were larger and smaller than the one before.
    last: u64,
    rises: u64,
    falls: u64,
    /// Why most of the copies were made that were looked at: the reason, and their number.
    reason: Option<(StringId, u64)>,
}

impl Row {
    fn new(slot: SlotId) -> Row {
        Row {
            slot,
            allocated: Amount::default(),
            copied: Amount::default(),
            in_use: Amount::default(),
            before: Amount::default(),
            before_peak: 0,
            since: 0,
            collecting: 0,
            last: 0,
            rises: 0,
            falls: 0,
            reason: None,
        }
    }

    /// The numbers of the result, see [`super::result`]. `peak` is the number of the last peak.
    pub fn values(&self, peak: u64) -> [u64; VALUES] {
        let at_peak = if self.before_peak == peak {
            self.before
        } else {
            self.in_use
        };
        [
            self.allocated.bytes,
            self.allocated.objects,
            self.copied.bytes,
            self.copied.objects,
            self.in_use.bytes,
            self.in_use.objects,
            self.collecting,
            at_peak.bytes,
            at_peak.objects,
        ]
    }

    /// To be called before what is in use changes. Nothing is copied when there is a peak, which may be at each vector.
    fn keep_peak(&mut self, peak: u64) {
        if self.before_peak != peak {
            self.before = self.in_use;
            self.before_peak = peak;
        }
    }

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
    /// Rows by the identity of a stack, and by the number of its record.
    by_identity: Map<(u64, bool), RowId>,
    by_record: Map<u128, RowId>,
    /// The vectors in use, by their addresses: where they were allocated, and their bytes.
    in_use: Map<u64, (RowId, u64)>,
    /// The rows that have allocated since the last collection.
    recent: Vec<RowId>,
    /// The bytes of all vectors in use.
    total: u64,
    peak: Peak,
}

impl Sums {
    pub fn row_of(&self, identity: u64, kind: Kind) -> Option<RowId> {
        let key = (identity, kind == Kind::Conversion);
        self.by_identity.get(&key).copied()
    }

    /// The row of a stack that has this record, which has another identity as well.
    pub fn row_with(&mut self, record: u128, identity: u64, kind: Kind) -> Result<Option<RowId>> {
        let row = self.by_record.get(&record).copied();
        if let Some(row) = row {
            let key = (identity, kind == Kind::Conversion);
            self.by_identity.try_put(key, row)?;
        }
        Ok(row)
    }

    /// Adds a stack, which has this record and this identity.
    pub fn add(&mut self, record: u128, identity: u64, kind: Kind, slot: SlotId) -> Result<RowId> {
        let row = RowId(next_row(self.rows.len(), "stacks")?);
        self.rows.try_push(Row::new(slot))?;
        self.by_record.try_put(record, row)?;
        let key = (identity, kind == Kind::Conversion);
        self.by_identity.try_put(key, row)?;
        Ok(row)
    }

    /// Adds a vector. Returns whether there is a new peak.
    pub fn allocate(&mut self, row: RowId, kind: Kind, address: u64, bytes: u64) -> Result<bool> {
        if let Some((other, size)) = self.in_use.try_put(address, (row, bytes))? {
            self.end(other, size);
        }
        let Some(sums) = self.rows.get_mut(row.0 as usize) else {
            return Ok(false);
        };
        if sums.since == 0 {
            self.recent.try_push(row)?;
        }
        sums.keep_peak(self.peak.number);
        sums.since = sums.since.saturating_add(bytes);
        sums.rises += u64::from(bytes > sums.last && sums.last > 0);
        sums.falls += u64::from(bytes < sums.last);
        sums.last = bytes;
        sums.allocated.add(bytes);
        sums.in_use.add(bytes);
        if kind == Kind::Copy {
            sums.copied.add(bytes);
        }
        self.total = self.total.wrapping_add(bytes);
        let is_peak = self.total > self.peak.bytes;
        if is_peak {
            self.peak.bytes = self.total;
            self.peak.number += 1;
        }
        Ok(is_peak)
    }

    /// Whether it is to be looked up why the next copy of a row is made: for the first ones, and then less and less often.
    pub fn asks_why(&self, row: RowId) -> bool {
        let copies = self
            .rows
            .get(row.0 as usize)
            .map_or(0, |row| row.copied.objects);
        copies < FIRST_COPIES || copies.is_power_of_two()
    }

    /// Notes why a copy was made. A reason stays unless others are found more often: returns whether it is a new one.
    pub fn explain(&mut self, row: RowId, reason: StringId) -> bool {
        let Some(row) = self.rows.get_mut(row.0 as usize) else {
            return false;
        };
        let before = row.reason.map(|(known, _)| known);
        row.reason = match row.reason {
            Some((known, count)) if known == reason => Some((known, count + 1)),
            Some((known, count)) if count > 1 => Some((known, count - 1)),
            _ => Some((reason, 1)),
        };
        before != row.reason.map(|(known, _)| known)
    }

    /// Removes a vector, if it is one. Returns its row.
    pub fn free(&mut self, address: u64) -> Option<RowId> {
        let (row, bytes) = self.in_use.remove(&address)?;
        self.end(row, bytes);
        Some(row)
    }

    fn end(&mut self, row: RowId, bytes: u64) {
        if let Some(row) = self.rows.get_mut(row.0 as usize) {
            row.keep_peak(self.peak.number);
            row.in_use.remove(bytes);
        }
        self.total = self.total.wrapping_sub(bytes);
    }

    /// The last peak, whose time the user of this sets.
    pub fn peak(&mut self) -> &mut Peak {
        &mut self.peak
    }

    pub fn row(&self, row: RowId) -> Option<&Row> {
        self.rows.get(row.0 as usize)
    }

    /// Shares the time of a garbage collection, which has ended, by the bytes that each row has allocated since the last one.
    /// Calls `changed` with each of these rows.
    pub fn share(&mut self, nanoseconds: u64, changed: &mut dyn FnMut(&Row)) {
        self.peak.reached = self.peak.reached.max(self.total);
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
            changed(row);
        }
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile_core::model::Strings;

    /// A row with this identity, which is that of its record as well.
    fn row(sums: &mut Sums, identity: u64) -> RowId {
        sums.add(u128::from(identity), identity, Kind::New, SlotId::default())
            .unwrap()
    }

    #[test]
    fn vectors_are_in_use_until_they_are_freed() {
        let mut sums = Sums::default();
        let row = row(&mut sums, 1);
        sums.allocate(row, Kind::New, 1000, 100).unwrap();
        sums.allocate(row, Kind::Copy, 2000, 50).unwrap();
        assert_eq!(sums.free(1000), Some(row));
        // Not a vector, or not one any more.
        assert_eq!(sums.free(1000), None);
        assert_eq!(sums.free(3000), None);
        assert_eq!(sums.rows()[0].values(0), [150, 2, 50, 1, 50, 1, 0, 50, 1]);
    }

    #[test]
    fn the_peak_is_when_most_was_in_use() {
        let mut sums = Sums::default();
        let rows = [1, 2, 3].map(|identity| row(&mut sums, identity));
        let at_peak = |sums: &mut Sums| {
            let number = sums.peak().number;
            let bytes: Vec<u64> = sums
                .rows()
                .iter()
                .map(|row| row.values(number)[7])
                .collect();
            (sums.peak().bytes, bytes)
        };
        assert_eq!(at_peak(&mut sums), (0, vec![0, 0, 0]));
        assert!(sums.allocate(rows[0], Kind::New, 1, 100).unwrap());
        assert!(sums.allocate(rows[1], Kind::New, 2, 50).unwrap());
        assert_eq!(at_peak(&mut sums), (150, vec![100, 50, 0]));
        sums.free(1);
        assert_eq!(at_peak(&mut sums), (150, vec![100, 50, 0]));
        assert!(!sums.allocate(rows[2], Kind::New, 3, 60).unwrap());
        sums.free(2);
        sums.share(5, &mut |_| {});
        assert_eq!(at_peak(&mut sums), (150, vec![100, 50, 0]));
        // A higher one, of which the second row has no part.
        assert!(sums.allocate(rows[0], Kind::New, 4, 100).unwrap());
        assert_eq!(at_peak(&mut sums), (160, vec![100, 0, 60]));
        sums.free(3);
        sums.free(4);
        assert_eq!(at_peak(&mut sums), (160, vec![100, 0, 60]));
        assert_eq!((sums.peak().number, sums.peak().reached), (3, 60));
        // An address that is used again was freed unseen.
        sums.allocate(rows[0], Kind::New, 5, 10).unwrap();
        sums.allocate(rows[1], Kind::New, 5, 20).unwrap();
        assert_eq!(sums.rows()[0].values(3)[4..6], [0, 0]);
    }

    #[test]
    fn stacks_with_several_identities_have_one_row() {
        let mut sums = Sums::default();
        let first = row(&mut sums, 1);
        assert_eq!(sums.row_with(1, 2, Kind::Copy).unwrap(), Some(first));
        assert_eq!(sums.row_with(7, 3, Kind::Copy).unwrap(), None);
        assert_eq!(sums.row_of(2, Kind::Copy), Some(first));
        assert_eq!(sums.row_of(2, Kind::Conversion), None);
        assert_eq!(sums.row_of(3, Kind::New), None);
    }

    #[test]
    fn the_time_of_collections_is_shared_by_recent_bytes() {
        let mut sums = Sums::default();
        let rows = [1, 2, 3].map(|identity| row(&mut sums, identity));
        let mut changed = Vec::new();
        let mut note = |row: &Row| changed.push(row.values(0)[6]);
        sums.allocate(rows[0], Kind::New, 1, 100).unwrap();
        sums.share(10, &mut note);
        sums.allocate(rows[1], Kind::New, 2, 100).unwrap();
        sums.allocate(rows[2], Kind::New, 3, 200).unwrap();
        sums.share(100, &mut note);
        // Nobody has allocated since.
        sums.share(1000, &mut note);
        let shares: Vec<u64> = sums.rows().iter().map(|row| row.values(0)[6]).collect();
        assert_eq!(shares, [10, 33, 67]);
        assert_eq!(changed, shares);
    }

    #[test]
    fn a_reason_is_the_one_that_is_found_most_often() {
        let mut sums = Sums::default();
        let row = row(&mut sums, 1);
        let mut texts = Strings::default();
        let reasons = ["one", "two"].map(|text| texts.intern(text).unwrap());
        for (found, is_new, expected) in [
            (0, true, 0),
            (0, false, 0),
            (1, false, 0),
            (1, true, 1),
            (1, false, 1),
            (0, false, 1),
        ] {
            assert_eq!(sums.explain(row, reasons[found]), is_new);
            let reason = sums.rows()[0].reason.map(|(reason, _)| reason);
            assert_eq!(reason, Some(reasons[expected]));
        }
    }

    #[test]
    fn few_copies_are_looked_at() {
        let mut sums = Sums::default();
        let row = row(&mut sums, 1);
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
            let row = row(&mut sums, 1);
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
