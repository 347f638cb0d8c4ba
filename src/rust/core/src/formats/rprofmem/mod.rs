//! Reads the files of `Rprofmem()`, which record allocations of memory.
//!
//! The grammar, derived from R's `src/main/memory.c`:
//!
//! ```text
//! file  := line*
//! line  := (BYTES " :" | "new page:") {item} LF      innermost first
//! item  := '"' name '" '
//! ```
//!
//! - A line with BYTES is an allocated vector: its header of 48 bytes and its data. "new page" is a page
//!   of memory for small objects, of a size that is not recorded.
//! - A name is the symbol that was called, `<Anonymous>` if it was no symbol. Names are not escaped, so
//!   what follows determines their end (`formats/r_names.rs`), and a name may contain line feeds.
//! - R before 3.5.0 writes no line feed after an allocation without a stack, so that several are on one
//!   line: `200 :360 :new page:8040 :"double" `.
//! - The file has no header, no times, and no mark at the position where `append = TRUE` continued it.

mod read;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "rprofmem",
    title: "a file of `Rprofmem()`",
    recognises: read::recognises,
    read: Some(read::read),
    r_reader: Some("read_rprofmem"),
    ..Format::NONE
};

#[cfg(test)]
mod tests;
