//! Quick checks of the tables of a profile before the core reads them. Most profiles are unchanged
//! results of this package; recognising this here takes a hundredth of the time that the checks and
//! conversions in R take.

use super::table::is_of_type;
use super::tables;
use crate::argument::{
    INTSXP, LGLSXP, RAWSXP, REALSXP, SEXPTYPE, STRSXP, Sexp, VECSXP, is_bytes, utf8,
};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::schema::{TABLES, TableInput, table};

const WHAT: &str = "the names of columns";
const TIBBLE: [&str; 3] = ["tbl_df", "tbl", "data.frame"];
const VECTORS: [SEXPTYPE; 6] = [LGLSXP, INTSXP, REALSXP, STRSXP, VECSXP, RAWSXP];

/// Whether all names are unique and valid text, all columns have no class and the length of their
/// tables, and the strings of columns that the core does not read are text.
pub fn is_plain(x: Sexp) -> Result<bool> {
    let Some(names) = unique_names(x)? else {
        return Ok(false);
    };
    for (name, &element) in names.into_iter().zip(x.elements()?) {
        if element.inherits(c"data.frame") && !is_plain_table(name, element)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_plain_table(table: &str, rows: Sexp) -> Result<bool> {
    let Some(names) = unique_names(rows)? else {
        return Ok(false);
    };
    let count = rows.row_names()?;
    for (name, &column) in names.into_iter().zip(rows.elements()?) {
        let is_vector = VECTORS.contains(&column.kind()) && column.is_plain();
        if !is_vector || column.len() != count {
            return Ok(false);
        }
        if (name.starts_with('.') || table.starts_with('.')) && !has_text(column)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The names of the elements; `None` unless they are unique and valid text.
fn unique_names<'call>(list: Sexp<'call>) -> Result<Option<Vec<&'call str>>> {
    let strings = list.name_strings()?;
    if strings.len() != list.elements()?.len() {
        return Ok(None);
    }
    let mut names = Vec::new();
    for &string in strings {
        match utf8(string) {
            Ok(Some(name)) if !names.contains(&name) => names.try_push(name, WHAT)?,
            Ok(_) | Err(Error::Unsupported(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(names))
}

/// Whether no string is marked as bytes.
fn has_text(column: Sexp) -> Result<bool> {
    Ok(!column.strings()?.iter().any(|&string| is_bytes(string)))
}

/// Whether the tables of version "2.0" are tibbles with all required columns, and the columns of
/// the schema have the declared types.
pub fn has_types(x: Sexp) -> Result<bool> {
    let list = tables(x)?;
    for declared in TABLES {
        let info = declared.info();
        let Some(at) = list.iter().position(|(name, _)| *name == info.name) else {
            if info.required() {
                return Ok(false);
            }
            continue;
        };
        let (_, rows) = &list[at];
        if x.elements()?[at].classes()? != TIBBLE {
            return Ok(false);
        }
        for column in declared.columns() {
            let is_right = match rows.find(column.name) {
                Some(found) => is_of_type(found, column.type_),
                None => !(info.required() && column.required),
            };
            if !is_right {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The columns that are not in the schema, by table, in the order of their first occurrence in any
/// of the profiles. A table that is not in the schema is included even if it has no columns.
pub fn own_columns<'call>(profiles: &[Sexp<'call>]) -> Result<Vec<(&'call str, Vec<&'call str>)>> {
    let mut own: Vec<(&str, Vec<&str>)> = Vec::new();
    for &x in profiles {
        for (name, rows) in tables(x)? {
            let known = table(name);
            let is_known = |column: &str| {
                let known = known.iter().flat_map(|table| table.columns());
                known.into_iter().any(|known| known.name == column)
            };
            let mut columns = rows.names().iter().filter(|column| !is_known(column));
            let first = columns.next();
            if first.is_none() && known.is_some() {
                continue;
            }
            let at = match own.iter().position(|(other, _)| *other == name) {
                Some(at) => at,
                None => {
                    own.try_push((name, Vec::new()), WHAT)?;
                    own.len() - 1
                }
            };
            for column in first.into_iter().chain(columns) {
                if !own[at].1.contains(column) {
                    own[at].1.try_push(column, WHAT)?;
                }
            }
        }
    }
    Ok(own)
}
