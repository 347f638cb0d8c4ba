//! Locations: one row for each distinct place in the code.
//!
//! The line is the one that runs inside the function (for the innermost frame)
//! or that made the call (for all others). Line 0 is unknown; no function means
//! an address without a symbol.

use super::addresses::AddressId;
use super::functions::FunctionId;
use super::numbers::integer_for_r;
use super::strings::StringId;
use crate::collections::{Interner, id};
use std::num::NonZeroU32;

id!(LocationId, "locations");

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
    pub(crate) fn new(text: StringId) -> FrameType {
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

pub type Locations = Interner<Vec<Location>, LocationId>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_stays_small() {
        // A profile may have millions, and each is hashed.
        assert!(size_of::<Location>() <= 48);
    }
}
