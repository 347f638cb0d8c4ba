//! Combines profiles: their tables under each other, with new ids.
//!
//! This works on tables and not on the model, so that what users have edited stays as they
//! left it. The schema says which column refers to which table, and which tables have rows
//! that are one thing where they are equal: functions, mappings and locations. Rows of the
//! others are events, and what is recorded twice is there twice.
//!
//! Columns and tables of users' own are not seen here. [`Combined`] says what whoever has
//! them needs: the rows that are kept, and the new ids.

use crate::collections::{Interner, Lists, TextList};
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, with_room};
use crate::message;
use crate::schema::{
    ColumnInfo, Data, FILES, Ids, Key, NA, NA_REAL, Sink, TABLES, Table, TableInfo, TableInput,
    Text, Type, find, invalid_column, table,
};
use crate::tables::{TableList, get};

const WHAT: &str = "a combined table";
const ROWS_PER_CHECK: usize = 1 << 20;
const SAMPLE_LOCATIONS: &str = "sample_locations";
const DEPTH: &str = "depth";
const META: &str = "meta";

/// What is known of the rows of a table beyond the columns of the schema: a number for each
/// row, counted over all profiles that have the table, equal where that is equal.
pub type Groups<'g> = [(&'g str, &'g [i32])];

/// What follows for columns and tables that are not in the schema.
pub struct Combined {
    /// The rows that are left of a table where equal ones became one, counted from 0 over all
    /// profiles that have the table.
    pub kept: Vec<(&'static str, Vec<u32>)>,
    /// For each key, and each profile, the new ids of the rows of its table.
    pub ids: Vec<(Key, Vec<Vec<i32>>)>,
}

/// Gives the combined tables to `sink`. The profiles are of version "2.0" and were checked.
/// `close_gaps`: whether frames, sorted by sample and depth, are numbered from 1 without gaps.
pub fn combine(
    profiles: &[&TableList],
    groups: &Groups,
    close_gaps: bool,
    sink: &mut dyn Sink,
    stop: Stop,
) -> Result<Combined> {
    let mut job = Job {
        profiles,
        groups,
        close_gaps,
        numbered: Vec::new(),
        kept: Vec::new(),
        stop,
    };
    for key in Key::ALL {
        let numbered = job.number(key)?;
        job.numbered.try_push(numbered, WHAT)?;
    }
    for table in TABLES {
        job.write(table, sink)?;
    }
    let mut ids = Vec::new();
    for (key, numbered) in Key::ALL.into_iter().zip(&job.numbered) {
        let new = numbered.iter().map(Numbered::all).try_vec_of(WHAT)?;
        ids.try_push((key, new), WHAT)?;
    }
    Ok(Combined {
        kept: job.kept,
        ids,
    })
}

/// The rows of a table of one profile, by their ids, and the new ids.
struct Numbered<'a> {
    old: &'a [i32],
    rows: Ids,
    new: NewIds,
}

enum NewIds {
    /// In the order of the rows, after so many.
    After(usize),
    Each(Vec<i32>),
}

impl Numbered<'_> {
    #[inline]
    fn new_id(&self, old: i32) -> Option<i32> {
        let row = self.rows.row(old)?;
        Some(match &self.new {
            NewIds::After(before) => (before + row) as i32 + 1,
            NewIds::Each(ids) => ids[row],
        })
    }

    /// Whether each id stays what it was.
    fn is_same(&self) -> bool {
        matches!(
            (&self.rows, &self.new),
            (Ids::Sequence(_), NewIds::After(0))
        )
    }

    /// The old ids by their size.
    fn sorted(&self) -> Result<Vec<i32>> {
        let mut ids = copied(self.old, WHAT)?;
        ids.sort_unstable();
        Ok(ids)
    }

    fn all(&self) -> Result<Vec<i32>> {
        match &self.new {
            NewIds::After(before) => (0..self.old.len())
                .map(|row| (before + row) as i32 + 1)
                .try_vec(WHAT),
            NewIds::Each(ids) => copied(ids, WHAT),
        }
    }
}

