//! Tables as input: the trait by which the core borrows their columns, and the checks of whole
//! columns.

use super::column::{ColumnInfo, Type};
use crate::error::{Error, Invalid, Result};
use crate::message;
use crate::model::Frames;
use std::borrow::Cow;

/// R's `NA_integer_`, also of logical columns.
pub const NA: i32 = i32::MIN;

/// A table that was passed to the core.
pub trait TableInput<'a> {
    /// The class or type of the input, if it is not a table.
    fn is_not_a_table(&self) -> Option<&str>;

    fn rows(&self) -> usize;

    fn names(&self) -> &[&'a str];

    /// The column with this name; `None` if it is missing. A column that is not of the type `wanted` is
    /// [`Data::Other`]. `table` is used in errors.
    fn column(
        &self,
        table: &'static str,
        name: &'static str,
        wanted: Type,
    ) -> Result<Option<Data<'a>>>;

    /// Whether a column of integers is 1, 2, 3, …, each in `each` rows. Returns `false` if this is unknown without the
    /// data of the column.
    fn is_counted(&self, _name: &str, _each: usize) -> Result<bool> {
        Ok(false)
    }

    /// The number that all rows of a column contain, if it is known without the data of the column.
    fn the_only(&self, _name: &str) -> Result<Option<Only>> {
        Ok(None)
    }

    /// The texts of the first `count` rows of a column, if all other rows repeat these texts in this
    /// order, and this is known without the data of the column.
    fn repeated_texts(&self, _name: &str, _count: usize) -> Result<Option<Vec<&'a str>>> {
        Ok(None)
    }

    /// The frames from which these columns were computed, if they have not changed since they were
    /// passed to a [`Sink`](super::Sink).
    fn frames(&self, _names: &[&'static str; 3]) -> Option<&'a Frames> {
        None
    }
}

/// The number that all rows of a column contain. The column has at least one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Only {
    Integer(i32),
    Double(f64),
}

/// The data of a column.
#[derive(Debug, Clone)]
pub enum Data<'a> {
    /// Logical values are 0, 1 or [`NA`].
    Integers(&'a [i32]),
    /// NaN is NA.
    Doubles(&'a [f64]),
    Texts(Text<'a>),
    /// Version "1.0" only: the index of each row's stack, and the location ids of each stack.
    Stacks(Vec<u32>, Vec<&'a [i32]>),
    /// A column that is not of the wanted type; the field is its type.
    Other(String),
}

/// A column of text: distinct texts, and for each row an index into them.
#[derive(Debug, Default, Clone)]
pub struct Text<'a> {
    /// A text may occur twice if it had different encodings.
    pub distinct: Vec<&'a str>,
    /// Indices into `distinct`; -1 is NA.
    pub rows: Vec<i32>,
}

impl<'a> Text<'a> {
    pub fn get(&self, row: usize) -> Option<&'a str> {
        let index = usize::try_from(*self.rows.get(row)?).ok()?;
        self.distinct.get(index).copied()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The first row with this index; -1 finds the first NA.
    pub(super) fn first_row(&self, text: i32) -> usize {
        let found = self.rows.iter().position(|&row| row == text);
        found.unwrap_or(0)
    }
}

impl Data<'_> {
    fn len(&self) -> usize {
        match self {
            Data::Integers(values) => values.len(),
            Data::Doubles(values) => values.len(),
            Data::Texts(text) => text.len(),
            Data::Stacks(rows, _) => rows.len(),
            Data::Other(_) => 0,
        }
    }
}

/// The error for a cell that breaks a rule; `row` is counted from 0.
#[cold]
pub fn invalid(
    table: &'static str,
    column: &'static str,
    row: usize,
    rule: impl Into<String>,
) -> Error {
    Error::Invalid(Invalid {
        table: table.into(),
        column: Some(column.into()),
        row: Some(row + 1),
        rule: rule.into(),
    })
}

/// The error for a table, or one of its columns, that breaks a rule.
#[cold]
pub fn invalid_column(
    table: &'static str,
    column: Option<&'static str>,
    rule: impl Into<String>,
) -> Error {
    Error::Invalid(Invalid {
        table: table.into(),
        column: column.map(Cow::Borrowed),
        row: None,
        rule: rule.into(),
    })
}

/// The data of a column, after a check of its type and length. `None` if it is missing and not
/// required.
pub fn find<'a>(
    input: &dyn TableInput<'a>,
    table: &'static str,
    column: &ColumnInfo,
) -> Result<Option<Data<'a>>> {
    let is_needed = |other: &str| input.names().contains(&other);
    match input.column(table, column.name, column.type_)? {
        None if column.required || column.needed_by.is_some_and(is_needed) => {
            Err(invalid_column(table, Some(column.name), "is missing"))
        }
        None => Ok(None),
        Some(Data::Other(found)) => {
            let rule = message!("must be {}, not {found}", column.type_.name());
            Err(invalid_column(table, Some(column.name), rule))
        }
        Some(data) if data.len() != input.rows() => {
            let (has, rows) = (data.len(), input.rows());
            let rule = message!("has {has} rows, but the first column has {rows}");
            Err(invalid_column(table, Some(column.name), rule))
        }
        Some(data) => Ok(Some(data)),
    }
}

/// The data as integers; `None` if the column is missing.
pub fn integers<'a>(data: Option<Data<'a>>) -> Option<&'a [i32]> {
    match data {
        Some(Data::Integers(values)) => Some(values),
        _ => None,
    }
}

pub fn doubles<'a>(data: Option<Data<'a>>) -> Option<&'a [f64]> {
    match data {
        Some(Data::Doubles(values)) => Some(values),
        _ => None,
    }
}

pub fn texts<'a>(data: Option<Data<'a>>) -> Option<Text<'a>> {
    match data {
        Some(Data::Texts(text)) => Some(text),
        _ => None,
    }
}
