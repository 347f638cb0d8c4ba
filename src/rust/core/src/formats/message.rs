//! Reads a whole protocol buffer message into memory. If the content is not a message, reports what
//! it looks like.
//!
//! The string table may be at the end, after everything that refers to it, so a message cannot be
//! decoded in a single pass while it is read.

use crate::error::{Error, Position, Result};
use crate::formats::bytes::is_text;
use crate::formats::format::{Format, Look};
use crate::formats::problems::Problems;
use crate::io::gzip::Content;
use crate::io::input::Origin;
use crate::io::pieces::{self, PIECE};
use crate::limits::budget::Budget;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use std::io::ErrorKind;

/// The maximum size of a protocol buffer message. Without a limit, a small gzip file of zeros could
/// exhaust the memory.
pub const LARGEST: usize = i32::MAX as usize;
/// The number of bytes examined to detect text.
const SNIFFED: usize = 100;

/// What the reader of a message expects.
#[derive(Clone, Copy)]
pub struct Expected {
    pub format: &'static Format,
    /// Whether this is a valid start of a file that does not start with a field.
    pub other_start: fn(&[u8]) -> bool,
    pub look: Look,
}

/// Reads the whole content, and returns it with the remaining memory budget.
pub fn load(
    content: Content,
    origin: &Origin,
    expected: Expected,
    problems: &mut Problems,
    stop: Stop,
) -> Result<(Vec<u8>, Budget)> {
    let name = &origin.name;
    let mut budget = origin.budget();
    let mut bytes = Vec::new();
    pieces::in_pieces(content, PIECE, |pieces| {
        loop {
            cancel::check(stop)?;
            let count = match pieces.more() {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let position = Position::Byte(bytes.len() as u64);
                    return Err(Error::damaged(name, position, &error));
                }
            };
            let before = bytes.len();
            bytes.try_extend(pieces.bytes())?;
            pieces.keep(count..count);
            budget.take(count as u64, name)?;
            if before == 0 && !starts_with_field(&bytes) && !(expected.other_start)(&bytes) {
                return Err(expected
                    .foreign(name, &bytes)
                    .unwrap_or_else(|| expected.no_message(name)));
            }
            if bytes.len() > LARGEST {
                return Err(Error::Unsupported(message!(
                    "{name} is larger than 2 GiB after decompression, the limit of protocol \
                     buffer messages."
                )));
            }
            if count == 0 {
                problems.padding(pieces.padding(), Position::Byte(bytes.len() as u64));
                return Ok(());
            }
        }
    })?;
    Ok((bytes, budget))
}

/// Whether the first byte can be the tag of a field. In most texts, and in a file of zeros, it
/// cannot.
fn starts_with_field(bytes: &[u8]) -> bool {
    bytes
        .first()
        .is_some_and(|byte| byte >> 3 != 0 && matches!(byte & 7, 0 | 1 | 2 | 5))
}

impl Expected {
    /// The error for content of another format, `None` if it is not recognised. To be called only
    /// after reading the message has failed, since a valid message may start like text.
    pub fn foreign(&self, name: &str, bytes: &[u8]) -> Option<Error> {
        let is_text = || is_text(&bytes[..bytes.len().min(SNIFFED)]);
        let otherwise = match self.look {
            _ if bytes.is_empty() => "it is empty",
            Look::Format(format) if format == self.format => return None,
            Look::Format(_) | Look::Kind(_) | Look::Syntax(_) => "",
            Look::Unknown if is_text() => "its content is text, not a protocol buffer message",
            Look::Unknown => return None,
        };
        Some(self.look.error(name, self.format, otherwise))
    }

    /// The error for content of an unknown format.
    pub fn no_message(&self, name: &str) -> Error {
        let otherwise = "its content is not a protocol buffer message";
        self.look.error(name, self.format, otherwise)
    }
}
