//! Checks that apply to all tables, user-defined ones included, whatever their columns mean: lists and data frames of R
//! may have names that are not text or occur twice, and columns of any kind and length.
//!
//! Columns that have a class or dimensions are checked and converted by `normalize_tables()` in R/tables.R before.

use crate::argument::{SEXPTYPE, STRSXP, Sexp, VECSXP, bytes_of, is_bytes, utf8};
use profile_core::error::{Error, Invalid, Result};
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use profile_core::text::shown_bytes;

const VECTORS: [SEXPTYPE; 8] = [
    SEXPTYPE::LGLSXP,
    SEXPTYPE::INTSXP,
    SEXPTYPE::REALSXP,
    SEXPTYPE::CPLXSXP,
    STRSXP,
    VECSXP,
    SEXPTYPE::RAWSXP,
    SEXPTYPE::EXPRSXP,
];

/// Checks that all names are unique and valid text, all columns are vectors of the length of their table, and the
/// strings of columns that the core does not read are text.
pub fn check(x: Sexp) -> Result<()> {
    let names = match names(x)? {
        Ok(names) => names,
        Err(Broken::NotText(name)) => return Err(not_text(&name, "table", &name)),
        Err(Broken::Duplicate(name)) => {
            return Err(invalid(name, None, None, message!("duplicate table name")));
        }
    };
    for (name, &element) in names.into_iter().zip(x.elements()?) {
        if element.inherits(c"data.frame") {
            check_table(name, element)?;
        }
    }
    Ok(())
}

fn check_table(table: &str, rows: Sexp) -> Result<()> {
    let names = match names(rows)? {
        Ok(names) => names,
        Err(Broken::NotText(name)) => return Err(not_text(table, "column", &name)),
        Err(Broken::Duplicate(column)) => {
            let rule = message!("duplicate column name");
            return Err(invalid(table, Some(column), None, rule));
        }
    };
    let count = rows.row_names()?;
    for (name, &column) in names.into_iter().zip(rows.elements()?) {
        if column.is_plain() && !VECTORS.contains(&column.kind()) {
            return Err(invalid(
                table,
                Some(name),
                None,
                message!("is not a vector"),
            ));
        }
        if column.is_plain() && column.len() != count {
            let rule = message!("has {} rows, but the table has {count}", column.len());
            return Err(invalid(table, Some(name), None, rule));
        }
        if name.starts_with('.') || table.starts_with('.') {
            let broken = column.strings()?.iter().position(|&text| is_bytes(text));
            if let Some(row) = broken {
                let rule = message!("the string is marked as bytes, not as text");
                return Err(invalid(table, Some(name), Some(row + 1), rule));
            }
        }
    }
    Ok(())
}

/// What is wrong with the names of a list: the first name that is not valid text, else the first that occurs twice.
enum Broken<'call> {
    NotText(String),
    Duplicate(&'call str),
}

/// The names of the elements.
fn names<'call>(list: Sexp<'call>) -> Result<std::result::Result<Vec<&'call str>, Broken<'call>>> {
    let mut names = Vec::new();
    let mut twice = None;
    for &string in list.name_strings()? {
        match utf8(string) {
            Ok(Some(name)) => {
                if names.contains(&name) {
                    twice = twice.or(Some(name));
                }
                names.try_push(name)?;
            }
            Ok(None) | Err(Error::Unsupported(_)) => {
                return Ok(Err(Broken::NotText(shown_bytes(bytes_of(string))?)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(twice.map_or(Ok(names), |name| Err(Broken::Duplicate(name))))
}

fn not_text(table: &str, of: &str, name: &str) -> Error {
    let rule = message!("the name of one of its {of}s is not valid text: {name}");
    invalid(table, None, None, rule)
}

/// The error for a table or column that may be user-defined.
fn invalid(table: &str, column: Option<&str>, row: Option<usize>, rule: String) -> Error {
    let place = owned(table).and_then(|table| {
        let column = column.map(owned).transpose()?;
        Ok((table, column))
    });
    match place {
        Ok((table, column)) => Error::Invalid(Invalid {
            table: table.into(),
            column: column.map(Into::into),
            row,
            rule,
        }),
        Err(error) => error,
    }
}
