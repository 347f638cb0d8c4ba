//! Locations: one row for each distinct line of a function, or address.
//!
//! The line is the one being executed (innermost frame) or the one of the call (all other
//! frames). Line 0 is unknown; a location without a function is an address without a symbol.

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
    /// 0 if it is unknown.
    pub column: i64,
    pub address: Option<AddressId>,
    /// Whether the function was inlined into the function of the next outer frame, which then has
    /// the same address.
    pub inlined: bool,
    pub frame_type: Option<FrameType>,
}

/// The kind of frame that a location is: `r` for R code, `native` for machine code, or any other
/// text, as in the attribute `profile.frame.type` of OpenTelemetry. `Profile::frame_type()`
/// creates it, never of an empty text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameType(
    /// One more than the row of its text: as it is never 0, an `Option<FrameType>` takes no
    /// more memory.
    NonZeroU32,
);

/// The kind of frames of machine code.
pub const NATIVE: &str = "native";

impl FrameType {
    pub(crate) fn new(text: StringId) -> FrameType {
        // Row numbers are smaller than 2^31, see `next_row()`.
        FrameType(NonZeroU32::MIN.saturating_add(text.0))
    }

    pub fn text(self) -> StringId {
        StringId(self.0.get() - 1)
    }
}

impl Location {
    /// The line; 0 if it is unknown or too large for an R integer.
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
