//! The columns of combined tables.

use super::cells::Cells;
use super::ids::{check_resolved, renamed};
use super::{Job, Parts, SAMPLE_LOCATIONS, integers};
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::schema::{
    ColumnInfo, Data, FILES, Key, NA, NA_REAL, SAMPLE_VALUES, Sink, TableInfo, TableInput, Type,
    constant, constant_double, counted, find,
};
use std::borrow::Cow;

const DEPTH: &str = "depth";
/// Tables that may have millions of rows.
const OF_SAMPLES: [&str; 2] = ["samples", SAMPLE_VALUES];

impl<'j, 't, 'a> Job<'j, 't, 'a> {
    /// A column of one part, with new ids if it refers to another table.
    pub(super) fn cells(
        &self,
        info: &TableInfo,
        column: &'static ColumnInfo,
        profile: usize,
        part: &dyn TableInput<'a>,
    ) -> Result<Cells<'a>> {
        let name = info.name;
        let data = find(part, name, column)?;
        let reference = column.refers_to();
        let reference = reference.filter(|key| key.table() != info.name);
        Ok(match (data, reference) {
            (None, _) => Cells::Missing(part.rows()),
            (Some(Data::Integers(ids)), Some(key)) => {
                let ids = match self.numbered.get(key as usize) {
                    Some(numbered) if numbered[profile].is_same() && name != FILES => {
                        check_resolved(ids, &numbered[profile], name, column, key)?;
                        Cow::Borrowed(ids)
                    }
                    Some(numbered) => {
                        let numbered = &numbered[profile];
                        Cow::Owned(renamed(ids, numbered, name, column, key, self.stop)?)
                    }
                    // Attributes are compared before their owners have new ids.
                    None => Cow::Borrowed(ids),
                };
                Cells::Integers(ids)
            }
            (Some(Data::Integers(values)), None) => Cells::Integers(Cow::Borrowed(values)),
            (Some(Data::Doubles(values)), _) => Cells::Doubles(Cow::Borrowed(values)),
            (Some(Data::Texts(text)), _) => Cells::Texts(text),
            (Some(Data::Stacks(..) | Data::Other(_)), _) => Cells::Missing(part.rows()),
        })
    }

    pub(super) fn write_column(
        &self,
        parts: &Parts<'t, 'a>,
        column: &'static ColumnInfo,
        kept: Option<&[u32]>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let name = column.name;
        if column
            .refers_to()
            .is_some_and(|key| key.table() == parts.info.name)
        {
            return counted(sink, name, 1);
        }
        if self.close_gaps && (parts.info.name, name) == (SAMPLE_LOCATIONS, DEPTH) {
            return write_depths(parts, sink);
        }
        let cells = parts.parts.iter();
        let cells = cells.map(|&(profile, part)| {
            let cells = self.cells(parts.info, column, profile, part)?;
            self.units
                .in_one_unit(parts.info.name, name, profile, part, cells)
        });
        let cells = cells.try_vec_of()?;
        if OF_SAMPLES.contains(&parts.info.name) && write_by_rule(name, &cells, sink)? {
            return Ok(());
        }
        match column.type_ {
            Type::Integer => sink.integers(&[name], &mut |columns| {
                fill(columns[0], &cells, kept, Cells::integers, NA)
            }),
            Type::Logical => sink.logicals(name, &mut |slots| {
                fill(slots, &cells, kept, Cells::integers, NA)
            }),
            Type::Double => sink.doubles(name, &mut |slots| {
                fill(slots, &cells, kept, Cells::doubles, NA_REAL)
            }),
            Type::Text => write_texts(name, &cells, kept, parts.rows, sink),
            Type::Stacks => Ok(()),
        }
    }
}

