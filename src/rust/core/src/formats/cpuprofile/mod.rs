//! Reads and writes CPU profiles of V8, the engine of Chrome and Node: files with the extension `.cpuprofile`.
//!
//! The layout, from the type `Profiler.Profile` of the DevTools protocol; times are in microseconds:
//!
//! ```text
//! { "nodes": [NODE], "startTime", "endTime", "samples"?: [ID], "timeDeltas"?: [NUMBER] }
//! NODE := { "id", "callFrame": { "functionName", "scriptId", "url", "lineNumber", "columnNumber" },
//!           "hitCount", "children"?: [ID], "positionTicks"?: [ { "line", "ticks" } ] }
//! ```
//!
//! `lineNumber` is the line at which the function starts, counted from 0; `line` is a line in it that was running,
//! counted from 1. A sample lasts until the next one, and the first delta is the time before the first sample.
//! `scriptId` numbers the scripts of a process as they are loaded. It is not read, since functions are distinguished by
//! name, URL and line. Two other layouts are read:
//!
//! - old files, in which `head` is the outermost node, `children` are nodes, nodes have the fields of `callFrame`
//!   themselves, lines are counted from 1, and `startTime` and `endTime` are in seconds;
//! - traces of Chrome's performance panel (`trace`), in which events contain parts of this.

mod names;
mod nodes;
mod read;
mod run;
mod trace;
mod write;

pub use write::Writer;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "cpuprofile",
    title: "a CPU profile of Chrome or Node",
    recognises: read::recognises,
    read: Some(read::read),
    write: Some(|_| Ok(Box::new(Writer))),
    file_names: &["*.cpuprofile"],
    r_reader: Some("read_cpuprofile"),
    r_writer: Some("write_cpuprofile"),
    ..Format::NONE
};

#[cfg(test)]
mod tests;
