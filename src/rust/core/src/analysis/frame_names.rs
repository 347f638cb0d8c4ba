//! What formats without addresses show of a frame: a name, a file and a position in it.

use crate::error::Result;
use crate::limits::memory::written;
use crate::model::{LocationId, Profile, UNKNOWN};
use std::borrow::Cow;

/// A frame as viewers show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFrame<'p> {
    pub name: Cow<'p, str>,
    /// The source file, or the program or library if only the address is known; may be empty.
    pub file: &'p str,
    /// 0 if it is unknown, like the column.
    pub line: i64,
    pub column: i64,
}

/// The name of a location without a function is its address.
pub fn shown(profile: &Profile, id: LocationId) -> Result<ShownFrame<'_>> {
    let location = profile.locations.get(id);
    if let Some(function) = profile.function_of(id) {
        return Ok(ShownFrame {
            name: Cow::Borrowed(profile.strings.get(function.name)),
            file: profile.strings.get(function.filename),
            line: location.line.unwrap_or(0).max(0),
            column: location.column.max(0),
        });
    }
    let address = profile.address_of(&location);
    let mapping = address
        .mapping
        .and_then(|id| profile.mappings.get(id.row()));
    Ok(ShownFrame {
        name: match address.address {
            0 => Cow::Borrowed(UNKNOWN),
            address => Cow::Owned(written(format_args!("{address:#x}"), "a name")?),
        },
        file: mapping.map_or("", |mapping| profile.strings.get(mapping.filename)),
        line: 0,
        column: 0,
    })
}