/// Writes a column that is constant or a sequence, as most columns of [`OF_SAMPLES`] are; returns
/// false for any other column.
fn write_by_rule(name: &'static str, cells: &[Cells], sink: &mut dyn Sink) -> Result<bool> {
    if cells.iter().all(|part| part.integers().is_some()) {
        let values = || cells.iter().filter_map(Cells::integers).flatten().copied();
        let each = values().take_while(|&id| id == 1).count();
        let is_counted = |(row, id): (usize, i32)| id as usize == row / each + 1;
        if let Some(only) = the_only(values()).filter(|&only| only != NA) {
            constant(sink, name, only)?;
        } else if each > 0 && values().enumerate().all(is_counted) {
            counted(sink, name, each)?;
        } else {
            return Ok(false);
        }
        return Ok(true);
    }
    let values = || cells.iter().filter_map(Cells::doubles).flatten().copied();
    let is_double = cells.iter().all(|part| part.doubles().is_some());
    // Zeros may have a sign, and NaN is not equal to itself.
    let only = the_only(values()).filter(|&only| is_double && only != 0.0 && !only.is_nan());
    match only {
        Some(only) => constant_double(sink, name, only).map(|()| true),
        None => Ok(false),
    }
}

/// The common value of all elements, if there is one.
fn the_only<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// Writes depths 1, 2, 3, … for the frames of each sample.
fn write_depths(parts: &Parts, sink: &mut dyn Sink) -> Result<()> {
    sink.integers(&[DEPTH], &mut |columns| {
        let mut slots = columns[0].iter_mut();
        for (_, part) in &parts.parts {
            let ids = integers(*part, parts.info.name, Key::Sample.name())?;
            for frames in ids.chunk_by(|a, b| a == b) {
                for (depth, slot) in (1..=frames.len() as i32).zip(&mut slots) {
                    *slot = depth;
                }
            }
        }
        Ok(())
    })
}

/// Fills a column with the cells of all parts, or only of the rows that are kept.
fn fill<'c, 'a, T: Copy + 'c>(
    slots: &mut [T],
    cells: &'c [Cells<'a>],
    kept: Option<&[u32]>,
    values: impl Fn(&'c Cells<'a>) -> Option<&'c [T]>,
    na: T,
) -> Result<()> {
    let mut all;
    let out = match kept {
        None => &mut *slots,
        Some(_) => {
            all = filled(cells.iter().map(Cells::len).sum(), na)?;
            &mut all[..]
        }
    };
    let mut rest = &mut *out;
    for part in cells {
        let (own, left) = rest.split_at_mut(part.len().min(rest.len()));
        rest = left;
        match values(part) {
            Some(values) => own.copy_from_slice(values),
            None => own.fill(na),
        }
    }
    if let Some(kept) = kept {
        let picked = kept.iter().map(|&row| out[row as usize]).try_vec()?;
        slots.copy_from_slice(&picked);
    }
    Ok(())
}

fn write_texts(
    name: &'static str,
    cells: &[Cells],
    kept: Option<&[u32]>,
    rows: usize,
    sink: &mut dyn Sink,
) -> Result<()> {
    if let ([Cells::Texts(text)], None) = (cells, kept) {
        return sink.texts(name, &text.distinct, &text.rows);
    }
    let mut texts: Interner<TextList> = Interner::default();
    let mut all: Vec<i32> = with_room(rows)?;
    for part in cells {
        match part {
            Cells::Texts(text) => {
                let numbers = text.distinct.iter().map(|text| texts.intern(text));
                let numbers = numbers.try_vec_of()?;
                for &row in &text.rows {
                    let number = numbers.get(row as usize);
                    all.try_push(number.map_or(-1, |&number| number as i32))?;
                }
            }
            _ => all.try_fill(all.len() + part.len(), -1)?,
        }
    }
    if let Some(kept) = kept {
        all = kept.iter().map(|&row| all[row as usize]).try_vec()?;
    }
    let texts = texts.ids().map(|id| texts.get(id)).try_vec()?;
    sink.texts(name, &texts, &all)
}
