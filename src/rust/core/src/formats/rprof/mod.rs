//! R's own profiler: the files that `Rprof()` writes.
//!
//! The grammar, read from R's `src/main/eval.c`:
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
//! A name is not escaped. It may hold quotes, blanks and line feeds, so where
//! it ends is a matter of what follows (`grammar`), and where a sample ends
//! may be a matter of the next line (`pending`).

mod cache;
mod ends;
mod foreign;
mod grammar;
mod line_reader;
mod lines;
mod memory;
mod parse;
mod pending;
mod read;
mod texts;
mod write;

pub use grammar::memory_prefix as parse_memory;
pub use read::FORMAT;
pub use write::Writer;
