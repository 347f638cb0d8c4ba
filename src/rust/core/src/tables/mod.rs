//! Checks and reads tables that users may have edited.
//!
//! A [`Profile`](crate::model::Profile) is valid by construction; tables are not. The rules for
//! tables and columns are in [`crate::schema`], which also reads them: each cell is checked and
//! parsed at the same time. [`check_v2`] and [`check_v1`] do only this. [`profile_from_v2`] and
//! [`profile_from_v1`] continue with the result, and find equal stacks by hashing the runs of
//! rows that form a stack.

mod filter;
mod list;
mod remap;
mod stacks;
mod v1;

pub use filter::{
    Callers, Filtered, FilteredFrames, Filters, Matching, Plumbing, Position, filter,
    matching_locations, rows_of_samples,
};
pub(crate) use list::get;
pub use list::{TableList, check_v2, version};
pub use remap::{Renamed, remap};
pub use stacks::profile_from_v2;
pub use v1::{check_v1, profile_from_v1};
