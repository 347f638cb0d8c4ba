//! Determines which rows of edited tables are still used, and their order.
//!
//! Users may filter and edit tables. Rows that refer to a missing row are removed, then rows that
//! nothing refers to any more; values and frames are sorted by sample. The schema declares which
//! column refers to which table, and through which column the rows of a table are used.
//! User-defined tables are included if they have columns of ids.
//!
//! The result consists of row numbers only. The caller selects these rows from the tables,
//! including any additional columns.

use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, sort_by_key, with_room};
use crate::model::Frames;
use crate::schema::{
    Data, FILES, FRAME_COLUMNS, Ids, Key, NA, TABLES, TableInput, Type, known_frames,
};
use crate::tables::TableList;
use std::borrow::Cow;

/// Tables that are sorted by their samples.
const BY_SAMPLE: [&str; 2] = [SAMPLE_VALUES, SAMPLE_LOCATIONS];
const SAMPLE_VALUES: &str = "sample_values";
const SAMPLE_LOCATIONS: &str = "sample_locations";
/// The first mapping is the program itself, which is always kept.
const MAPPINGS: &str = ".mappings";

/// Rows of some tables, counted from 0, in their new order.
pub type Rows<'a> = Vec<(&'a str, Vec<u32>)>;

/// The used rows in their order, for each table that changes.
pub fn rows_in_use<'a>(list: &TableList<'_, 'a>, stop: Stop) -> Result<Rows<'a>> {
    let mut tables = Tables::new(list, stop)?;
    tables.drop_orphans(|_| true)?;
    tables.drop_unused()?;
    // Tables with additional information about rows that are now unused.
    tables.drop_orphans(|name| name.starts_with('.'))?;
    tables.sort()?;
    tables.rows()
}

struct Tables<'j, 't, 'a> {
    all: Vec<Rest<'t, 'a>>,
    /// The sample ids, before any row was dropped.
    samples: &'a [i32],
    stop: Stop<'j>,
}

/// A table and its remaining rows.
struct Rest<'t, 'a> {
    name: &'a str,
    table: &'t dyn TableInput<'a>,
    /// `None` if all rows remain in their original order.
    rows: Option<Vec<u32>>,
}

impl<'a> Rest<'_, 'a> {
    /// A column of ids; empty if it is missing.
    fn ids(&self, column: &'static str) -> Result<&'a [i32]> {
        // The name of the table is used only in errors about text.
        match self.table.column("", column, Type::Integer)? {
            Some(Data::Integers(ids)) => Ok(ids),
            _ => Ok(&[]),
        }
    }

    /// The columns that refer to other tables.
    fn references(&self) -> impl Iterator<Item = (&'static str, Key)> {
        let own = self.name;
        let names = self.table.names().iter();
        names.filter_map(move |name| {
            let (name, key) = Key::column(name)?;
            (key.table() != own).then_some((name, key))
        })
    }

    /// The values of a column in the remaining rows.
    fn of_rows<'c>(&self, column: &'c [i32]) -> Result<Cow<'c, [i32]>> {
        let Some(rows) = &self.rows else {
            return Ok(Cow::Borrowed(column));
        };
        let cells = rows.iter().filter_map(|&row| column.get(row as usize));
        Ok(Cow::Owned(cells.copied().try_vec()?))
    }

    /// Keeps the rows for which `keep` is true. It has one element for each remaining row.
    fn keep(&mut self, keep: &[bool]) -> Result<()> {
        if keep.iter().all(|&keep| keep) {
            return Ok(());
        }
        let rows = match self.rows.take() {
            Some(rows) => rows,
            None => (0..keep.len() as u32).try_vec()?,
        };
        let rows = rows.into_iter().zip(keep).filter(|(_, keep)| **keep);
        self.rows = Some(rows.map(|(row, _)| row).try_vec()?);
        Ok(())
    }
}

impl<'j, 't, 'a> Tables<'j, 't, 'a> {
    fn new(list: &TableList<'t, 'a>, stop: Stop<'j>) -> Result<Tables<'j, 't, 'a>> {
        let all = list.iter().map(|&(name, table)| Rest {
            name,
            table,
            rows: None,
        });
        let mut tables = Tables {
            all: all.try_vec()?,
            samples: &[],
            stop,
        };
        let samples = tables.position(Key::Sample.table());
        if let Some(samples) = samples {
            tables.samples = tables.all[samples].ids(Key::Sample.name())?;
        }
        Ok(tables)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|rest| rest.name == name)
    }

    /// The tables in an order in which each table follows those that it refers to.
    fn parents_first(&self) -> Result<Vec<usize>> {
        let parents = Key::ALL.iter().filter_map(|key| self.position(key.table()));
        let mut order = parents.try_vec()?;
        for table in 0..self.all.len() {
            if !order.contains(&table) {
                order.try_push(table)?;
            }
        }
        Ok(order)
    }

    /// The remaining rows of the table of a key, indexed by their ids.
    fn index(&self, key: Key) -> Result<Ids> {
        let ids = match self.position(key.table()) {
            Some(table) => {
                let rest = &self.all[table];
                rest.of_rows(rest.ids(key.name())?)?
            }
            None => Cow::Borrowed(&[] as &[i32]),
        };
        Ids::new(key.table(), key.name(), &ids)
    }

