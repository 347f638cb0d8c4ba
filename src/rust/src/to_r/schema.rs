//! The schema: each table without rows, so that R need not say it again.

use super::COLUMNS;
use crate::columns::Tibble;
use crate::slots::Slots;
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::tables::{Kind, Table};
use std::ffi::CString;

pub fn put_schema(parent: Slots, slot: usize, tables: &[Table]) -> Result<()> {
    let names = c_names(tables.iter().map(|table| table.name))?;
    let names = names.iter().map(CString::as_c_str).try_vec(COLUMNS)?;
    let list = parent.list(slot, &names)?;
    for (i, table) in tables.iter().enumerate() {
        let names = c_names(table.all_columns().map(|column| column.name))?;
        let names = names.iter().map(CString::as_c_str).try_vec(COLUMNS)?;
        let mut tibble = Tibble::new(list, i, &names, 0)?;
        for column in table.all_columns() {
            match column.kind {
                Kind::Integer => tibble.integers([])?,
                Kind::Double => tibble.doubles([])?,
                Kind::Text => tibble.strings([])?,
                Kind::Logical => tibble.logicals([])?,
                Kind::List => tibble.stacks(&[], &[], &[])?,
            }
        }
        tibble.finish()?;
    }
    Ok(())
}

/// Names of the schema are constants, none of which holds a NUL.
fn c_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<CString>> {
    names
        .map(|name| CString::new(name).unwrap_or_default())
        .try_vec(COLUMNS)
}
