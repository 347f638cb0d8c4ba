//! Columns of a tibble: allocated by R, filled through a slice.

use crate::slots::Slots;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, TryPut, TryText};
use profile_core::message;
use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt::Display;
use std::ops::Range;

const WHAT: &str = "a column of strings";

/// R's `NA_integer_`.
pub const NA: i32 = i32::MIN;

/// R's `NA_real_`: a NaN whose low word is 1954.
pub const NA_REAL: f64 = f64::from_bits(0x7ff0_0000_0000_07a2);

/// A tibble in the making: its columns are given in the order of its names.
pub struct Tibble<'call> {
    slots: Slots<'call>,
    rows: usize,
    next: usize,
}

impl<'call> Tibble<'call> {
    pub fn new(
        parent: Slots<'call>,
        slot: usize,
        names: &[&CStr],
        rows: usize,
    ) -> Result<Tibble<'call>> {
        if rows > i32::MAX as usize {
            return Err(Error::Unsupported(message!(
                "A table of {rows} rows: R's data frames end at {}.",
                i32::MAX
            )));
        }
        Ok(Tibble {
            slots: parent.list(slot, names)?,
            rows,
            next: 0,
        })
    }

    fn slot(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    pub fn integers(&mut self, values: impl IntoIterator<Item = i32>) -> Result<()> {
        let slot = self.slot();
        fill(self.slots.integers(slot, self.rows)?, values);
        Ok(())
    }

    pub fn logicals(&mut self, values: impl IntoIterator<Item = Option<bool>>) -> Result<()> {
        let slot = self.slot();
        let values = values.into_iter().map(|v| v.map_or(NA, i32::from));
        fill(self.slots.logicals(slot, self.rows)?, values);
        Ok(())
    }

    pub fn doubles(&mut self, values: impl IntoIterator<Item = f64>) -> Result<()> {
        let slot = self.slot();
        fill(self.slots.doubles(slot, self.rows)?, values);
        Ok(())
    }

    /// The raw slice of a new integer column, for columns of millions of rows.
    pub fn integer_slots(&mut self) -> Result<&'call mut [i32]> {
        let slot = self.slot();
        self.slots.integers(slot, self.rows)
    }

    pub fn double_slots(&mut self) -> Result<&'call mut [f64]> {
        let slot = self.slot();
        self.slots.doubles(slot, self.rows)
    }

    /// Strings as an index into few distinct ones; -1 is NA.
    pub fn indexed(&mut self, distinct: &[&str], rows: &[i32]) -> Result<()> {
        let slot = self.slot();
        self.slots.strings(slot, distinct, rows)
    }

    /// Strings that may repeat.
    pub fn strings<'s>(&mut self, values: impl IntoIterator<Item = Option<&'s str>>) -> Result<()> {
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
                        distinct.try_push(text, WHAT)?;
                        seen.try_put(text, row, WHAT)?;
                        row
                    }
                },
            };
            rows.try_push(row, WHAT)?;
        }
        self.indexed(&distinct, &rows)
    }

    /// Values as texts, which are made here.
    pub fn texts<T: Display>(&mut self, values: impl Iterator<Item = Option<T>>) -> Result<()> {
        // End to end in one text.
        let mut all = String::new();
        let mut parts: Vec<Option<Range<usize>>> = Vec::new();
        for value in values {
            let start = all.len();
            let part = match value {
                Some(value) => {
                    all.try_write(format_args!("{value}"), WHAT)?;
                    Some(start..all.len())
                }
                None => None,
            };
            parts.try_push(part, WHAT)?;
        }
        self.strings(parts.into_iter().map(|part| all.get(part?)))
    }

    /// v1's list column.
    pub fn stacks(&mut self, frames: &[i32], ends: &[usize], rows: &[i32]) -> Result<()> {
        let slot = self.slot();
        self.slots.stacks(slot, frames, ends, rows)
    }

    pub fn finish(self) -> Result<()> {
        debug_assert_eq!(self.next, self.slots.len());
        self.slots.set_tibble(self.rows)
    }
}

fn fill<T>(slots: &mut [T], values: impl IntoIterator<Item = T>) {
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = value;
    }
}
