//! Builds a tibble column by column.
//!
//! R allocates each column, and its data are filled as a slice, so that nothing is copied.

use crate::arena::{Arena, RObject};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::message;
use profile_core::model::Frames;
use std::collections::HashMap;

pub use profile_core::schema::NA;

pub struct Tibble<'call> {
    arena: Arena<'call>,
    rows: usize,
    columns: Vec<(&'static str, RObject<'call>)>,
}

impl<'call> Tibble<'call> {
    pub fn new(arena: Arena<'call>, rows: usize) -> Result<Tibble<'call>> {
        if rows > i32::MAX as usize {
            return Err(Error::Unsupported(message!(
                "A table would have {rows} rows, more than a data frame can have ({}).",
                i32::MAX
            )));
        }
        Ok(Tibble {
            arena,
            rows,
            columns: Vec::new(),
        })
    }

    pub fn add(&mut self, name: &'static str, column: RObject<'call>) -> Result<()> {
        self.columns.try_push((name, column))
    }

    pub fn integers(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = i32>,
    ) -> Result<()> {
        fill(self.integer_slots(name)?, values);
        Ok(())
    }

    pub fn logicals(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<bool>>,
    ) -> Result<()> {
        let (column, slots) = self.arena.logicals(self.rows)?;
        let values = values.into_iter().map(|v| v.map_or(NA, i32::from));
        fill(slots, values);
        self.add(name, column)
    }

    pub fn doubles(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = f64>,
    ) -> Result<()> {
        fill(self.double_slots(name)?, values);
        Ok(())
    }

    /// The data of a new integer column, which the caller fills.
    pub fn integer_slots(&mut self, name: &'static str) -> Result<&'call mut [i32]> {
        let (column, slots) = self.arena.integers(self.rows)?;
        self.add(name, column)?;
        Ok(slots)
    }

    /// The data of a new logical column, which the caller fills: each element is 0, 1 or NA.
    pub fn logical_slots(&mut self, name: &'static str) -> Result<&'call mut [i32]> {
        let (column, slots) = self.arena.logicals(self.rows)?;
        self.add(name, column)?;
        Ok(slots)
    }

    pub fn double_slots(&mut self, name: &'static str) -> Result<&'call mut [f64]> {
        let (column, slots) = self.arena.doubles(self.rows)?;
        self.add(name, column)?;
        Ok(slots)
    }

    /// The columns of frames, computed when R needs their values.
    pub fn frames(&mut self, names: &[&'static str; 3], frames: Frames) -> Result<()> {
        let columns = self.arena.frame_columns(frames)?;
        for (name, column) in names.iter().zip(columns) {
            self.add(name, column)?;
        }
        Ok(())
    }

    /// A column of 1, 2, 3, …, each repeated in `each` rows. Like the next three, it is computed
    /// when R needs its values.
    pub fn counted(&mut self, name: &'static str, each: usize) -> Result<()> {
        self.add(name, self.arena.counted(self.rows, each)?)
    }

    pub fn constant(&mut self, name: &'static str, value: i32) -> Result<()> {
        self.cycled(name, self.arena.integer_vector(&[value])?)
    }

    pub fn constant_double(&mut self, name: &'static str, value: f64) -> Result<()> {
        self.cycled(name, self.arena.number(value)?)
    }

    pub fn repeated_texts(
        &mut self,
        name: &'static str,
        texts: &[&str],
        order: &[i32],
    ) -> Result<()> {
        debug_assert!(!order.is_empty());
        self.cycled(name, self.arena.indexed_texts(texts, order)?)
    }

    fn cycled(&mut self, name: &'static str, values: RObject<'call>) -> Result<()> {
        self.add(name, self.arena.cycled(self.rows, values)?)
    }

    /// A character column: `rows` contains the index of each row's string in `distinct`, or -1
    /// for NA.
    pub fn indexed_texts(
        &mut self,
        name: &'static str,
        distinct: &[&str],
        rows: &[i32],
    ) -> Result<()> {
        debug_assert_eq!(rows.len(), self.rows);
        self.add(name, self.arena.indexed_texts(distinct, rows)?)
    }

    /// A character column of strings that may repeat.
    pub fn texts<'s>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = Option<&'s str>>,
    ) -> Result<()> {
        let (distinct, rows) = numbered(values)?;
        self.indexed_texts(name, &distinct, &rows)
    }

    /// A factor: `rows` contains the index of each row's text in `texts`, which may repeat or be absent.
    pub fn factor(
        &mut self,
        name: &'static str,
        texts: &[Option<&str>],
        rows: impl IntoIterator<Item = Option<usize>>,
    ) -> Result<()> {
        let (levels, numbers) = numbered(texts.iter().copied())?;
        let (column, slots) = self.arena.factor(self.rows, &levels)?;
        let code = |row: Option<usize>| match row.map_or(-1, |row| numbers[row]) {
            -1 => NA,
            number => number + 1,
        };
        fill(slots, rows.into_iter().map(code));
        self.add(name, column)
    }

    /// The list column of stacks in version "1.0", see [`Arena::stack_tibbles()`].
    pub fn stack_tibbles(
        &mut self,
        name: &'static str,
        frames: &[i32],
        ends: &[usize],
        rows: &[i32],
    ) -> Result<()> {
        self.add(name, self.arena.stack_tibbles(frames, ends, rows)?)
    }

    pub fn finish(self) -> Result<RObject<'call>> {
        self.arena.tibble(self.rows, &self.columns)
    }
}

/// The distinct texts, and for each value the index of its text, or -1 if it is absent.
fn numbered<'s>(
    values: impl IntoIterator<Item = Option<&'s str>>,
) -> Result<(Vec<&'s str>, Vec<i32>)> {
    let mut distinct: Vec<&str> = Vec::new();
    let mut seen: HashMap<&str, i32> = HashMap::new();
    let mut rows: Vec<i32> = Vec::new();
    for value in values {
        let row = match value {
            None => -1,
            Some(text) => match seen.get(text) {
                Some(&row) => row,
                None => {
                    let row = distinct.len() as i32;
                    distinct.try_push(text)?;
                    seen.try_put(text, row)?;
                    row
                }
            },
        };
        rows.try_push(row)?;
    }
    Ok((distinct, rows))
}

fn fill<T>(slots: &mut [T], values: impl IntoIterator<Item = T>) {
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = value;
    }
}
