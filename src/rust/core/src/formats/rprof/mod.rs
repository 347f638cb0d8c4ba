//! Reads and writes the files of R's own profiler, `Rprof()`.
//!
//! The grammar, derived from R's `src/main/eval.c`:
//!
//! ```text
//! file   := block+                    append = TRUE adds a block
//! header := ["memory profiling: "]["GC profiling: "]["line profiling: "]"sample.interval=" MICROSECONDS
//! fileln := "#File " N ": " path      before the first sample that uses N
//! sample := [mem] ['"<GC>" '] [loc] {item}      innermost first
//! mem    := ":" SMALL ":" LARGE ":" NODES ":" DUPLICATIONS ":"
//! loc    := N "#" LINE " "
//! item   := '"' name '" ' [loc]
//! ```
//!
//! Names are not escaped. They may contain quotes, blanks and line feeds, so the end of a name is
//! determined by what follows (`grammar`), and the end of a sample may be determined by the
//! next line (`pending`).

mod detect;
mod ends;
mod follow;
mod grammar;
mod line_reader;
mod lines;
mod memory;
mod offsets;
mod parse;
mod pending;
mod read;
mod texts;
mod write;

pub use follow::{Followed, Follower, starts_with_header};
pub use grammar::memory_prefix as parse_memory;
pub use line_reader::OTHERWISE;
pub use offsets::sample_starts;
pub use write::Writer;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "rprof",
    title: "an Rprof file",
    recognises: detect::is_rprof,
    read: Some(read::read),
    write: Some(|_| Ok(Box::new(Writer))),
    file_names: &["*.out", "*.Rprof"],
    r_reader: Some("read_rprof"),
    r_writer: Some("write_rprof"),
    ..Format::NONE
};

/// The format, read with the frames that stand for labels, so that each sample has the calls that R had.
pub const AS_RECORDED: Format = Format {
    read: Some(read::read_as_recorded),
    ..FORMAT
};
