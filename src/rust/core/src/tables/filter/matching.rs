//! Which locations a regular expression matches.
//!
//! R matches it against the names of functions and files, and against the files of mappings. A
//! location matches if its function or the mapping of its address does.

use super::frame::Frame;
use crate::error::Result;
use crate::limits::memory::TryCollect;
use crate::model::{LocationId, Profile};

/// For each row of `locations`, 1 if an expression matches it.
#[derive(Debug, Clone, Copy)]
pub struct Matching<'a>(pub &'a [i32]);

impl Matching<'_> {
    /// Whether a frame that was not removed matches.
    pub(super) fn has(&self, frame: &Frame) -> bool {
        frame.stays && self.matches(frame.location)
    }

    pub(super) fn matches(&self, location: LocationId) -> bool {
        self.0.get(location.row()) == Some(&1)
    }
}

/// The rows of `locations` that match, as 0 and 1, given the matching rows of `functions` and
/// `.mappings`.
pub fn matching_locations(
    profile: &Profile,
    functions: &[i32],
    mappings: &[i32],
) -> Result<Vec<i32>> {
    let matches =
        |found: &[i32], row: Option<usize>| row.and_then(|row| found.get(row)) == Some(&1);
    let locations = profile.locations.iter().map(|location| {
        let mapping = profile.address_of(location).mapping;
        let is_match = matches(functions, location.function.map(|f| f.row()))
            || matches(mappings, mapping.map(|m| m.row()));
        i32::from(is_match)
    });
    locations.try_vec()
}