    /// The frames from which `sample_locations` was created, if the table is unchanged and no row
    /// that it refers to was removed.
    fn frames(&self) -> Result<Option<&'a Frames>> {
        let rest = self
            .position(SAMPLE_LOCATIONS)
            .map(|table| &self.all[table]);
        let Some(rest) = rest.filter(|rest| rest.rows.is_none()) else {
            return Ok(None);
        };
        // Errors are reported when the table is read.
        let [samples, locations] = [Key::Sample, Key::Location].map(|key| self.index(key).ok());
        known_frames(
            rest.table,
            [samples.as_ref(), locations.as_ref()],
            self.stop,
        )
    }

    /// Drops rows with unresolved references, parents first.
    fn drop_orphans(&mut self, which: impl Fn(&str) -> bool) -> Result<()> {
        for table in self.parents_first()? {
            if !which(self.all[table].name) {
                continue;
            }
            let references = self.all[table].references().try_vec()?;
            let is_known = self.all[table].name == SAMPLE_LOCATIONS && self.frames()?.is_some();
            for (column, key) in references {
                cancel::check(self.stop)?;
                if is_known && FRAME_COLUMNS.contains(&column) {
                    continue;
                }
                let index = self.index(key)?;
                let rest = &self.all[table];
                let ids = rest.of_rows(rest.ids(column)?)?;
                let ids = if rest.name == FILES && key == Key::Sample {
                    self.next_samples(&ids)?
                } else {
                    ids
                };
                let resolves = |&id: &i32| id == NA || index.row(id).is_some();
                let keep = ids.iter().map(resolves).try_vec()?;
                self.all[table].keep(&keep)?;
            }
        }
        Ok(())
    }

    /// A `#File` line precedes a sample. If that sample was removed, the line precedes the next
    /// one.
    fn next_samples<'c>(&self, ids: &[i32]) -> Result<Cow<'c, [i32]>> {
        let mut ids = copied(ids)?;
        let mut sorted = copied(self.samples)?;
        sorted.sort_unstable();
        for id in ids.iter_mut().filter(|id| **id != NA) {
            let next = sorted.partition_point(|other| other < id);
            *id = sorted.get(next).copied().unwrap_or(NA);
        }
        Ok(Cow::Owned(ids))
    }

    /// Drops rows that nothing refers to, children first.
    fn drop_unused(&mut self) -> Result<()> {
        for key in Key::ALL.into_iter().rev() {
            let info = TABLES.iter().map(|table| table.info());
            let used_by = info.filter(|info| info.name == key.table());
            for (user, column) in used_by.filter_map(|info| info.used_by) {
                cancel::check(self.stop)?;
                let index = self.index(key)?;
                let Some(parent) = self.position(key.table()) else {
                    continue;
                };
                let rest = &self.all[parent];
                let count = match &rest.rows {
                    Some(rows) => rows.len(),
                    None => rest.table.rows(),
                };
                let mut used = filled(count, false)?;
                if let (MAPPINGS, Some(first)) = (rest.name, used.first_mut()) {
                    *first = true;
                }
                let known = if user == SAMPLE_LOCATIONS {
                    self.frames()?
                } else {
                    None
                };
                if let Some(frames) = known {
                    // The ids of frames are the original row numbers, counted from 1.
                    for (id, &is_used) in (1..).zip(frames.used(self.stop)?) {
                        if let Some(row) = index.row(id).filter(|_| is_used) {
                            used[row] = true;
                        }
                    }
                } else if let Some(user) = self.position(user) {
                    let user = &self.all[user];
                    for &id in user.of_rows(user.ids(column)?)?.iter() {
                        if let Some(row) = index.row(id) {
                            used[row] = true;
                        }
                    }
                }
                self.all[parent].keep(&used)?;
            }
        }
        Ok(())
    }

    /// Sorts values and frames by sample, and frames also by depth.
    fn sort(&mut self) -> Result<()> {
        for name in BY_SAMPLE {
            let Some(table) = self.position(name) else {
                continue;
            };
            cancel::check(self.stop)?;
            if name == SAMPLE_LOCATIONS && self.frames()?.is_some() {
                continue;
            }
            let index = self.index(Key::Sample)?;
            let rest = &self.all[table];
            let ids = rest.of_rows(rest.ids(Key::Sample.name())?)?;
            let depths = if name == SAMPLE_LOCATIONS {
                rest.of_rows(rest.ids("depth")?)?
            } else {
                Cow::Borrowed(&[] as &[i32])
            };
            // Rows without a sample, which the subsequent check reports, come last.
            let sample = |id: i32| index.row(id).unwrap_or(usize::MAX);
            let by_depth = depths.is_empty() || is_numbered(&ids, &depths);
            if by_depth && ids.is_sorted_by_key(|&id| sample(id)) {
                continue;
            }
            let mut order = (0..ids.len()).try_vec()?;
            if by_depth {
                sort_by_key(&mut order, |&i| sample(ids[i]))?
            } else {
                let depth = |i: usize| match depths[i] {
                    NA => i64::MAX,
                    depth => i64::from(depth),
                };
                sort_by_key(&mut order, |&i| (sample(ids[i]), depth(i)))?;
            }
            let row = |i: usize| match &rest.rows {
                Some(rows) => rows[i],
                None => i as u32,
            };
            let rows = order.into_iter().map(row).try_vec()?;
            self.all[table].rows = Some(rows);
        }
        Ok(())
    }

    fn rows(self) -> Result<Rows<'a>> {
        let mut changed = with_room(self.all.len())?;
        for rest in self.all {
            if let Some(rows) = rest.rows {
                changed.try_push((rest.name, rows))?;
            }
        }
        Ok(changed)
    }
}

/// Whether the frames of each sample are numbered 1, 2, 3, ….
fn is_numbered(ids: &[i32], depths: &[i32]) -> bool {
    let mut rest = depths;
    ids.chunk_by(|a, b| a == b).all(|frames| {
        let (own, left) = rest.split_at(frames.len().min(rest.len()));
        rest = left;
        own.iter().zip(1..).all(|(&depth, number)| depth == number)
    })
}
