//! Constants of the layout: its schema, and the sample types of its units.

use crate::model::known_types::{MEMORY, SAMPLES};
use crate::model::unit_of_time;

pub const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
/// The unit of values that are neither times nor bytes.
pub const NO_UNIT: &str = "none";

/// The name and the unit of the sample type for a unit of the format.
pub fn type_of(unit: &str) -> (&str, &str) {
    match unit {
        NO_UNIT => SAMPLES.key(),
        "bytes" => MEMORY,
        _ if unit_of_time(unit).is_some() => ("time", unit),
        _ => ("value", unit),
    }
}
