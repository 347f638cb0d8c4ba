//! An index from the ids of a table to its rows.

use super::input::{NA, invalid};
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut};
use crate::message;
use std::collections::HashMap;

/// The rows of a table by their ids.
#[derive(Debug)]
pub enum Ids {
    /// The ids 1, 2, 3, …, as readers assign them. The field is their number.
    Sequence(usize),
    /// Ids in a narrow range: the lowest id, and from there on the row + 1 of each, 0 for gaps.
    Range(i32, Vec<u32>),
    /// Any other ids.
    Map(HashMap<i32, u32>),
}

impl Ids {
    /// NA and duplicates are errors.
    pub fn new(table: &'static str, column: &'static str, ids: &[i32]) -> Result<Ids> {
        if ids.iter().zip(1..).all(|(&id, row)| id == row) {
            return Ok(Ids::Sequence(ids.len()));
        }
        if let Some(row) = ids.iter().position(|&id| id == NA) {
            return Err(invalid(table, column, row, "must not be NA"));
        }
        let twice = |row: usize| invalid(table, column, row, message!("duplicate id {}", ids[row]));
        let (low, high) = ids
            .iter()
            .fold((i32::MAX, i32::MIN), |(l, h), &id| (l.min(id), h.max(id)));
        let range = (i64::from(high) - i64::from(low) + 1) as usize;
        if range <= ids.len().saturating_mul(8) + 1024 {
            let mut rows = Vec::new();
            rows.try_fill(range, 0)?;
            for (row, &id) in ids.iter().enumerate() {
                let slot = &mut rows[(i64::from(id) - i64::from(low)) as usize];
                if *slot != 0 {
                    return Err(twice(row));
                }
                *slot = row as u32 + 1;
            }
            return Ok(Ids::Range(low, rows));
        }
        let mut rows = HashMap::new();
        for (row, &id) in ids.iter().enumerate() {
            if rows.try_put(id, row as u32)?.is_some() {
                return Err(twice(row));
            }
        }
        Ok(Ids::Map(rows))
    }

    /// The row of an id, counted from 0.
    #[inline]
    pub fn row(&self, id: i32) -> Option<usize> {
        match self {
            Ids::Sequence(len) => {
                let row = (id as usize).wrapping_sub(1);
                (row < *len).then_some(row)
            }
            Ids::Range(low, rows) => {
                let at = usize::try_from(i64::from(id) - i64::from(*low)).ok()?;
                (*rows.get(at)? as usize).checked_sub(1)
            }
            Ids::Map(rows) => rows.get(&id).map(|&row| row as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_id_finds_its_row() {
        for ids in [
            vec![1, 2, 3],
            vec![7, 3, 5],
            vec![-2_000_000_000, 2_000_000_000, 0],
        ] {
            let index = Ids::new("t", "c", &ids).unwrap();
            for (row, &id) in ids.iter().enumerate() {
                assert_eq!(index.row(id), Some(row));
            }
            for foreign in [4, NA, -1, 100] {
                assert_eq!(index.row(foreign), None, "{foreign}");
            }
        }
    }

    #[test]
    fn ids_are_unique_and_not_na() {
        let message = |ids: &[i32]| Ids::new("t", "c", ids).unwrap_err().to_string();
        assert_eq!(
            message(&[1, 2, 1]),
            "Table `t`, column `c`, row 3: duplicate id 1."
        );
        assert!(message(&[1, NA]).contains("row 2: must not be NA"));
        assert!(message(&[1, 2_000_000_000, 1]).contains("row 3"));
    }
}
