//! The traits of all tables, for their columns, writing and reading, and the description of a table.

use super::column::ColumnInfo;
use super::input::TableInput;
use super::reading::Reading;
use super::sink::Sink;
use crate::error::Result;
use crate::limits::cancel::Stop;
use crate::model::Profile;

/// The description of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableInfo {
    pub name: &'static str,
    /// Describes a row.
    pub doc: &'static str,
    /// The primary key; empty if the table has none.
    pub key: &'static [&'static str],
    /// Whether equal rows with equal attributes are merged when profiles are combined. Rows of
    /// other tables are events or runs, which remain distinct even if they are equal.
    pub merged: bool,
    /// The table with the attributes of the rows, which are compared before rows are merged.
    pub attributes: Option<&'static str>,
    /// Whether the table describes the input. Such a table is written, but not read.
    pub about_input: bool,
    /// The table and column that refer to the rows. A row to which they do not refer is unused
    /// and can be removed.
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

/// The version of the tables that are read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Required columns only.
    One,
    Two,
}

/// The declaration of a table and its columns.
pub trait Declared: Sync {
    fn info(&self) -> &TableInfo;

    /// Its columns, in their order.
    fn columns(&self) -> Box<dyn Iterator<Item = &ColumnInfo> + '_>;
}

/// A table that can be written from the model and read into it.
pub trait Table: Declared {
    /// Writes the table to a sink. An optional table without rows is omitted.
    fn write(
        &self,
        profile: &Profile,
        version: Version,
        sink: &mut dyn Sink,
        stop: Stop,
    ) -> Result<()>;

    /// Checks and reads a table. The ids of all tables, and the tables before this one in
    /// [`TABLES`](super::TABLES), have been read.
    fn read<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        version: Version,
        stop: Stop,
    ) -> Result<()>;
}
