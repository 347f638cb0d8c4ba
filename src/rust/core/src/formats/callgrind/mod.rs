//! Writes profiles for KCachegrind and other readers of callgrind's format
//! (<https://valgrind.org/docs/manual/cl-format.html>).
//!
//! ```text
//! # callgrind format
//! version: 1
//! creator: profile
//! positions: line
//! events: samples cpu_nanoseconds
//! summary: 252 5040000000
//!
//! fl=(1) sales.R
//! fn=(1) main                      a function; later it is `(1)`
//! 12 3 60000000                    line, and self values
//! cfl=(2) stats.R
//! cfn=(2) fit                      a call from line 14
//! calls=20 0
//! 14 20 400000000                  its inclusive values
//! ```
//!
//! The format stores a graph of calls, from which stacks cannot be restored, and readers compute the
//! inclusive value of a function in two ways: as the sum of all calls of it, or as its self value and the
//! calls that it makes. With recursion the two differ, and exceed the real value, unless each sample
//! enters and leaves each function at most once. Therefore only the innermost frame of each function is
//! used: the innermost frame of the stack gets the self value, and each frame that is left calls the
//! next one. Then both sums are what `summary()` computes.
//!
//! Readers distinguish functions by name *and* file. Here, functions of the same name are one function, as in
//! `summary()`, and its file is the one with the largest share of its values.

mod graph;
mod write;

pub use write::Writer;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "callgrind",
    title: "a callgrind file",
    is_aggregated: true,
    write: Some(|_| Ok(Box::new(Writer))),
    file_names: &["*.callgrind", "callgrind.out", "callgrind.out.*"],
    r_writer: Some("write_callgrind"),
    ..Format::NONE
};
