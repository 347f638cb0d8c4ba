//! Declares the tables that differ in version "1.0": `sample_types`, which has one row, and `samples`,
//! which has a list column. `tables/v1.rs` reads and checks them.

use super::column::{ColumnInfo, Type};
use super::table::{Declared, TableInfo};

/// A table that is declared, but not read and written by the schema.
pub struct DeclaredTable {
    info: TableInfo,
    columns: [ColumnInfo; 2],
}

pub static SAMPLE_TYPES: DeclaredTable = DeclaredTable {
    info: TableInfo::new(
        "sample_types",
        "what a sample's value counts: one row, `samples` and `count`",
    ),
    columns: [
        ColumnInfo::new("type", Type::Text, "`samples`"),
        ColumnInfo::new("unit", Type::Text, "`count`"),
    ],
};

pub static SAMPLES: DeclaredTable = DeclaredTable {
    info: TableInfo::new(
        "samples",
        "a stack, and how many consecutive samples have it",
    ),
    columns: [
        ColumnInfo::new("value", Type::Integer, "how often; 1 or more"),
        ColumnInfo::new(
            "locations",
            Type::Stacks,
            "the stack: a tibble with one integer column, `location_id`, innermost first",
        ),
    ],
};

impl Declared for DeclaredTable {
    fn info(&self) -> &TableInfo {
        &self.info
    }

    fn columns(&self) -> Box<dyn Iterator<Item = &ColumnInfo> + '_> {
        Box::new(self.columns.iter())
    }
}
