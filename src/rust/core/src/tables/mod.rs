//! Tables from outside: what a user may have edited, checked and taken in.
//!
//! A [`Profile`](crate::model::Profile) is right by construction; tables are
//! not. [`check_v2`] and [`check_v1`] hold them against every rule of the data
//! model and name table, column, row and rule of the first one broken.
//! [`profile_from_v2`] and [`profile_from_v1`] check and then find the stacks
//! again, by hashing the runs of rows that make one.
//!
//! Whether the tables and columns are there and of the right type is checked by
//! whoever makes these structs; [`V2`] and [`V1`] say what is wanted.

mod checks;
mod exact;
mod ids;
mod remap;
mod schema;
mod take;
mod v1;
mod v2;

pub use remap::{Renamed, remap};
pub use schema::{
    COMMENTS, Column, DOTTED, FILES, Kind, LABELS, MAPPINGS, Owner, RESOURCE_ENTITIES, RESOURCES,
    SAMPLE_TYPES, SCOPES, Table, V1, V2,
};
pub use v1::{TablesV1, check_v1, profile_from_v1};
pub use v2::{
    Attributes, Comments, Entities, Files, Filters, FunctionFacts, Labels, Left, LocationFacts,
    Mappings, Matching, Resources, SampleOrigins, SamplePlaces, SampleTypes, Scopes, SourceFacts,
    TablesV2, check_v2, filter, profile_from_v2,
};

/// R's `NA_integer_`.
pub const NA: i32 = i32::MIN;

/// A character column: its distinct strings, and for each row which one it is.
#[derive(Debug, Default, Clone)]
pub struct Text<'a> {
    pub distinct: Vec<&'a str>,
    /// -1 is NA.
    pub rows: Vec<i32>,
}

impl<'a> Text<'a> {
    pub fn get(&self, row: usize) -> Option<&'a str> {
        let index = usize::try_from(*self.rows.get(row)?).ok()?;
        self.distinct.get(index).copied()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The `meta` table.
#[derive(Debug, Default, Clone)]
pub struct Meta<'a> {
    pub key: Text<'a>,
    pub value: Text<'a>,
}

/// The `locations` table.
#[derive(Debug, Default, Clone, Copy)]
pub struct Locations<'a> {
    pub location_id: &'a [i32],
    pub function_id: &'a [i32],
    pub line: &'a [i32],
}

/// The `functions` table.
#[derive(Debug, Default, Clone)]
pub struct Functions<'a> {
    pub function_id: &'a [i32],
    pub name: Text<'a>,
    pub system_name: Text<'a>,
    pub filename: Text<'a>,
    pub start_line: &'a [i32],
}
