//! Reads and writes processed profiles of the Firefox Profiler (<https://profiler.firefox.com>), as its viewer saves
//! them and as samply writes them.
//!
//! Tables are objects of columns of equal length. In version 66, which is written:
//!
//! ```text
//! { "meta": { "interval" (ms), "startTime" (ms since 1970), "preprocessedProfileVersion", "categories", … },
//!   "libs": [ { "name", "path", "codeId", … } ],
//!   "shared": { "stackTable": frame, prefixOffset        (0: a root, else own row minus that of the caller)
//!               "frameTable": func, line, column, address, category, …
//!               "funcTable": name, source, lineNumber, isJS, resource, …
//!               "sources": filename, content, …
//!               "resourceTable", "nativeSymbols", "sourceLocationTable", "stringArray" },
//!   "threads": [ { "name", "pid", "tid", "samples": stack, timeDeltas (ms), weight, weightType,
//!                  "nativeAllocations": stack, time, weight, … } ] }
//! ```
//!
//! Older versions differ in the location of tables and in some columns; `tables` supports both. The changes are listed
//! in `docs-developer/CHANGELOG-formats.md` of the viewer, the types in its `src/types/profile.ts`.

mod columns;
mod meta;
mod read;
mod tables;
mod threads;
mod values;
mod write;

pub use write::{Text, Writer};

use crate::formats::format::Format;
use crate::limits::memory::TryCollect;

pub const FORMAT: Format = Format {
    name: "firefox",
    title: "a profile of the Firefox Profiler",
    recognises: read::recognises,
    read: Some(read::read),
    write: Some(|options| {
        let files = options.texts("files")?.into_iter();
        let texts = files.zip(options.texts("texts")?);
        let texts = texts.map(|(file, text)| Text { file, text });
        Ok(Box::new(Writer {
            texts: texts.try_vec()?,
        }))
    }),
    file_names: &["*.firefox.json"],
    r_reader: Some("read_firefox"),
    r_writer: Some("write_firefox"),
    ..Format::NONE
};

#[cfg(test)]
mod tests;
