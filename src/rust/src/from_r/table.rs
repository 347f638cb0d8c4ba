//! An R table as input of the core: finds columns by name and borrows their data without copying
//! them.

use super::rules;
use crate::altrep;
use crate::argument::{INTSXP, LGLSXP, REALSXP, STRSXP, Sexp, VECSXP, utf8};
use extendr_api::SEXP;
use profile_core::collections::Index;
use profile_core::error::{Error, Invalid, Result};
use profile_core::limits::memory::{TryGrow, TryPut, owned, with_room};
use profile_core::message;
use profile_core::model::Frames;
use profile_core::schema::{Data, Only, TableInput, Text, Type};
use std::borrow::Cow;
use std::collections::HashMap;

/// An element of a list of tables.
pub struct Table<'call> {
    /// The class or type of an element that is not a data frame.
    other: Option<String>,
    names: Vec<&'call str>,
    columns: &'call [Sexp<'call>],
}

impl<'call> Table<'call> {
    pub fn new(element: Sexp<'call>) -> Result<Table<'call>> {
        let mut table = Table {
            other: None,
            names: Vec::new(),
            columns: &[],
        };
        if element.kind() != VECSXP || !element.inherits(c"data.frame") {
            table.other = Some(owned(element.kind_name()?)?);
        } else {
            table.names = element.names()?;
            table.columns = element.elements()?;
        }
        Ok(table)
    }

    /// The column with this name.
    pub fn find(&self, name: &str) -> Option<Sexp<'call>> {
        let at = self.names.iter().position(|other| *other == name)?;
        self.columns.get(at).copied()
    }

    /// The column with this name, if it has no class or dimensions and is as long as the table.
    fn plain(&self, name: &str) -> Option<Sexp<'call>> {
        let column = self.find(name)?;
        (column.is_plain() && column.len() == self.rows()).then_some(column)
    }
}

/// Whether a column has this type, without a class or dimensions.
pub fn is_of_type(column: Sexp, type_: Type) -> bool {
    let kind = match type_ {
        Type::Integer => INTSXP,
        Type::Double => REALSXP,
        Type::Text => STRSXP,
        Type::Logical => LGLSXP,
        Type::Stacks => VECSXP,
    };
    column.kind() == kind && column.is_plain()
}