struct Job<'j, 't, 'a> {
    profiles: &'j [&'j TableList<'t, 'a>],
    groups: &'j Groups<'j>,
    close_gaps: bool,
    /// By key, as far as they are known, and by profile.
    numbered: Vec<Vec<Numbered<'a>>>,
    kept: Vec<(&'static str, Vec<u32>)>,
    stop: Stop<'j>,
}

/// The parts of a table: of each profile that has it.
struct Parts<'t, 'a> {
    info: &'static TableInfo,
    columns: Vec<&'static ColumnInfo>,
    /// With the numbers of their profiles.
    parts: Vec<(usize, &'t dyn TableInput<'a>)>,
    rows: usize,
}

/// A column of one part.
enum Cells<'a> {
    Integers(&'a [i32]),
    /// Ids that were renamed.
    Ids(Vec<i32>),
    Doubles(&'a [f64]),
    Texts(Text<'a>),
    /// The table of that profile has so many rows and no such column.
    Missing(usize),
}

impl<'a> Parts<'_, 'a> {
    /// The ids of each profile.
    fn ids(&self, key: Key, profiles: usize) -> Result<Vec<&'a [i32]>> {
        let mut ids = filled(profiles, &[] as &[i32], WHAT)?;
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
                parts.try_push((profile, part), WHAT)?;
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
            columns: table.columns().filter(has).try_vec(WHAT)?,
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
            numbered.try_push(Numbered { old, rows, new }, WHAT)?;
            before += old.len();
        }
        if !parts.info.merged {
            return Ok(numbered);
        }
        let first = self.first_equal(&parts, Some((key, &numbered)))?;
        let mut new: Vec<i32> = with_room(first.len(), WHAT)?;
        let mut kept = Vec::new();
        for (row, &first) in first.iter().enumerate() {
            if first as usize == row {
                kept.try_push(first, WHAT)?;
                new.try_push(kept.len() as i32, WHAT)?;
            } else {
                new.try_push(new[first as usize], WHAT)?;
            }
        }
        if kept.len() < first.len() {
            self.kept.try_push((parts.info.name, kept), WHAT)?;
            let mut rest = new.as_slice();
            for numbered in &mut numbered {
                let (own, left) = rest.split_at(numbered.old.len());
                numbered.new = NewIds::Each(copied(own, WHAT)?);
                rest = left;
            }
        }
        Ok(numbered)
    }

    /// For each row the first one that equals it; `own`: the key of the table, which is left
    /// out, and its ids.
    fn first_equal(
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
            columns.try_push(copied(codes, WHAT)?, WHAT)?;
        }
        if let (Some((key, ids)), Some(attributes)) = (own, parts.info.attributes) {
            if let Some(codes) = self.attribute_sets(parts.rows, key, ids, attributes)? {
                columns.try_push(codes, WHAT)?;
            }
        }
        let mut known: Interner<Lists<i32>> = Interner::default();
        let mut first_of: Vec<u32> = Vec::new();
        let mut first = with_room(parts.rows, WHAT)?;
        let mut cells = Vec::new();
        for row in 0..parts.rows {
            if row % ROWS_PER_CHECK == 0 {
                cancel::check(self.stop)?;
            }
            cells.clear();
            for column in &columns {
                cells.try_push(column[row], WHAT)?;
            }
            let number = known.intern(&cells)? as usize;
            if number == first_of.len() {
                first_of.try_push(row as u32, WHAT)?;
            }
            first.try_push(first_of[number], WHAT)?;
        }
        Ok(first)
    }

    /// Appends columns of numbers that are equal where the cells of this one are.
    fn add_codes(
        &self,
        parts: &Parts<'t, 'a>,
        column: &'static ColumnInfo,
        texts: &mut Interner<TextList>,
        columns: &mut Vec<Vec<i32>>,
    ) -> Result<()> {
        let mut codes = with_room(parts.rows, WHAT)?;
        // The other half of a double.
        let mut more = Vec::new();
        for &(profile, part) in &parts.parts {
            match self.cells(parts.info, column, profile, part)? {
                Cells::Integers(values) => codes.try_extend(values, WHAT)?,
                Cells::Ids(values) => codes.try_extend(&values, WHAT)?,
                Cells::Doubles(values) => {
                    more.try_fill(codes.len(), NA, WHAT)?;
                    for value in values {
                        let bits = match value.is_nan() {
                            true => NA_REAL.to_bits(),
                            false => (value + 0.0).to_bits(),
                        };
                        codes.try_push(bits as i32, WHAT)?;
                        more.try_push((bits >> 32) as i32, WHAT)?;
                    }
                }
                Cells::Texts(text) => {
                    let numbers = text.distinct.iter().map(|text| texts.intern(text));
                    let numbers = numbers.try_vec_of(WHAT)?;
                    for &row in &text.rows {
                        let number = numbers.get(row as usize);
                        codes.try_push(number.map_or(NA, |&number| number as i32), WHAT)?;
                    }
                }
                Cells::Missing(rows) => codes.try_fill(codes.len() + rows, NA, WHAT)?,
            }
        }
        if !more.is_empty() {
            more.try_fill(codes.len(), NA, WHAT)?;
            columns.try_push(more, WHAT)?;
        }
        columns.try_push(codes, WHAT)
    }

    fn groups_of(&self, table: &str) -> Option<&'j [i32]> {
        let found = self.groups.iter().find(|(name, _)| *name == table);
        found.map(|(_, groups)| *groups)
    }

    /// For each row of a table the number of its set of attributes; `None` where none has any.
    fn attribute_sets(
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
        // The row that each is of; behind the last one where there is none.
        let mut owners = with_room(parts.rows, WHAT)?;
        for &(profile, part) in &parts.parts {
            for &id in integers(part, attributes, key.name())? {
                let owner = ids[profile].new_id(id).map(|id| id as usize - 1);
                owners.try_push(owner.unwrap_or(rows), WHAT)?;
            }
        }
        let members = Lists::grouped(rows + 1, owners.iter().copied(), WHAT)?;
        let mut sets: Interner<Lists<u32>> = Interner::default();
        let mut numbers = with_room(rows, WHAT)?;
        let mut set = Vec::new();
        for members in members.iter().take(rows) {
            set.clear();
            for &member in members {
                set.try_push(equal[member as usize], WHAT)?;
            }
            set.sort_unstable();
            numbers.try_push(sets.intern(&set)? as i32, WHAT)?;
        }
        Ok(Some(numbers))
    }

    /// A column of one part, with new ids where it refers to another table.
    fn cells(
        &self,
        info: &TableInfo,
        column: &'static ColumnInfo,
        profile: usize,
        part: &dyn TableInput<'a>,
    ) -> Result<Cells<'a>> {
        let name = table(info.name).map_or("", |table| table.info().name);
        let data = find(part, name, column)?;
        let reference = column.refers_to();
        let reference = reference.filter(|key| key.table() != info.name);
        Ok(match (data, reference) {
            (None, _) => Cells::Missing(part.rows()),
            (Some(Data::Integers(ids)), Some(key)) => {
                match self.numbered.iter().zip(Key::ALL).find(|(_, k)| *k == key) {
                    Some((numbered, _)) if numbered[profile].is_same() && name != FILES => {
                        self.check_resolved(ids, &numbered[profile], name, column, key)?;
                        Cells::Integers(ids)
                    }
                    Some((numbered, _)) => {
                        Cells::Ids(self.renamed(ids, &numbered[profile], name, column, key)?)
                    }
                    // Attributes are compared before their owners have ids.
                    None => Cells::Integers(ids),
                }
            }
            (Some(Data::Integers(values)), None) => Cells::Integers(values),
            (Some(Data::Doubles(values)), _) => Cells::Doubles(values),
            (Some(Data::Texts(text)), _) => Cells::Texts(text),
            (Some(Data::Stacks(..) | Data::Other(_)), _) => Cells::Missing(part.rows()),
        })
    }

    fn check_resolved(
        &self,
        ids: &[i32],
        numbered: &Numbered<'a>,
        table: &'static str,
        column: &'static ColumnInfo,
        key: Key,
    ) -> Result<()> {
        let resolves = |id: &i32| *id == NA || numbered.rows.row(*id).is_some();
        match ids.iter().all(resolves) {
            true => Ok(()),
            false => Err(unresolved(table, column, key)),
        }
    }

    fn renamed(
        &self,
        ids: &[i32],
        numbered: &Numbered,
        table: &'static str,
        column: &'static ColumnInfo,
        key: Key,
    ) -> Result<Vec<i32>> {
        let mut new = with_room(ids.len(), WHAT)?;
        let mut by_id: Option<Vec<i32>> = None;
        for (i, &id) in ids.iter().enumerate() {
            if i % ROWS_PER_CHECK == 0 {
                cancel::check(self.stop)?;
            }
            let id = match numbered.new_id(id) {
                Some(new) => new,
                None if id == NA => NA,
                // A `#File` line stands before a sample; where that is gone, before the next.
                None if table == FILES && key == Key::Sample => {
                    if by_id.is_none() {
                        by_id = Some(numbered.sorted()?);
                    }
                    let sorted = by_id.as_deref().unwrap_or_default();
                    let next = sorted.get(sorted.partition_point(|&other| other <= id));
                    next.and_then(|&next| numbered.new_id(next)).unwrap_or(NA)
                }
                None => return Err(unresolved(table, column, key)),
            };
            new.try_push(id, WHAT)?;
        }
        Ok(new)
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
            let kept = kept.map(|(row, _)| row).try_vec(WHAT)?;
            if kept.len() < first.len() {
                self.kept.try_push((name, kept), WHAT)?;
            }
        }
        let kept = self.kept.iter().find(|(table, _)| *table == name);
        let kept = kept.map(|(_, kept)| kept.as_slice());
        sink.start(name, kept.map_or(parts.rows, <[u32]>::len))?;
        for column in &parts.columns {
            cancel::check(self.stop)?;
            self.write_column(&parts, column, kept, sink)?;
        }
        sink.finish()
    }

    fn write_column(
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
            return sink.integers(&[name], &mut |columns| {
                for (slot, id) in columns[0].iter_mut().zip(1..) {
                    *slot = id;
                }
                Ok(())
            });
        }
        if self.close_gaps && (parts.info.name, name) == (SAMPLE_LOCATIONS, DEPTH) {
            return write_depths(parts, sink);
        }
        let cells = parts.parts.iter();
        let cells = cells.map(|&(profile, part)| self.cells(parts.info, column, profile, part));
        let cells = cells.try_vec_of(WHAT)?;
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

