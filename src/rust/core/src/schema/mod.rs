//! The schema: every table and column of the data model, declared once.
//!
//! The entry of a column has its name, its type, its unit, one line of documentation,
//! and how to get it from the model and set it there. From the entries follow
//!
//! - writing: from a [`Profile`](crate::model::Profile) to columns ([`Sink`]), which the binding makes R's;
//! - reading: from columns ([`TableInput`]) to the model, each cell checked and parsed
//!   once, on the way in;
//! - the checks of types, ids and cells, and the texts of their errors;
//! - the keys, by which R combines, compacts and stores tables, and the tables of the
//!   help page `?profile_data` ([`TableInfo`], [`ColumnInfo`]).
//!
//! Most tables are a [`RowTable`]: an entry for each column, with a function that gets the
//! cell of a row and one that sets it. The few that may have millions of rows move whole
//! columns instead: [`samples`], [`sample_values`], [`sample_locations`].
//!
//! What a source says beyond the tables of version "2.0" is kept by the same rules for each
//! format:
//!
//! - what is one fact of a row is a column with a leading dot, what can be several is a table
//!   with a leading dot, and neither is given where no source has any;
//! - a number that its column cannot hold exactly stands, in decimal, in a column of the same
//!   name and `_exact`. It counts only while the plain column has the value that reading it
//!   gave: whoever edits that column need not know of the other;
//! - addresses are text, `0x` and hexadecimal digits, since R has no such numbers;
//! - `native_id` is the id that a row had in its file, where those were not 1, 2, 3, ….
//!
//! A column that is called like a key (see [`Key`]) holds ids of that table wherever it
//! stands.

mod attributes;
mod cells;
mod column;
mod functions;
mod ids;
mod input;
mod key;
mod locations;
mod mappings;
pub mod memory;
mod meta;
mod problems;
mod read;
mod reading;
mod resources;
mod row_table;
mod sample_locations;
mod sample_values;
mod samples;
mod sink;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod version1;
mod write;

pub use column::{Column, ColumnInfo, Type};
pub use functions::FUNCTIONS;
pub use ids::Ids;
pub use input::{Data, NA, TableInput, Text};
pub(crate) use input::{find, invalid, invalid_column};
pub use key::Key;
pub use locations::LOCATIONS;
pub use meta::META_V1;
pub(crate) use meta::check_meta;
pub use problems::{PROBLEMS, ProblemRow};
pub(crate) use read::unresolved;
pub use reading::{Reading, Runs};
pub use row_table::RowTable;
pub(crate) use sink::NA_REAL;
pub use sink::Sink;
pub use table::{Declared, Table, TableInfo, Version};

/// Version "2.0", in the order in which tables are given: seven that each profile has, and
/// those with a leading dot that it may have. Parents of other rows come before those rows.
pub static TABLES: [&dyn Table; 21] = [
    &meta::META,
    &sources::SOURCES,
    &samples::SAMPLES,
    &sample_values::SAMPLE_VALUES,
    &sample_locations::SAMPLE_LOCATIONS,
    &locations::LOCATIONS,
    &functions::FUNCTIONS,
    &mappings::MAPPINGS,
    &sources::SAMPLE_TYPES,
    &sources::FILES,
    &attributes::LABELS,
    &sources::COMMENTS,
    &resources::RESOURCES,
    &resources::RESOURCE_ENTITIES,
    &resources::SCOPES,
    &attributes::RESOURCE_ATTRIBUTES,
    &attributes::SCOPE_ATTRIBUTES,
    &attributes::SOURCE_ATTRIBUTES,
    &attributes::MAPPING_ATTRIBUTES,
    &attributes::LOCATION_ATTRIBUTES,
    &problems::PROBLEMS,
];

/// Version "1.0": one sample type, and the stacks in a list column. Of tables that both
/// versions have it has the required columns.
pub static TABLES_V1: [&dyn Declared; 5] = [
    &meta::META_V1,
    &version1::SAMPLE_TYPES,
    &version1::SAMPLES,
    &locations::LOCATIONS,
    &functions::FUNCTIONS,
];

/// The table of `#File` lines: its rows stand before samples, or before the next one where a
/// sample is gone.
pub(crate) const FILES: &str = ".files";

/// The table of that name in version "2.0".
pub fn table(name: &str) -> Option<&'static dyn Table> {
    TABLES.into_iter().find(|table| table.info().name == name)
}
