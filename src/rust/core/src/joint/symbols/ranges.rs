//! An index that finds the ranges that contain an address. It is used for symbols, units, functions
//! and lines.

use crate::error::Result;
use crate::limits::memory::{TryCollect, sort_by_key};
use std::ops::Range;

/// Ranges of addresses, which may overlap, each with a value.
#[derive(Debug)]
pub struct Ranges<T> {
    rows: Vec<Row<T>>,
}

#[derive(Debug)]
struct Row<T> {
    range: Range<u64>,
    /// The highest end of this row and of those before it.
    reach: u64,
    value: T,
}

impl<T> Ranges<T> {
    pub fn new(ranges: Vec<(Range<u64>, T)>) -> Result<Ranges<T>> {
        let mut rows = ranges
            .into_iter()
            .map(|(range, value)| Row {
                reach: range.end,
                range,
                value,
            })
            .try_vec()?;
        sort_by_key(&mut rows, |row| row.range.start)?;
        let mut reach = 0;
        for row in &mut rows {
            reach = reach.max(row.range.end);
            row.reach = reach;
        }
        Ok(Ranges { rows })
    }

    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.rows.iter().map(|row| row.range.clone())
    }

    /// The ranges that contain an address, in descending order of their starts.
    pub fn containing(&self, address: u64) -> impl Iterator<Item = (u64, &T)> {
        let behind = self.rows.partition_point(|row| row.range.start <= address);
        self.rows[..behind]
            .iter()
            .rev()
            .take_while(move |row| row.reach > address)
            .filter(move |row| row.range.end > address)
            .map(|row| (row.range.start, &row.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_all_ranges_of_an_address_however_they_overlap() {
        let ranges = vec![
            (5..9, 'b'),
            (0..20, 'a'),
            (12..14, 'd'),
            (5..7, 'c'),
            (9..9, 'e'),
        ];
        let plain = ranges.clone();
        let index = Ranges::new(ranges).unwrap();
        for address in 0..25 {
            let mut expected: Vec<(u64, char)> = plain
                .iter()
                .filter(|(range, _)| range.contains(&address))
                .map(|(range, value)| (range.start, *value))
                .collect();
            let mut found: Vec<(u64, char)> =
                index.containing(address).map(|(s, v)| (s, *v)).collect();
            assert!(found.is_sorted_by(|a, b| a.0 >= b.0), "{address}");
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{address}");
        }
    }
}
