//! Pages in HTML that hold a profile as data: where the data are.
//!
//! HTML is not parsed: the programs that write these pages write the element with the data in one way, and escape what
//! would end it.

use super::format::Opened;
use super::message::{Expected, load as load_bytes};
use super::problems::Problems;
use super::signatures::pages::holds_profile;
use crate::error::{Error, Position, Result};
use crate::limits::cancel::Stop;
use crate::message;
use memchr::memmem;

const END: &[u8] = b"</script>";

/// The bytes of a page, which has been recognised.
pub fn load(opened: Opened, stop: Stop) -> Result<Vec<u8>> {
    let expected = Expected {
        format: opened.format,
        other_start: |_| true,
        look: opened.look,
    };
    // Bytes after a compressed page are not reported.
    let mut problems = Problems::default();
    let (bytes, _) = load_bytes(
        opened.content,
        &opened.origin,
        expected,
        &mut problems,
        stop,
    )?;
    if holds_profile(&bytes) {
        Ok(bytes)
    } else {
        let otherwise = "it is not such a page";
        Err(opened
            .look
            .error(&opened.origin.name, opened.format, otherwise))
    }
}

/// The texts of the scripts that start with `tag`, up to the end of their tags, and whether their ends were found.
pub fn scripts<'h>(html: &'h [u8], tag: &'h [u8]) -> impl Iterator<Item = (&'h [u8], bool)> {
    memmem::find_iter(html, tag).map(move |at| {
        let rest = &html[at + tag.len()..];
        match memmem::find(rest, END) {
            Some(end) => (&rest[..end], true),
            None => (rest, false),
        }
    })
}

/// The error for a page without its data.
pub fn damaged(input: &str, html: &[u8], found: &str) -> Error {
    Error::Parse {
        input: message!("{input}"),
        position: Position::Byte(html.len() as u64),
        message: message!("{found} The file may be truncated."),
    }
}
