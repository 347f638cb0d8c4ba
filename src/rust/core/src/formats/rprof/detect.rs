//! Recognises files of `Rprof()` by their first line.

use super::grammar;
use crate::formats::bytes::text_lines;

/// Whether the content looks like an Rprof file: whether its first line is a header, the path of a file, or a
/// sample. Names of functions may contain any bytes.
pub fn is_rprof(start: &[u8]) -> bool {
    let Some(line) = text_lines(start).next() else {
        return false;
    };
    let is_header = || grammar::header(line).is_some() || grammar::file_line(line).is_some();
    let item = grammar::memory_prefix(line).map_or(line, |(_, at)| &line[at..]);
    // A stack of another format may contain quotes too, but ends with a number.
    let is_sample = line.ends_with(b" ") || line.ends_with(b"\"");
    is_header() || is_sample && grammar::starts_with_item(item, true)
}
