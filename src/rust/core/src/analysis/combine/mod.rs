//! Combines profiles: appends their tables to each other, with new ids.
//!
//! This works on tables and not on the model, so that edits by users are preserved. The schema
//! declares which column refers to which table, and in which tables equal rows are merged:
//! functions, mappings and locations. Rows of other tables are events, so equal rows are kept
//! separately.
//!
//! Values of a type in several units are converted into the first one.
//!
//! User-defined columns and tables are not processed here. [`Combined`] contains what the caller
//! needs to combine them: the rows that are kept, and the new ids.

mod cells;
mod columns;
mod equal;
mod frames;
mod ids;
mod regular;
mod units;

use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, with_room};
use crate::message;
use crate::schema::{
    ColumnInfo, Computed, Data, FRAME_COLUMNS, Ids, Key, Sink, TABLES, Table, TableInfo,
    TableInput, Type, table,
};
use crate::tables::{TableList, get};
use ids::{NewIds, Numbered};
use units::Units;

const ROWS_PER_CHECK: usize = 1 << 20;
const META: &str = "meta";
const SAMPLE_LOCATIONS: &str = "sample_locations";

/// Additional information about the rows of some tables beyond the columns of the schema: a number
/// for each row, over all profiles that have the table. Rows with different numbers are not merged.
pub type Groups<'g> = [(&'g str, &'g [i32])];

/// The information that is needed to combine columns and tables outside the schema.
pub struct Combined<'a> {
    /// The remaining rows of each table whose equal rows were merged, counted from 0 over all
    /// profiles that have the table.
    pub kept: Vec<(&'static str, Vec<u32>)>,
    /// By key and by profile.
    numbered: Vec<Vec<Numbered<'a>>>,
}

impl Combined<'_> {
    /// For each key, and each profile, the new ids of the rows of its table.
    pub fn new_ids(&self) -> Result<Vec<(Key, Vec<Vec<i32>>)>> {
        let numbered = Key::ALL.into_iter().zip(&self.numbered);
        let ids = numbered.map(|(key, numbered)| {
            let new = numbered.iter().map(Numbered::all).try_vec_of()?;
            Ok((key, new))
        });
        ids.try_vec_of()
    }
}

/// Writes the combined tables to `sink`. The profiles must be of version "2.0" and checked.
/// `close_gaps`: whether frames, sorted by sample and depth, are numbered from 1 without gaps.
pub fn combine<'a>(
    profiles: &[&TableList<'_, 'a>],
    groups: &Groups,
    close_gaps: bool,
    sink: &mut dyn Sink,
    stop: Stop,
) -> Result<Combined<'a>> {
    let mut job = Job {
        profiles,
        groups,
        close_gaps,
        numbered: Vec::new(),
        kept: Vec::new(),
        units: Units::new(profiles)?,
        stop,
    };
    for key in Key::ALL {
        let numbered = job.number(key)?;
        job.numbered.try_push(numbered)?;
    }
    for table in TABLES {
        job.write(table, sink)?;
    }
    Ok(Combined {
        kept: job.kept,
        numbered: job.numbered,
    })
}

struct Job<'j, 't, 'a> {
    profiles: &'j [&'j TableList<'t, 'a>],
    groups: &'j Groups<'j>,
    close_gaps: bool,
    /// By key, for the keys that were already processed, and by profile.
    numbered: Vec<Vec<Numbered<'a>>>,
    kept: Vec<(&'static str, Vec<u32>)>,
    units: Units<'a>,
    stop: Stop<'j>,
}

/// A table of all profiles that have it.
struct Parts<'t, 'a> {
    info: &'static TableInfo,
    columns: Vec<&'static ColumnInfo>,
    /// The tables, with the numbers of their profiles.
    parts: Vec<(usize, &'t dyn TableInput<'a>)>,
    rows: usize,
}

impl<'a> Parts<'_, 'a> {
    /// The ids of each profile; empty for profiles without this table.
    fn ids(&self, key: Key, profiles: usize) -> Result<Vec<&'a [i32]>> {
        let mut ids = filled(profiles, &[] as &[i32])?;
        for &(profile, part) in &self.parts {
            ids[profile] = integers(part, self.info.name, key.name())?;
        }
        Ok(ids)
    }
}

