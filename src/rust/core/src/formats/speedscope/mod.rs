//! Reads and writes the JSON files of [speedscope](https://www.speedscope.app).
//!
//! The layout, from `file-format-schema.json` of its npm package:
//!
//! ```text
//! { "$schema", "shared": { "frames": [ { "name", "file"?, "line"?, "col"? } ] },
//!   "profiles": [ PROFILE ], "name"?, "activeProfileIndex"?, "exporter"? }
//! PROFILE := { "type": "sampled", NAMES, "samples": [ [FRAME ...] ], "weights": [NUMBER] }
//!          | { "type": "evented", NAMES, "events": [ { "type": "O" | "C", "frame", "at" } ] }
//! NAMES   := "name", "unit", "startValue", "endValue", "sampleType"?
//! ```
//!
//! `sampleType` is ours: the name and the unit of a sample type, if the units of speedscope do not identify it. Otherwise,
//! values of different types could be summed when the file is read.
//!
//! Stacks are lists of rows of `frames`, outermost first. Fields may come in any order, so stacks are resolved when
//! the whole file has been read.

mod events;
mod read;
mod stacks;
mod write;

use crate::model::known_types::SAMPLES;
use crate::model::unit_of_time;
pub use read::FORMAT;
pub use write::Writer;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
/// The unit of values that are no time and no bytes.
const NO_UNIT: &str = "none";

/// The name and the unit of the sample type for a unit of the format.
fn type_of(unit: &str) -> (&str, &str) {
    match unit {
        NO_UNIT => SAMPLES.key(),
        "bytes" => ("memory", unit),
        _ if unit_of_time(unit).is_some() => ("time", unit),
        _ => ("value", unit),
    }
}

#[cfg(test)]
mod tests;
