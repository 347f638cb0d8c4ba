//! Checks that a list has the tables of its version, and each table its columns.

use crate::error::{Error, Invalid, Result};
use crate::limits::cancel::Stop;
use crate::message;
use crate::schema::{
    ColumnInfo, Data, Key, Reading, TABLES, TABLES_V1, TableInput, Version, check_meta, find,
    invalid_column,
};

/// The elements of a list and their names.
pub type TableList<'t, 'a> = [(&'a str, &'t dyn TableInput<'a>)];

/// The version that the table `meta` states, "1.0" or "2.0".
pub fn version(list: &TableList) -> Result<String> {
    let mut columns = TABLES_V1[0].columns();
    let meta = required(list, "meta", || TABLES_V1[0].columns())?;
    let mut text = || match columns.next().map(|column| find(meta, "meta", column)) {
        Some(Ok(Some(Data::Texts(text)))) => Ok(text),
        Some(Err(error)) => Err(error),
        _ => Ok(Default::default()),
    };
    check_meta(&text()?, &text()?)
}

/// Checks tables of version "2.0" and reads everything except the stacks of samples.
pub fn check_v2<'a>(list: &TableList<'_, 'a>, stop: Stop) -> Result<Reading<'a>> {
    check_names(list, TABLES.iter().map(|table| table.info().name))?;
    for (name, table) in list {
        if let Some(found) = table.is_not_a_table() {
            return Err(no_table(name, found));
        }
    }
    let mut reading = Reading::new()?;
    for key in Key::ALL {
        if let Some(input) = get(list, key.table()) {
            reading.read_ids(key, input)?;
        }
    }
    for table in TABLES {
        let name = table.info().name;
        let input = if table.info().required() {
            Some(required(list, name, || table.columns())?)
        } else {
            get(list, name)
        };
        if let Some(input) = input {
            table.read(input, &mut reading, Version::Two, stop)?;
        }
    }
    Ok(reading)
}

/// The table with this name, if there is one.
pub fn get<'t, 'a>(list: &TableList<'t, 'a>, name: &str) -> Option<&'t dyn TableInput<'a>> {
    let found = list.iter().find(|(other, _)| *other == name);
    found.map(|(_, table)| *table)
}

/// A table that every profile has. The names of its columns must be known or begin with a dot.
pub fn required<'t, 'a, 'c>(
    list: &TableList<'t, 'a>,
    name: &'static str,
    columns: impl Fn() -> Box<dyn Iterator<Item = &'c ColumnInfo> + 'c>,
) -> Result<&'t dyn TableInput<'a>> {
    let table = get(list, name).ok_or_else(|| invalid_column(name, None, "is missing"))?;
    if let Some(found) = table.is_not_a_table() {
        return Err(no_table(name, found));
    }
    let is_known = |column: &str| columns().any(|known| known.name == column);
    for column in table.names() {
        if !column.starts_with('.') && !is_known(column) {
            let rule = message!(
                "unknown column `{column}`; names of additional columns must begin with a dot"
            );
            return Err(invalid_column(name, None, rule));
        }
    }
    Ok(table)
}

/// Checks that the names of tables are defined in the version or begin with a dot.
pub fn check_names<'n>(
    list: &TableList,
    known: impl Iterator<Item = &'n str> + Clone,
) -> Result<()> {
    for (name, _) in list {
        if !name.starts_with('.') && !known.clone().any(|known| known == *name) {
            let rule =
                "is not part of this version; names of additional tables must begin with a dot";
            return Err(invalid_table(name, rule.into()));
        }
    }
    Ok(())
}

fn no_table(name: &str, found: &str) -> Error {
    invalid_table(name, message!("must be a data frame, not {found}"))
}

/// The error for a table that may be user-defined.
fn invalid_table(name: &str, rule: String) -> Error {
    Error::Invalid(Invalid {
        table: message!("{name}").into(),
        column: None,
        row: None,
        rule,
    })
}
