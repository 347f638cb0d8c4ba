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
//! Older versions differ in where tables are, and in some of their columns; `tables` has both. The changes are listed
//! in `docs-developer/CHANGELOG-formats.md` of the viewer, the types in its `src/types/profile.ts`.

mod columns;
mod read;
mod tables;
mod threads;
mod write;

pub use read::FORMAT;
pub use write::{Text, Writer};

#[cfg(test)]
mod tests;