impl<'call> TableInput<'call> for Table<'call> {
    fn is_not_a_table(&self) -> Option<&str> {
        self.other.as_deref()
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    fn names(&self) -> &[&'call str] {
        &self.names
    }

    fn column(
        &self,
        table: &'static str,
        name: &'static str,
        wanted: Type,
    ) -> Result<Option<Data<'call>>> {
        let Some(column) = self.find(name) else {
            return Ok(None);
        };
        if !is_of_type(column, wanted) {
            let found = owned(column.kind_name()?)?;
            return Ok(Some(Data::Other(found)));
        }
        let place = (table, Some(name));
        Ok(Some(match wanted {
            Type::Integer | Type::Logical => Data::Integers(column.integers()?),
            Type::Double => Data::Doubles(column.doubles()?),
            Type::Text => Data::Texts(text(column, |row, error| {
                not_text(error, place, Some(row + 1))
            })?),
            Type::Stacks => {
                let (rows, stacks) = stacks(column, place)?;
                Data::Stacks(rows, stacks)
            }
        }))
    }

    fn is_counted(&self, name: &str, each: usize) -> Result<bool> {
        let column = self.plain(name);
        column.map_or(Ok(false), |column| rules::is_counted(column, each))
    }

    fn the_only(&self, name: &str) -> Result<Option<Only>> {
        self.plain(name).map_or(Ok(None), rules::the_only)
    }

    fn repeated_texts(&self, name: &str, count: usize) -> Result<Option<Vec<&'call str>>> {
        let column = self.plain(name);
        column.map_or(Ok(None), |column| rules::repeated_texts(column, count))
    }

    fn frames(&self, names: &[&'static str; 3]) -> Option<&'call Frames> {
        let mut columns = [None; 3];
        for (slot, name) in columns.iter_mut().zip(names) {
            let at = self.names.iter().position(|other| other == name)?;
            *slot = self.columns.get(at).filter(|column| column.is_plain());
        }
        let [Some(&first), Some(&second), Some(&third)] = columns else {
            return None;
        };
        altrep::frames_of([first, second, third])
    }
}

/// The error for a string that is not valid text, with the table, column and row.
pub fn not_text(
    error: Error,
    (table, column): (&'static str, Option<&'static str>),
    row: Option<usize>,
) -> Error {
    match error {
        Error::Unsupported(rule) => Error::Invalid(Invalid {
            table: table.into(),
            column: column.map(Cow::Borrowed),
            row,
            rule,
        }),
        other => other,
    }
}

/// The distinct strings of a column. R stores equal strings of one encoding once, so they can be
/// compared by address. `broken` creates the error for a string that is not valid text, in this row.
fn text<'call>(column: Sexp<'call>, broken: impl Fn(usize, Error) -> Error) -> Result<Text<'call>> {
    let strings = column.strings()?;
    let mut out = Text {
        rows: with_room(strings.len())?,
        ..Text::default()
    };
    // The distinct strings and their rows in the order of first occurrence, and an index of these.
    let mut seen: Vec<(SEXP, i32)> = Vec::new();
    let mut index = Index::default();
    // Many columns repeat one string, and columns of sample types repeat a sequence of strings.
    // Therefore the string that followed the last one in the order of first occurrence, and the
    // last one itself, are tried before the index: for 3 million rows of either kind this takes 4
    // instead of 29 ms.
    let mut last = 0;
    for &string in strings {
        let next = if last + 1 < seen.len() { last + 1 } else { 0 };
        let is = |at: usize| seen.get(at).is_some_and(|(address, _)| *address == string);
        last = match [next, last].into_iter().find(|&at| is(at)) {
            Some(at) => at,
            None => {
                let hash = index.hash(string);
                match index.find(hash, |at| is(at as usize)) {
                    Some(at) => at as usize,
                    None => {
                        let text = utf8(string).map_err(|error| broken(out.rows.len(), error))?;
                        let row = match text {
                            None => -1,
                            Some(text) => {
                                out.distinct.try_push(text)?;
                                out.distinct.len() as i32 - 1
                            }
                        };
                        index.insert(hash, seen.len() as u32)?;
                        seen.try_push((string, row))?;
                        seen.len() - 1
                    }
                }
            }
        };
        out.rows.try_push(seen[last].1)?;
    }
    Ok(out)
}

/// The list column of version "1.0": the index of each sample's stack, and the location ids of each
/// distinct stack. Stacks are compared by the address of their tibble.
fn stacks<'call>(
    column: Sexp<'call>,
    (table, name): (&'static str, Option<&'static str>),
) -> Result<(Vec<u32>, Vec<&'call [i32]>)> {
    let mut known: HashMap<Sexp, u32> = HashMap::new();
    let mut stack_of = Vec::new();
    let mut stacks = Vec::new();
    for (row, element) in column.elements()?.iter().enumerate() {
        let stack = match known.get(element) {
            Some(stack) => *stack,
            None => {
                let ids = element.named("location_id")?;
                let Some(ids) = ids.filter(|ids| ids.kind() == INTSXP && ids.is_plain()) else {
                    return Err(Error::Invalid(Invalid {
                        table: table.into(),
                        column: name.map(Cow::Borrowed),
                        row: Some(row + 1),
                        rule: message!("must be a tibble with one integer column, `location_id`"),
                    }));
                };
                stacks.try_push(ids.integers()?)?;
                let stack = stacks.len() as u32 - 1;
                known.try_put(*element, stack)?;
                stack
            }
        };
        stack_of.try_push(stack)?;
    }
    Ok((stack_of, stacks))
}