/// 1, 2, 3, … for the frames of each sample.
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

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Cells::Integers(values) => values.len(),
            Cells::Ids(ids) => ids.len(),
            Cells::Doubles(values) => values.len(),
            Cells::Texts(text) => text.rows.len(),
            Cells::Missing(rows) => *rows,
        }
    }

    fn integers(&self) -> Option<&[i32]> {
        match self {
            Cells::Integers(values) => Some(values),
            Cells::Ids(ids) => Some(ids),
            _ => None,
        }
    }

    fn doubles(&self) -> Option<&[f64]> {
        match self {
            Cells::Doubles(values) => Some(values),
            _ => None,
        }
    }
}

/// Fills a column with the cells of all parts, or of the rows that are kept.
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
            all = filled(cells.iter().map(Cells::len).sum(), na, WHAT)?;
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
        let picked = kept.iter().map(|&row| out[row as usize]).try_vec(WHAT)?;
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
    let mut all: Vec<i32> = with_room(rows, WHAT)?;
    for part in cells {
        match part {
            Cells::Texts(text) => {
                let numbers = text.distinct.iter().map(|text| texts.intern(text));
                let numbers = numbers.try_vec_of(WHAT)?;
                for &row in &text.rows {
                    let number = numbers.get(row as usize);
                    all.try_push(number.map_or(-1, |&number| number as i32), WHAT)?;
                }
            }
            _ => all.try_fill(all.len() + part.len(), -1, WHAT)?,
        }
    }
    if let Some(kept) = kept {
        all = kept.iter().map(|&row| all[row as usize]).try_vec(WHAT)?;
    }
    let texts = texts.ids().map(|id| texts.get(id)).try_vec(WHAT)?;
    sink.texts(name, &texts, &all)
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

#[cold]
fn unresolved(table: &'static str, column: &'static ColumnInfo, key: Key) -> Error {
    let rule = message!("refers to a row that table `{}` does not have", key.table());
    invalid_column(table, Some(column.name), rule)
}
