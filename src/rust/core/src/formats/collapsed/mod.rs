//! Reads and writes collapsed stacks, the text format of FlameGraph's scripts, which many profilers
//! write (<https://github.com/brendangregg/FlameGraph>).
//!
//! ```text
//! file    := (line | comment)+
//! line    := frame {";" frame} " " [BEFORE " "] COUNT      outermost first
//! comment := ("#" | "//") text
//! frame   := name ["_[k]" | "_[i]" | "_[j]" | "_[w]"]      kernel, inlined, JIT, waker
//! ```
//!
//! There is no escape: names contain neither `;` nor line feeds. They may contain blanks, and the count is what follows
//! the last one. `difffolded.pl` writes two counts in all lines, from before and after a change. Austin writes
//! comments.

mod detect;
mod grammar;
mod read;
mod write;

pub use detect::is_part_of_line;
pub use write::Writer;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "collapsed",
    title: "a file of collapsed stacks",
    recognises: detect::recognises,
    read: Some(read::read),
    write: Some(|options| {
        Ok(Box::new(Writer {
            type_: options.text("type")?,
            frame_types: options.flag("frame_types")?,
        }))
    }),
    file_names: &["*.collapsed", "*.folded"],
    r_reader: Some("read_collapsed"),
    r_writer: Some("write_collapsed"),
    ..Format::NONE
};

#[cfg(test)]
mod tests;
