//! The schema: every table and column of the data model, declared once.
//!
//! The entry of a column contains its name, type, unit, one line of documentation, and how to get
//! it from the model and set it there. The following are based on these entries:
//!
//! - writing: from a [`Profile`](crate::model::Profile) to columns ([`Sink`]), which the binding
//!   crate creates as R vectors;
//! - reading: from columns ([`TableInput`]) to the model. Each cell is checked and parsed once;
//! - the checks of types, ids and cells, and their error messages;
//! - the keys, by which R code combines, compacts and stores tables, and the tables of the
//!   help page `?profile_data` ([`TableInfo`], [`ColumnInfo`]).
//!
//! Most tables are a [`RowTable`]: an entry for each column, with a function that gets the
//! cell of a row and one that sets it. The tables that may have millions of rows are written and
//! read by whole columns instead: [`samples`], [`sample_values`], [`sample_locations`].
//!
//! Information beyond the seven tables of version "2.0" is stored by the same rules for all
//! formats:
//!
//! - If a row has at most one value, it is in a column with a leading dot; if it may have several,
//!   they are in a table with a leading dot. Such columns and tables are omitted if they have no
//!   values.
//! - A number that its column cannot represent exactly is also stored, in decimal, in a column
//!   whose name has the suffix `_exact`. It is used only if the plain column still contains the
//!   approximation of it, so that the plain column can be edited alone.
//! - Addresses are text, `0x` and hexadecimal digits, since R has no integers of 64 bits.
//! - `native_id` is the id that a row had in its file, if those were not 1, 2, 3, ….
//!
//! A column with the name of a key (see [`Key`]) contains ids of the table of that key, in any
//! table.

mod attributes;
mod cells;
mod column;
mod columns;
mod functions;
mod ids;
mod input;
mod key;
mod locations;
mod mappings;
#[path = "../../tests/all/memory_tables.rs"]
#[cfg(test)]
pub mod memory_tables;
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
mod source_lists;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod version1;
mod write;

pub use column::{Column, ColumnInfo, Type};
pub use functions::FUNCTIONS;
pub use ids::Ids;
pub use input::{Data, NA, Only, TableInput, Text};
pub(crate) use input::{find, invalid, invalid_column};
pub use key::Key;
pub use locations::LOCATIONS;
pub use meta::META_V1;
pub(crate) use meta::check_meta;
pub use problems::{PROBLEMS, ProblemRow};
pub(crate) use read::unresolved;
pub use reading::{Reading, Runs, SampleStacks};
pub use row_table::RowTable;
pub(crate) use sample_locations::{FRAME_COLUMNS, known as known_frames};
pub(crate) use sample_values::rows_of_each;
pub(crate) use sink::NA_REAL;
pub use sink::{Computed, Sink};
pub(crate) use sink::{constant, constant_double, counted, repeated_texts};
pub use table::{Declared, Table, TableInfo, Version};

/// The tables of version "2.0", in the order in which they are written: the seven tables that each
/// profile has, and optional ones with a leading dot.
pub static TABLES: [&dyn Table; 21] = [
    &meta::META,
    &sources::SOURCES,
    &samples::SAMPLES,
    &sample_values::SAMPLE_VALUES,
    &sample_locations::SAMPLE_LOCATIONS,
    &locations::LOCATIONS,
    &functions::FUNCTIONS,
    &mappings::MAPPINGS,
    &source_lists::SAMPLE_TYPES,
    &source_lists::FILES,
    &attributes::LABELS,
    &source_lists::COMMENTS,
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

/// The tables of version "1.0", which has one sample type, and stacks in a list column. Tables that
/// are in both versions have only their required columns here.
pub static TABLES_V1: [&dyn Declared; 5] = [
    &meta::META_V1,
    &version1::SAMPLE_TYPES,
    &version1::SAMPLES,
    &locations::LOCATIONS,
    &functions::FUNCTIONS,
];

/// The table of `#File` lines, which refers to the samples that follow the lines. If such a sample was
/// removed, it refers to the next one.
pub(crate) const FILES: &str = ".files";
pub(crate) const SAMPLE_VALUES: &str = "sample_values";

/// The table with this name in version "2.0".
pub fn table(name: &str) -> Option<&'static dyn Table> {
    TABLES.into_iter().find(|table| table.info().name == name)
}
