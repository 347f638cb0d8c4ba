//! The rules that both versions share.

use super::ids::Ids;
use super::{Functions, Locations, Meta, NA, Text};
use crate::error::{Error, Invalid, Result};
use crate::message;

pub fn invalid(
    table: &'static str,
    column: &'static str,
    row: usize,
    rule: impl Into<String>,
) -> Error {
    Error::Invalid(Invalid {
        table: table.into(),
        column: Some(column),
        row: Some(row + 1),
        rule: rule.into(),
    })
}

/// A row of `table` refers to an id that `parent` does not have.
pub fn dangling(
    table: &'static str,
    column: &'static str,
    row: usize,
    id: i32,
    parent: &str,
) -> Error {
    let rule = if id == NA {
        message!("must not be NA")
    } else {
        message!("{id} is not in table `{parent}`")
    };
    invalid(table, column, row, rule)
}

/// One row `version`, and no key twice.
pub fn meta(meta: &Meta, version: &str) -> Result<()> {
    let mut found = None;
    for row in 0..meta.key.len() {
        match meta.key.get(row) {
            None => return Err(invalid("meta", "key", row, "must not be NA")),
            Some("version") if found.is_some() => {
                return Err(invalid("meta", "key", row, "`version` is there twice"));
            }
            Some("version") => found = Some(row),
            Some(_) => {}
        }
    }
    match found.map(|row| (row, meta.value.get(row))) {
        Some((_, Some(value))) if value == version => Ok(()),
        Some((row, value)) => Err(invalid(
            "meta",
            "value",
            row,
            message!(
                "the version must be \"{version}\", not {}",
                value.map_or(message!("NA"), |v| message!("\"{v}\""))
            ),
        )),
        None => Err(Error::Invalid(Invalid {
            table: "meta".into(),
            column: Some("key"),
            row: None,
            rule: message!("must have a row `version`"),
        })),
    }
}

/// Text that must be there.
pub fn not_empty<'a>(
    table: &'static str,
    column: &'static str,
    text: &Text<'a>,
    row: usize,
) -> Result<&'a str> {
    match text.get(row) {
        Some("") => Err(invalid(table, column, row, "must not be empty")),
        Some(text) => Ok(text),
        None => Err(invalid(table, column, row, "must not be NA")),
    }
}

pub fn functions(functions: &Functions) -> Result<Ids> {
    const TABLE: &str = "functions";
    let ids = Ids::new(TABLE, "function_id", functions.function_id)?;
    for row in 0..functions.function_id.len() {
        not_empty(TABLE, "name", &functions.name, row)?;
        not_empty(TABLE, "system_name", &functions.system_name, row)?;
        if functions.start_line[row] == NA {
            return Err(invalid(TABLE, "start_line", row, "must not be NA"));
        }
        if functions.start_line[row] < 0 {
            return Err(invalid(TABLE, "start_line", row, "must not be negative"));
        }
    }
    Ok(ids)
}

pub fn locations(locations: &Locations, functions: &Ids) -> Result<Ids> {
    const TABLE: &str = "locations";
    let ids = Ids::new(TABLE, "location_id", locations.location_id)?;
    for (row, &id) in locations.function_id.iter().enumerate() {
        if id != NA && functions.row(id).is_none() {
            return Err(dangling(TABLE, "function_id", row, id, "functions"));
        }
    }
    for (row, &line) in locations.line.iter().enumerate() {
        if line != NA && line < 0 {
            return Err(invalid(TABLE, "line", row, "must not be negative"));
        }
    }
    Ok(ids)
}
