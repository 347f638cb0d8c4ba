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
//! `sampleType` is an extension of this package: the name and the unit of a sample type, if the units of speedscope do
//! not identify it. Otherwise, values of different types could be summed when the file is read.
//!
//! Stacks are lists of rows of `frames`, outermost first. Fields may come in any order, so stacks are resolved when
//! the whole file has been read.

mod events;
mod layout;
mod read;
mod recorded;
mod runs;
mod stacks;
mod write;

pub use write::Writer;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "speedscope",
    title: "a speedscope file",
    recognises: read::recognises,
    read: Some(read::read),
    write: Some(|options| {
        Ok(Box::new(Writer {
            aggregate: options.optional_flag("aggregate")?,
        }))
    }),
    file_names: &["*.speedscope.json"],
    r_reader: Some("read_speedscope"),
    r_writer: Some("write_speedscope"),
    ..Format::NONE
};

#[cfg(test)]
mod tests;
