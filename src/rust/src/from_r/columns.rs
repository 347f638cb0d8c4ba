//! Tables of R as columns that are there and of their type.

use crate::argument::{INTSXP, LGLSXP, REALSXP, STRSXP, Sexp, VECSXP, utf8};
use extendr_api::SEXP;
use profile_core::error::{Error, Invalid, Result};
use profile_core::limits::memory::{TryCollect, TryGrow, TryPut, with_room};
use profile_core::message;
use profile_core::tables::{Kind, Table, Text};
use std::borrow::Cow;
use std::collections::HashMap;

const WHAT: &str = "a column of strings";

/// A list and the names of its elements.
pub struct Named<'call> {
    pub elements: Vec<(&'call str, Sexp<'call>)>,
}

impl<'call> Named<'call> {
    pub fn new(list: Sexp<'call>) -> Result<Named<'call>> {
        let elements = list
            .names()?
            .into_iter()
            .zip(list.elements()?.iter().copied());
        let elements = elements.try_vec("names")?;
        Ok(Named { elements })
    }

    /// A list of tables has those of its version, and any with a leading dot.
    pub fn check_names(&self, schema: &[Table]) -> Result<()> {
        for (name, _) in &self.elements {
            if !name.starts_with('.') && schema.iter().all(|table| table.name != *name) {
                return Err(wrong(
                    message!("{name}"),
                    None,
                    "it is not part of this version; further tables need a leading dot",
                ));
            }
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<Sexp<'call>> {
        let found = self.elements.iter().find(|(n, _)| *n == name);
        found.map(|(_, element)| *element)
    }
}

/// The columns of one table, there and of the right type.
pub struct Columns<'call> {
    table: &'static str,
    columns: Named<'call>,
    rows: usize,
}

pub fn wrong(
    table: impl Into<Cow<'static, str>>,
    column: Option<&'static str>,
    rule: impl Into<String>,
) -> Error {
    Error::Invalid(Invalid {
        table: table.into(),
        column,
        row: None,
        rule: rule.into(),
    })
}

/// Where the string stands that is no text.
pub fn no_text(
    error: Error,
    table: &'static str,
    column: Option<&'static str>,
    row: Option<usize>,
) -> Error {
    match error {
        Error::Unsupported(rule) => Error::Invalid(Invalid {
            table: table.into(),
            column,
            row,
            rule,
        }),
        other => other,
    }
}

impl<'call> Columns<'call> {
    /// A table of the schema: all its columns and no other, but for those with a
    /// leading dot.
    pub fn required(all: &Named<'call>, schema: &Table) -> Result<Columns<'call>> {
        let found = all
            .get(schema.name)
            .ok_or_else(|| wrong(schema.name, None, "it is missing"))?;
        let columns = Columns::of(schema.name, found)?;
        for column in schema.columns {
            columns.check(column.name, column.kind)?;
        }
        for (name, _) in &columns.columns.elements {
            let known = schema.columns.iter().any(|c| c.name == *name);
            if !known && !name.starts_with('.') {
                return Err(wrong(
                    schema.name,
                    None,
                    message!(
                        "the column `{name}` is not part of it; further columns need a leading dot"
                    ),
                ));
            }
        }
        Ok(columns)
    }

    /// A table with a leading dot, where it is there.
    pub fn optional(all: &Named<'call>, schema: &Table) -> Result<Option<Columns<'call>>> {
        let Some(found) = all.get(schema.name) else {
            return Ok(None);
        };
        let columns = Columns::of(schema.name, found)?;
        for column in schema.columns {
            columns.check(column.name, column.kind)?;
        }
        Ok(Some(columns))
    }

    pub fn of(table: &'static str, found: Sexp<'call>) -> Result<Columns<'call>> {
        if found.kind() != VECSXP || !found.inherits(c"data.frame") {
            let rule = message!("must be a data frame, not {}", found.kind_name()?);
            return Err(wrong(table, None, rule));
        }
        let columns = Named::new(found)?;
        let rows = columns.elements.first().map_or(0, |(_, c)| c.len());
        Ok(Columns {
            table,
            columns,
            rows,
        })
    }

    pub fn check(&self, name: &'static str, kind: Kind) -> Result<()> {
        let column = self
            .columns
            .get(name)
            .ok_or_else(|| wrong(self.table, Some(name), "it is missing"))?;
        let wanted = match kind {
            Kind::Integer => INTSXP,
            Kind::Double => REALSXP,
            Kind::Text => STRSXP,
            Kind::List => VECSXP,
            Kind::Logical => LGLSXP,
        };
        if column.kind() != wanted || !column.is_plain() {
            return Err(wrong(
                self.table,
                Some(name),
                message!("must be {}, not {}", kind.name(), column.kind_name()?),
            ));
        }
        if column.len() != self.rows {
            return Err(wrong(
                self.table,
                Some(name),
                message!(
                    "has {} rows where the first column has {}",
                    column.len(),
                    self.rows
                ),
            ));
        }
        Ok(())
    }

    pub fn column(&self, name: &'static str) -> Result<Sexp<'call>> {
        self.columns
            .get(name)
            .ok_or_else(|| wrong(self.table, Some(name), "it is missing"))
    }

    pub fn integers(&self, name: &'static str) -> Result<&'call [i32]> {
        self.column(name)?.integers()
    }

    pub fn doubles(&self, name: &'static str) -> Result<&'call [f64]> {
        self.column(name)?.doubles()
    }

    pub fn text(&self, name: &'static str) -> Result<Text<'call>> {
        text(self.column(name)?, |row, error| {
            no_text(error, self.table, Some(name), Some(row + 1))
        })
    }

    /// A column with a leading dot: of its type where it is there.
    pub fn has(&self, name: &'static str, kind: Kind) -> Result<bool> {
        match self.columns.get(name) {
            None => Ok(false),
            Some(_) => self.check(name, kind).map(|()| true),
        }
    }

    pub fn optional_integers(&self, name: &'static str) -> Result<Option<&'call [i32]>> {
        Ok(match self.has(name, Kind::Integer)? {
            true => Some(self.integers(name)?),
            false => None,
        })
    }

    pub fn optional_doubles(&self, name: &'static str) -> Result<Option<&'call [f64]>> {
        Ok(match self.has(name, Kind::Double)? {
            true => Some(self.doubles(name)?),
            false => None,
        })
    }

    pub fn optional_logicals(&self, name: &'static str) -> Result<Option<&'call [i32]>> {
        Ok(match self.has(name, Kind::Logical)? {
            true => Some(self.integers(name)?),
            false => None,
        })
    }

    pub fn optional_text(&self, name: &'static str) -> Result<Option<Text<'call>>> {
        Ok(match self.has(name, Kind::Text)? {
            true => Some(self.text(name)?),
            false => None,
        })
    }
}

/// The distinct strings of a column. R holds equal strings once, so they are
/// told apart by their address; two encodings of one text are merged. `broken` says in
/// which row a string is that is no text.
fn text<'call>(column: Sexp<'call>, broken: impl Fn(usize, Error) -> Error) -> Result<Text<'call>> {
    let strings = column.strings()?;
    let mut out = Text {
        rows: with_room(strings.len(), WHAT)?,
        ..Text::default()
    };
    let mut by_address = HashMap::new();
    let mut by_text: HashMap<&str, i32> = HashMap::new();
    // A column of sample types takes turns between a few strings, others repeat
    // one: the string after the last one, in the order of first sight, or the last
    // one again, is most often right.
    let mut seen: Vec<(SEXP, i32)> = Vec::new();
    let mut last = 0;
    for &string in strings {
        let next = if last + 1 < seen.len() { last + 1 } else { 0 };
        if let Some(at) = [next, last]
            .into_iter()
            .find(|&at| seen.get(at).is_some_and(|(address, _)| *address == string))
        {
            out.rows.try_push(seen[at].1, WHAT)?;
            last = at;
            continue;
        }
        let row = match by_address.get(&string) {
            Some(row) => *row,
            None => {
                let row = match utf8(string).map_err(|error| broken(out.rows.len(), error))? {
                    None => -1,
                    Some(text) => match by_text.get(text) {
                        Some(row) => *row,
                        None => {
                            out.distinct.try_push(text, WHAT)?;
                            let row = out.distinct.len() as i32 - 1;
                            by_text.try_put(text, row, WHAT)?;
                            row
                        }
                    },
                };
                by_address.try_put(string, row, WHAT)?;
                last = seen.len();
                seen.try_push((string, row), WHAT)?;
                row
            }
        };
        out.rows.try_push(row, WHAT)?;
    }
    Ok(out)
}
