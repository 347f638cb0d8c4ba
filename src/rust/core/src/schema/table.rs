//! The entry of a table, and what all tables can do.

use super::{Column, ColumnInfo, Reading, Sink, TableInput};
use crate::error::Result;
use crate::limits::cancel::Stop;
use crate::model::{Profile, Strings};
use std::borrow::Cow;

/// The keys: each is the first column of its table, and a column that is called so holds ids
/// of that table wherever it stands. Tables that others refer to come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Resource,
    Scope,
    Source,
    Sample,
    Function,
    Mapping,
    Location,
}

impl Key {
    pub const ALL: [Key; 7] = [
        Key::Resource,
        Key::Scope,
        Key::Source,
        Key::Sample,
        Key::Function,
        Key::Mapping,
        Key::Location,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Key::Resource => "resource_id",
            Key::Scope => "scope_id",
            Key::Source => "source_id",
            Key::Sample => "sample_id",
            Key::Function => "function_id",
            Key::Mapping => "mapping_id",
            Key::Location => "location_id",
        }
    }

    /// The table whose rows it identifies.
    pub const fn table(self) -> &'static str {
        match self {
            Key::Resource => ".resources",
            Key::Scope => ".scopes",
            Key::Source => "sources",
            Key::Sample => "samples",
            Key::Function => "functions",
            Key::Mapping => ".mappings",
            Key::Location => "locations",
        }
    }

    /// Beside the columns of their own, tables that each profile has can refer to others with
    /// a leading dot only.
    pub fn of_column(name: &str) -> Option<Key> {
        let key = match name {
            ".mapping_id" | ".scope_id" => &name[1..],
            _ => name,
        };
        Key::ALL.into_iter().find(|k| k.name() == key)
    }

    /// The same, with the name of the column.
    pub fn column(name: &str) -> Option<(&'static str, Key)> {
        let key = Key::of_column(name)?;
        let name = match name {
            ".mapping_id" => ".mapping_id",
            ".scope_id" => ".scope_id",
            _ => key.name(),
        };
        Some((name, key))
    }
}

/// What is known of a table without its rows.
#[derive(Debug, Clone, Copy)]
pub struct TableInfo {
    pub name: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// The columns that tell rows apart; none where rows have an order only.
    pub key: &'static [&'static str],
    /// Whether rows that are equal, with equal attributes, are one thing. The others are of
    /// events: what is recorded twice is there twice.
    pub merged: bool,
    /// The table of attributes that rows have beyond their columns, where those matter for
    /// that.
    pub attributes: Option<&'static str>,
    /// Whether it is about the input that was read: such a table is not taken back.
    pub about_input: bool,
    /// The table and column without which a row is of no use, where there is one.
    pub used_by: Option<(&'static str, &'static str)>,
}

impl TableInfo {
    pub const fn new(name: &'static str, doc: &'static str) -> TableInfo {
        TableInfo {
            name,
            doc,
            key: &[],
            merged: false,
            attributes: None,
            about_input: false,
            used_by: None,
        }
    }

    /// Whether each profile has the table.
    pub fn required(&self) -> bool {
        !self.name.starts_with('.')
    }
}

/// Which columns and rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Required columns only.
    One,
    Two,
}

/// A table and its columns, as they are documented and checked.
pub trait Declared: Sync {
    fn info(&self) -> &TableInfo;

    /// Its columns, in their order.
    fn columns(&self) -> Box<dyn Iterator<Item = &ColumnInfo> + '_>;
}

/// A table that is in the model.
pub trait Table: Declared {
    /// Gives the table to a sink. One that need not be there is given where it has rows.
    fn write(
        &self,
        profile: &Profile,
        version: Version,
        sink: &mut dyn Sink,
        stop: Stop,
    ) -> Result<()>;

    /// Checks and takes in a table. All ids are known by then, and so are the rows of tables
    /// that stand before this one.
    fn read<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        version: Version,
        stop: Stop,
    ) -> Result<()>;
}

/// A rule that is about several cells of a row: where it is broken, which column and how.
pub(super) type RowRule<D> = fn(&D, &Strings) -> Result<Option<(&'static str, String)>>;

/// A table of rows, of which each column says how to get and set its cell.
pub struct RowTable<R: 'static + Clone, D: 'static = R> {
    pub(super) info: TableInfo,
    pub(super) columns: &'static [Column<R, D>],
    pub(super) rows: for<'p> fn(&'p Profile) -> Result<Cow<'p, [R]>>,
    /// A row of which nothing is known.
    pub(super) blank: fn() -> D,
    pub(super) rules: &'static [RowRule<D>],
    /// Takes rows that were checked into the model.
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
