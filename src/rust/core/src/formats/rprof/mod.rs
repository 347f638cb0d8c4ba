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

use crate::formats::bytes::{first_line, is_json, is_text};
use crate::formats::lines::SNIFFED;
use memchr::memmem;

/// Whether the content looks like an Rprof file.
fn is_rprof(start: &[u8]) -> bool {
    // Names of R functions may contain any bytes.
    let start = &start[..start.len().min(SNIFFED)];
    let line = first_line(start);
    let header = memmem::find(line, b"sample.interval=").is_some();
    !is_json(start) && (header || line.starts_with(b"\"") && is_text(line))
}
