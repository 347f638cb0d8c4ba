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

mod ends;
mod follow;
mod grammar;
mod line_reader;
mod lines;
mod memory;
mod parse;
mod pending;
mod read;
mod texts;
mod write;

pub use follow::{Followed, Follower, starts_with_header};
pub use grammar::memory_prefix as parse_memory;
pub use line_reader::OTHERWISE;
pub use read::{AS_RECORDED, FORMAT};
pub use write::Writer;

use crate::formats::bytes::text_lines;

/// Whether the content looks like an Rprof file: whether its first line is a header, the path of a file, or a
/// sample. Names of functions may contain any bytes.
fn is_rprof(start: &[u8]) -> bool {
    let Some(line) = text_lines(start).next() else {
        return false;
    };
    let is_header = || grammar::header(line).is_some() || grammar::file_line(line).is_some();
    let item = grammar::memory_prefix(line).map_or(line, |(_, at)| &line[at..]);
    // A stack of another format may contain quotes too, but ends with a number.
    let is_sample = line.ends_with(b" ") || line.ends_with(b"\"");
    is_header() || is_sample && grammar::starts_with_item(item, true)
}
