//! Tables that are read and written row by row, which most are: each column has functions that get
//! and set its cell.

use super::column::{Access, Column, ColumnInfo};
use super::input::{TableInput, invalid};
use super::reading::Reading;
use super::sink::Sink;
use super::table::{Declared, Table, TableInfo, Version};
use crate::error::Result;
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryGrow, with_room};
use crate::model::{Profile, Strings};
use std::borrow::Cow;

/// A rule about several cells of a row. It returns the column and the rule if the row breaks it.
pub(super) type RowRule<D> = fn(&D, &Strings) -> Result<Option<(&'static str, String)>>;

/// A table that is read and written row by row.
pub struct RowTable<R: 'static + Clone, D: 'static = R> {
    pub(super) info: TableInfo,
    pub(super) columns: &'static [Column<R, D>],
    pub(super) rows: for<'p> fn(&'p Profile) -> Result<Cow<'p, [R]>>,
    /// An empty draft of a row.
    pub(super) blank: fn() -> D,
    pub(super) rules: &'static [RowRule<D>],
    /// Adds rows, which were checked, to the model.
    pub(super) store: fn(&mut Reading, Vec<D>) -> Result<()>,
}

impl<R: Clone, D> Declared for RowTable<R, D> {
    fn info(&self) -> &TableInfo {
        &self.info
    }

    fn columns(&self) -> Box<dyn Iterator<Item = &ColumnInfo> + '_> {
        Box::new(self.columns.iter().map(|column| &column.info))
    }
}

impl<R: Clone, D> RowTable<R, D> {
    /// Writes the table with these rows. An optional table without rows is omitted.
    pub fn write_rows(
        &self,
        profile: &Profile,
        rows: &[R],
        version: Version,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        if rows.is_empty() && !self.info.required() {
            return Ok(());
        }
        let columns = self.columns.iter();
        let given = columns.filter(|column| match version {
            Version::One => column.info.required,
            Version::Two => column.is_given(profile, rows),
        });
        sink.start(self.info.name, rows.len())?;
        for column in given {
            column.write(profile, rows, sink)?;
        }
        sink.finish()
    }

    fn read_rows<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        version: Version,
    ) -> Result<()> {
        let table = self.info.name;
        let mut rows: Vec<D> = with_room(input.rows())?;
        for _ in 0..input.rows() {
            rows.try_push((self.blank)())?;
        }
        for column in self.columns {
            if (version == Version::Two || column.info.required)
                && !matches!(column.access, Access::Key)
            {
                column.read(table, input, &mut rows, reading)?;
            }
        }
        for rule in self.rules {
            for (row, draft) in rows.iter().enumerate() {
                if let Some((column, rule)) = rule(draft, &reading.profile.strings)? {
                    return Err(invalid(table, column, row, rule));
                }
            }
        }
        (self.store)(reading, rows)
    }
}

impl<R: Clone, D> Table for RowTable<R, D> {
    fn write(
        &self,
        profile: &Profile,
        version: Version,
        sink: &mut dyn Sink,
        _: Stop,
    ) -> Result<()> {
        self.write_rows(profile, &(self.rows)(profile)?, version, sink)
    }

    fn read<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        version: Version,
        _: Stop,
    ) -> Result<()> {
        if self.info.about_input {
            return Ok(());
        }
        self.read_rows(input, reading, version)
    }
}
