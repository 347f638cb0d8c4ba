//! What all tables are and can do: their columns, writing and reading.

use super::column::ColumnInfo;
use super::input::TableInput;
use super::reading::Reading;
use super::sink::Sink;
use crate::error::Result;
use crate::limits::cancel::Stop;
use crate::model::Profile;

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
