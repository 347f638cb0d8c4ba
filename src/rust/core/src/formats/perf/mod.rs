//! Reads the output of `perf script`: samples that Linux' perf recorded.
//!
//! ```text
//! file   := {"#" header line} {block}
//! block  := head {frame} blank line
//! head   := [COMM " "] [[PID "/"] TID " "] ["[" CPU "] "] [TIME ":"] [PERIOD] [EVENT ":"] {other} [frame] {other}
//! frame  := TAB [ADDRESS] [SYMBOL ["+0x" OFFSET]] ["(" MODULE ")" | "(inlined)"] [LF "  " FILE ":" LINE]
//! ```
//!
//! Frames are innermost first. Instead of one blank there may be several, or tabs as in the output of simpleperf's
//! `report_sample.py`. The option `-F` of perf determines which fields a line has. Names of commands and symbols may
//! contain blanks and parentheses, so the number before the time is the id of the thread, and the last parentheses
//! contain the module. A sample without a call graph has its only frame on the line of the head, among other fields such
//! as addresses of data, which `place.rs` tells apart. After the frames, lines of other fields may follow (`extras.rs`).
//! Sources: perf's `builtin-script.c`, and the files that it writes.

mod block;
mod detect;
mod events;
mod extras;
mod frame;
mod head;
mod labels;
mod place;
mod read;
mod stacks;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "perf",
    title: "an output of `perf script`",
    recognises: detect::recognises,
    read: Some(read::read),
    r_reader: Some("read_perf_script"),
    ..Format::NONE
};

#[cfg(test)]
mod tests;
