//! Finds equal rows of a table.
//!
//! Each cell is converted to a number, which is the same for equal cells, and each row to a list of
//! numbers.

use super::cells::Cells;
use super::ids::Numbered;
use super::{Job, Parts, ROWS_PER_CHECK, integers};
use crate::collections::{Interner, Lists, TextList};
use crate::error::Result;
use crate::limits::cancel;
use crate::limits::memory::{TryCollect, TryGrow, copied, with_room};
use crate::schema::{ColumnInfo, Key, NA, NA_REAL, table};

impl<'j, 't, 'a> Job<'j, 't, 'a> {
    /// The first equal row of each row. `own` is the key of the table, which is ignored, and its
    /// ids.
    pub(super) fn first_equal(
        &self,
        parts: &Parts<'t, 'a>,
        own: Option<(Key, &[Numbered<'a>])>,
    ) -> Result<Vec<u32>> {
        let mut columns: Vec<Vec<i32>> = Vec::new();
        let mut texts: Interner<TextList> = Interner::default();
        for column in &parts.columns {
            if own.is_none_or(|(key, _)| key.name() != column.name) {
                self.add_codes(parts, column, &mut texts, &mut columns)?;
            }
        }
        if let Some(codes) = self.groups_of(parts.info.name) {
            columns.try_push(copied(codes)?)?;
        }
        if let (Some((key, ids)), Some(attributes)) = (own, parts.info.attributes) {
            if let Some(codes) = self.attribute_sets(parts.rows, key, ids, attributes)? {
                columns.try_push(codes)?;
            }
        }
        let mut known: Interner<Lists<i32>> = Interner::default();
        let mut first_of: Vec<u32> = Vec::new();
        let mut first = with_room(parts.rows)?;
        let mut cells = Vec::new();
        for row in 0..parts.rows {
            if row % ROWS_PER_CHECK == 0 {
                cancel::check(self.stop)?;
            }
            cells.clear();
            for column in &columns {
                cells.try_push(column[row])?;
            }
            let number = known.intern(&cells)? as usize;
            if number == first_of.len() {
                first_of.try_push(row as u32)?;
            }
            first.try_push(first_of[number])?;
        }
        Ok(first)
    }

    /// Appends columns of numbers that are equal if the cells of this column are equal.
    pub(super) fn add_codes(
        &self,
        parts: &Parts<'t, 'a>,
        column: &'static ColumnInfo,
        texts: &mut Interner<TextList>,
        columns: &mut Vec<Vec<i32>>,
    ) -> Result<()> {
        let mut codes = with_room(parts.rows)?;
        // The upper half of each double.
        let mut more = Vec::new();
        for &(profile, part) in &parts.parts {
            match self.cells(parts.info, column, profile, part)? {
                Cells::Integers(values) => codes.try_extend(&values)?,
                Cells::Doubles(values) => {
                    more.try_fill(codes.len(), NA)?;
                    for value in values.iter() {
                        let bits = if value.is_nan() {
                            NA_REAL.to_bits()
                        } else {
                            (value + 0.0).to_bits()
                        };
                        codes.try_push(bits as i32)?;
                        more.try_push((bits >> 32) as i32)?;
                    }
                }
                Cells::Texts(text) => {
                    let numbers = text.distinct.iter().map(|text| texts.intern(text));
                    let numbers = numbers.try_vec_of()?;
                    for &row in &text.rows {
                        let number = numbers.get(row as usize);
                        codes.try_push(number.map_or(NA, |&number| number as i32))?;
                    }
                }
                Cells::Missing(rows) => codes.try_fill(codes.len() + rows, NA)?,
            }
        }
        if !more.is_empty() {
            more.try_fill(codes.len(), NA)?;
            columns.try_push(more)?;
        }
        columns.try_push(codes)
    }

    pub(super) fn groups_of(&self, table: &str) -> Option<&'j [i32]> {
        let found = self.groups.iter().find(|(name, _)| *name == table);
        found.map(|(_, groups)| *groups)
    }

    /// The number of the set of attributes of each row; `None` if no row has attributes.
    pub(super) fn attribute_sets(
        &self,
        rows: usize,
        key: Key,
        ids: &[Numbered<'a>],
        attributes: &'static str,
    ) -> Result<Option<Vec<i32>>> {
        let Some(table) = table(attributes) else {
            return Ok(None);
        };
        let parts = self.parts(table)?;
        if parts.rows == 0 {
            return Ok(None);
        }
        let equal = self.first_equal(&parts, Some((key, ids)))?;
        // The row that owns each attribute; `rows` if there is none.
        let mut owners = with_room(parts.rows)?;
        for &(profile, part) in &parts.parts {
            for &id in integers(part, attributes, key.name())? {
                let owner = ids[profile].new_id(id).map(|id| id as usize - 1);
                owners.try_push(owner.unwrap_or(rows))?;
            }
        }
        let members = Lists::grouped(rows + 1, owners.iter().copied())?;
        let mut sets: Interner<Lists<u32>> = Interner::default();
        let mut numbers = with_room(rows)?;
        let mut set = Vec::new();
        for members in members.iter().take(rows) {
            set.clear();
            for &member in members {
                set.try_push(equal[member as usize])?;
            }
            set.sort_unstable();
            numbers.try_push(sets.intern(&set)? as i32)?;
        }
        Ok(Some(numbers))
    }
}
