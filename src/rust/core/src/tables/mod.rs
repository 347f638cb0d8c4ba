//! Tables from outside: what a user may have edited, checked and taken in.
//!
//! A [`Profile`](crate::model::Profile) is right by construction; tables are not. What a table
//! and its columns must be is in [`crate::schema`], which also reads them: each cell is checked
//! and parsed at once. [`check_v2`] and [`check_v1`] end there. [`profile_from_v2`] and
//! [`profile_from_v1`] go on from what that made, and find equal stacks by hashing the runs of
//! rows that make one.

mod filter;
mod list;
mod remap;
mod stacks;
mod v1;

pub use filter::{
    Filtered, FilteredFrames, Filters, Matching, filter, matching_locations, rows_of_samples,
};
pub(crate) use list::get;
pub use list::{TableList, check_v2, version};
pub use remap::{Renamed, remap};
pub use stacks::profile_from_v2;
pub use v1::{check_v1, profile_from_v1};