impl<'j, 't, 'a> Job<'j, 't, 'a> {
    fn parts(&self, table: &'static dyn Table) -> Result<Parts<'t, 'a>> {
        let info = table.info();
        let mut parts = Vec::new();
        let mut rows = 0;
        for (profile, list) in self.profiles.iter().enumerate() {
            if let Some(part) = get(list, info.name) {
                rows += part.rows();
                parts.try_push((profile, part))?;
            }
        }
        if rows > i32::MAX as usize {
            return Err(Error::Unsupported(message!(
                "Table `{}` would have more rows than a data frame can have.",
                info.name
            )));
        }
        let has = |column: &&ColumnInfo| {
            let mut parts = parts.iter();
            parts.any(|(_, part)| part.names().contains(&column.name))
        };
        Ok(Parts {
            info,
            columns: table.columns().filter(has).try_vec()?,
            parts,
            rows,
        })
    }

    /// The new ids of a table.
    fn number(&mut self, key: Key) -> Result<Vec<Numbered<'a>>> {
        let Some(table) = table(key.table()) else {
            return Ok(Vec::new());
        };
        let parts = self.parts(table)?;
        let mut numbered = Vec::new();
        let mut before = 0;
        for old in parts.ids(key, self.profiles.len())? {
            let rows = Ids::new(parts.info.name, key.name(), old)?;
            let new = NewIds::After(before);
            numbered.try_push(Numbered { old, rows, new })?;
            before += old.len();
        }
        if !parts.info.merged {
            return Ok(numbered);
        }
        let first = self.first_equal(&parts, Some((key, &numbered)))?;
        let mut new: Vec<i32> = with_room(first.len())?;
        let mut kept = Vec::new();
        for (row, &first) in first.iter().enumerate() {
            if first as usize == row {
                kept.try_push(first)?;
                new.try_push(kept.len() as i32)?;
            } else {
                new.try_push(new[first as usize])?;
            }
        }
        if kept.len() < first.len() {
            self.kept.try_push((parts.info.name, kept))?;
            let mut rest = new.as_slice();
            for numbered in &mut numbered {
                let (own, left) = rest.split_at(numbered.old.len());
                numbered.new = NewIds::Each(copied(own)?);
                rest = left;
            }
        }
        Ok(numbered)
    }

    fn write(&mut self, table: &'static dyn Table, sink: &mut dyn Sink) -> Result<()> {
        let parts = self.parts(table)?;
        let name = parts.info.name;
        if parts.parts.is_empty() {
            return Ok(());
        }
        let is_attributes = |key: &Key| {
            let owner = crate::schema::table(key.table());
            owner.is_some_and(|owner| owner.info().attributes == Some(name))
        };
        if name == META || Key::ALL.iter().any(is_attributes) {
            let first = self.first_equal(&parts, None)?;
            let kept = (0..).zip(&first).filter(|(row, first)| row == *first);
            let kept = kept.map(|(row, _)| row).try_vec()?;
            if kept.len() < first.len() {
                self.kept.try_push((name, kept))?;
            }
        }
        let kept = self.kept.iter().find(|(table, _)| *table == name);
        let kept = kept.map(|(_, kept)| kept.as_slice());
        sink.start(name, kept.map_or(parts.rows, <[u32]>::len))?;
        if name == SAMPLE_LOCATIONS {
            if let Some(known) = self.known_frames(&parts)? {
                let mut make = || self.combined_frames(&known);
                if sink.computed(Computed::Frames(&FRAME_COLUMNS, &mut make))? {
                    return sink.finish();
                }
            }
        }
        let each = self.rows_of_each(&parts)?;
        for column in &parts.columns {
            cancel::check(self.stop)?;
            if let Some(each) = each {
                if self.write_regular(&parts, column, each, sink)? {
                    continue;
                }
            }
            self.write_column(&parts, column, kept, sink)?;
        }
        sink.finish()
    }
}

fn integers<'a>(
    part: &dyn TableInput<'a>,
    table: &'static str,
    column: &'static str,
) -> Result<&'a [i32]> {
    match part.column(table, column, Type::Integer)? {
        Some(Data::Integers(ids)) => Ok(ids),
        _ => Ok(&[]),
    }
}
