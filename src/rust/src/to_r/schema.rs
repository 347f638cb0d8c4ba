//! The schema: each table without rows, so that R need not say it again.

use super::Tables;
use crate::arena::{Arena, Value};
use crate::tibble::Tibble;
use profile_core::error::Result;
use profile_core::tables::{Kind, Table};

pub fn schema<'call>(arena: Arena<'call>, tables: &'static [Table]) -> Result<Value<'call>> {
    let mut all = Tables::new(arena);
    for table in tables {
        let mut tibble = Tibble::new(arena, 0)?;
        for column in table.all_columns() {
            match column.kind {
                Kind::Integer => tibble.integers(column.name, [])?,
                Kind::Double => tibble.doubles(column.name, [])?,
                Kind::Text => tibble.strings(column.name, [])?,
                Kind::Logical => tibble.logicals(column.name, [])?,
                Kind::List => tibble.stacks(column.name, &[], &[], &[])?,
            }
        }
        all.add(table.name, tibble.finish()?)?;
    }
    all.finish()
}
