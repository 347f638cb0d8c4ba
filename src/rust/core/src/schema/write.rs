//! Writes rows of the model as columns.
//!
//! The functions below [`Column::write`] take their values as trait objects, so that they are
//! compiled once, and not for each table and type of cell, which would be a tenth of the
//! library's size.

use super::cells;
use super::column::{Access, Column, Given};
use super::input::NA;
use super::sink::{Computed, NA_REAL, Sink, fill};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::model::{Profile, StringId, Strings, integer_for_r};
use std::fmt::Display;
use std::ops::Range;

/// The number of rows from which it is worthwhile to determine whether texts repeat, and the largest number of rows
/// after which they may repeat.
const LONG: usize = 1 << 14;
const PERIOD: usize = 16;

/// The id of a row, which is counted from 0.
pub(super) fn id_of(row: usize) -> i32 {
    row as i32 + 1
}

impl<R, D> Column<R, D> {
    /// Whether the column is written for these rows.
    pub(super) fn is_given(&self, profile: &Profile, rows: &[R]) -> bool {
        match self.given {
            Given::Always => true,
            Given::Where(given) => rows.iter().any(|row| given(profile, row)),
            Given::WhereAny => self.has_value(profile, rows),
        }
    }

    fn has_value(&self, p: &Profile, rows: &[R]) -> bool {
        fn any<R>(rows: &[R], has: impl Fn(&R) -> bool) -> bool {
            rows.iter().any(has)
        }
        match self.access {
            Access::Key => true,
            Access::Reference(_, get, _) | Access::Id(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Integer(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Line(get, _) | Access::Whole(get, _) | Access::Decimal(get, _) => {
                any(rows, |r| get(p, r).is_some())
            }
            Access::ExactLine(get, _) => any(rows, |r| {
                get(p, r).and_then(cells::line_beyond_integer).is_some()
            }),
            Access::Double(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Count(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Flag(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Text(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::OwnText(get, _) | Access::HexDigits(get, _) => {
                any(rows, |r| get(p, r).is_some())
            }
            Access::Hexadecimal(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::NativeId(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Bytes(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Kind(get, _) => any(rows, |r| get(p, r).is_some()),
            Access::Texts(get, _) => {
                any(rows, |r| get(p, r).is_some_and(|texts| !texts.is_empty()))
            }
        }
    }

    pub(super) fn write(&self, p: &Profile, rows: &[R], sink: &mut dyn Sink) -> Result<()> {
        let all = rows.iter();
        let name = self.info.name;
        match self.access {
            Access::Key => integers(sink, name, 1..),
            Access::Reference(_, get, _) | Access::Id(get, _) => {
                integers(sink, name, all.map(|r| get(p, r).map_or(NA, id_of)))
            }
            Access::Integer(get, _) => integers(sink, name, all.map(|r| get(p, r).unwrap_or(NA))),
            Access::Line(get, _) => {
                integers(sink, name, all.map(|r| get(p, r).map_or(NA, integer_for_r)))
            }
            Access::Double(get, _) => doubles(sink, name, &mut all.map(|r| get(p, r))),
            Access::Whole(get, _) => {
                doubles(sink, name, &mut all.map(|r| get(p, r).map(|n| n as f64)))
            }
            Access::Count(get, _) => {
                doubles(sink, name, &mut all.map(|r| get(p, r).map(f64::from)))
            }
            Access::Flag(get, _) => {
                let mut all = all;
                sink.logicals(name, &mut |slots| {
                    fill(slots, all.by_ref().map(|r| get(p, r).map_or(NA, i32::from)))
                })
            }
            Access::Text(get, _) => strings(sink, name, &mut all.map(|r| get(p, r)), &p.strings),
            Access::OwnText(get, _) | Access::HexDigits(get, _) => {
                texts(sink, name, &mut all.map(|r| get(p, r)))
            }
            Access::ExactLine(get, _) => formatted(
                sink,
                name,
                &mut all.map(|r| get(p, r).and_then(cells::line_beyond_integer)),
            ),
            Access::Decimal(get, _) => formatted(sink, name, &mut all.map(|r| get(p, r))),
            Access::Hexadecimal(get, _) => {
                formatted(sink, name, &mut all.map(|r| get(p, r).map(Hexadecimal)))
            }
            Access::NativeId(get, _) => formatted(sink, name, &mut all.map(|r| get(p, r))),
            Access::Bytes(get, _) => formatted(
                sink,
                name,
                &mut all.map(|r| get(p, r).map(|bytes| cells::ENCODING.encode_display(bytes))),
            ),
            Access::Kind(get, _) => texts(
                sink,
                name,
                &mut all.map(|r| get(p, r).map(|kind| kind.name())),
            ),
            Access::Texts(get, _) => {
                let json =
                    all.map(|r| cells::json_texts(get(p, r).unwrap_or_default(), &p.strings));
                let json = json.try_vec_of()?;
                texts(sink, name, &mut json.iter().map(Option::as_deref))
            }
        }
    }
}

fn integers(
    sink: &mut dyn Sink,
    name: &'static str,
    mut values: impl Iterator<Item = i32>,
) -> Result<()> {
    sink.integers(&[name], &mut |columns| match columns {
        [column, ..] => fill(column, values.by_ref()),
        [] => Ok(()),
    })
}

fn doubles(
    sink: &mut dyn Sink,
    name: &'static str,
    mut values: &mut dyn Iterator<Item = Option<f64>>,
) -> Result<()> {
    sink.doubles(name, &mut |column| {
        fill(column, (&mut values).map(|value| value.unwrap_or(NA_REAL)))
    })
}

/// Writes strings of the profile. Each distinct string is passed once, unless there are so few rows
/// that finding equal ones takes longer.
pub(super) fn strings(
    sink: &mut dyn Sink,
    name: &'static str,
    values: &mut dyn ExactSizeIterator<Item = Option<StringId>>,
    strings: &Strings,
) -> Result<()> {
    if values.len() < strings.len() / 16 {
        return texts(sink, name, &mut values.map(|id| Some(strings.get(id?))));
    }
    let mut position: Vec<i32> = filled(strings.len(), -1)?;
    let mut distinct = Vec::new();
    let mut rows = with_room(values.len())?;
    for value in values {
        let row = match value {
            None => -1,
            Some(id) => {
                let known = &mut position[id.row()];
                if *known < 0 {
                    *known = distinct.len() as i32;
                    distinct.try_push(strings.get(id))?;
                }
                *known
            }
        };
        rows.try_push(row)?;
    }
    if let Some(period) = period(&rows) {
        if sink.computed(Computed::Texts(name, &distinct, &rows[..period]))? {
            return Ok(());
        }
    }
    sink.texts(name, &distinct, &rows)
}

/// The number of rows after which the values of a long column repeat, if it is small. Samples often have the same
/// labels in the same order.
fn period(rows: &[i32]) -> Option<usize> {
    let repeats =
        |period: &usize| rows.len() % period == 0 && rows[*period..] == rows[..rows.len() - period];
    let is_long = rows.len() >= LONG;
    is_long.then(|| (1..=PERIOD).find(repeats)).flatten()
}

/// Writes texts that are not interned.
pub(super) fn texts(
    sink: &mut dyn Sink,
    name: &'static str,
    values: &mut dyn ExactSizeIterator<Item = Option<&str>>,
) -> Result<()> {
    let mut all = Vec::new();
    let mut rows = with_room(values.len())?;
    for value in values {
        let row = match value {
            Some(text) => {
                // Consecutive rows are often equal.
                if all.last() != Some(&text) {
                    all.try_push(text)?;
                }
                all.len() as i32 - 1
            }
            None => -1,
        };
        rows.try_push(row)?;
    }
    sink.texts(name, &all, &rows)
}

/// Writes values, formatted as text.
pub(super) fn formatted<T: Display>(
    sink: &mut dyn Sink,
    name: &'static str,
    values: &mut dyn ExactSizeIterator<Item = Option<T>>,
) -> Result<()> {
    // All of them are stored in one text.
    let mut all = String::new();
    let mut parts: Vec<Option<Range<usize>>> = with_room(values.len())?;
    for value in values {
        let start = all.len();
        let part = match value {
            Some(value) => {
                cells::put(&mut all, value)?;
                Some(start..all.len())
            }
            None => None,
        };
        parts.try_push(part)?;
    }
    texts(
        sink,
        name,
        &mut parts.into_iter().map(|part| all.get(part?)),
    )
}

/// An address as text.
struct Hexadecimal(u64);

impl Display for Hexadecimal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
