//! Locations: one row for each distinct place in the code.
//!
//! The line is the one that runs inside the function (for the innermost frame)
//! or that made the call (for all others). Line 0 is unknown; no function means
//! an address without a symbol.

use super::addresses::AddressId;
use super::functions::FunctionId;
use super::interner::{Interner, next_row};
use super::numbers::integer_for_r;
use super::strings::StringId;
use crate::error::Result;
use crate::limits::memory::TryGrow;
use std::num::NonZeroU32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub(crate) u32);

impl LocationId {
    /// The row in its table, counted from 0.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Location {
    pub function: Option<FunctionId>,
    pub line: Option<i64>,
    /// 0 is unknown.
    pub column: i64,
    pub address: Option<AddressId>,
    /// Whether it is part of the frame that follows outwards: the same code at
    /// the same address, seen from the function that it was inlined into.
    pub inlined: bool,
    pub frame_type: Option<FrameType>,
}

/// What kind of frame a location is: `r` for R's own, `native` for machine code, or
/// any other text, such as profiles of OpenTelemetry have in their attribute
/// `profile.frame.type`. Never empty: `Profile::frame_type()` makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameType(
    /// One more than the row of its text, so that a location is no larger for it.
    NonZeroU32,
);

impl FrameType {
    pub(super) fn new(text: StringId) -> FrameType {
        // Rows end at 2^31, see `next_row()`.
        FrameType(NonZeroU32::MIN.saturating_add(text.0))
    }

    pub fn text(self) -> StringId {
        StringId(self.0.get() - 1)
    }
}

impl Location {
    /// The line, 0 where it is unknown or none for R's integers.
    pub fn line_for_r(&self) -> i32 {
        integer_for_r(self.line.unwrap_or(0))
    }
}

#[derive(Debug, Default, Clone)]
pub struct Locations {
    rows: Vec<Location>,
    index: Interner,
}

impl Locations {
    pub fn intern(&mut self, location: Location) -> Result<LocationId> {
        let hash = self.index.hash(location);
        if let Some(row) = self
            .index
            .find(hash, |row| self.rows[row as usize] == location)
        {
            return Ok(LocationId(row));
        }
        let id = self.push(location)?;
        self.index.insert(hash, id.0)?;
        Ok(id)
    }

    /// Adds a row even if an equal one is there, for tables that are to stay as
    /// they are.
    pub fn push(&mut self, location: Location) -> Result<LocationId> {
        let row = next_row(self.rows.len(), "locations")?;
        self.rows.try_push(location, "locations")?;
        Ok(LocationId(row))
    }

    #[inline]
    pub fn get(&self, id: LocationId) -> Location {
        self.rows[id.row()]
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Location> + Clone {
        self.rows.iter()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        (0..self.rows.len() as u32).map(LocationId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_stays_small() {
        // A profile may have millions, and each is hashed.
        assert!(size_of::<Location>() <= 48);
    }
}
