//! Reads and writes the JSON files of [speedscope](https://www.speedscope.app).
//!
//! The layout, from `file-format-schema.json` of its npm package:
//!
//! ```text
//! { "$schema", "shared": { "frames": [ { "name", "file"?, "line"?, "col"? } ] },
//!   "profiles": [ PROFILE ], "name"?, "activeProfileIndex"?, "exporter"? }
//! PROFILE := { "type": "sampled", NAMES, "samples": [ [FRAME ...] ], "weights": [NUMBER] }
//!          | { "type": "evented", NAMES, "events": [ { "type": "O" | "C", "frame", "at" } ] }
//! NAMES   := "name", "unit", "startValue", "endValue"
//! ```
//!
//! Stacks are lists of rows of `frames`, outermost first. Fields may come in any order, so stacks are resolved when
//! the whole file has been read.

mod events;
mod read;
mod stacks;
mod write;

pub use read::FORMAT;
pub use write::Writer;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
/// The unit of values that are no time and no bytes.
const NO_UNIT: &str = "none";

#[cfg(test)]
mod tests;
