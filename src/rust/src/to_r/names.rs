//! Converts the names of frames to R objects.

use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::analysis::frame_names::FrameNames;
use profile_core::error::Result;
use profile_core::model::Profile;

/// A tibble with a row for each location: `name`, and `has_symbol`, whether this is the name of a function.
pub fn frame_names<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    names: &FrameNames,
) -> Result<RObject<'call>> {
    let locations = || profile.locations.ids();
    let mut table = Tibble::new(arena, profile.locations.len())?;
    table.texts("name", locations().map(|id| Some(names.of(id))))?;
    table.logicals(
        "has_symbol",
        locations().map(|id| Some(names.has_symbol(id))),
    )?;
    table.finish()
}
