//! Gets the whole message into memory, and tells what is none.
//!
//! The string table may stand at the end, after all that refers to it, so a
//! message cannot be read in one go from start to end.

use crate::error::{Error, Place, Result};
use crate::formats::detect::{self, Format};
use crate::formats::problems::Problems;
use crate::io::gzip::Content;
use crate::io::input::Origin;
use crate::limits::budget::Budget;
use crate::limits::cancel::{self, Stop};
use crate::message;
use std::io::Read;

const CHUNK: usize = 1 << 20;
/// Bytes between two questions whether to stop, for all who go through a message.
pub const STRIDE: usize = 1 << 20;
/// Asks whether to stop once for so many bytes.
pub struct Watch<'s> {
    stop: Stop<'s>,
    next: usize,
}

impl<'s> Watch<'s> {
    pub fn new(stop: Stop<'s>) -> Watch<'s> {
        Watch { stop, next: 0 }
    }

    /// Byte `at` is reached.
    #[inline]
    pub fn reach(&mut self, at: usize) -> Result<()> {
        if at >= self.next {
            cancel::check(self.stop)?;
            self.next = at + STRIDE;
        }
        Ok(())
    }
}

/// No protocol buffer message is larger. A few kilobytes of gzip'd zeros would
/// otherwise fill any memory.
pub const LARGEST: usize = i32::MAX as usize;
/// The bytes of a length.
const FRAME: usize = 4;
/// What is looked at to tell a foreign format.
const SNIFFED: usize = 100;

/// What a reader reads.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// As in "a pprof profile".
    pub what: &'static str,
    pub format: Format,
}

/// Reads everything; gives what memory is left for the tables, too.
pub fn load(
    mut content: Content<impl Read>,
    origin: &Origin,
    wanted: Wanted,
    problems: &mut Problems,
    stop: Stop,
) -> Result<(Vec<u8>, Budget)> {
    let name = &origin.name;
    let mut budget = Budget::new(origin);
    let mut bytes = Vec::new();
    loop {
        cancel::check(stop)?;
        bytes
            .try_reserve(CHUNK)
            .map_err(|_| Error::Memory(wanted.what))?;
        let before = bytes.len();
        let read = content.by_ref().take(CHUNK as u64).read_to_end(&mut bytes);
        if let Err(error) = read {
            let place = Place::Byte(bytes.len() as u64);
            return Err(Error::damaged(name, place, &error));
        }
        budget.take((bytes.len() - before) as u64, name)?;
        // Messages of OpenTelemetry may be JSON, or follow each other with their lengths.
        let otlp = || {
            let framed = bytes.first() == Some(&0) && bytes.len() > FRAME;
            wanted.format == Format::Otlp && (detect::is_json(&bytes) || framed)
        };
        if before == 0 && !could_be_message(&bytes) && !otlp() {
            return Err(foreign(name, wanted, &bytes).unwrap_or_else(|| no_message(name, wanted)));
        }
        if bytes.len() > LARGEST {
            return Err(Error::Unsupported(message!(
                "{name} is larger than 2 GiB after decompression, which no protocol buffer \
                 message may be."
            )));
        }
        if bytes.len() == before {
            content.note_padding(Place::Byte(bytes.len() as u64), problems);
            return Ok((bytes, budget));
        }
    }
}

/// Whether the first byte can be the tag of a field, which that of most texts
/// and a row of zeros is not.
fn could_be_message(bytes: &[u8]) -> bool {
    bytes
        .first()
        .is_some_and(|byte| byte >> 3 != 0 && matches!(byte & 7, 0 | 1 | 2 | 5))
}

/// What the content is instead; asked once it turned out to be no such message, since
/// a message may start like text.
pub fn foreign(name: &str, wanted: Wanted, bytes: &[u8]) -> Option<Error> {
    let found = match detect::of(bytes) {
        _ if bytes.is_empty() => "it is empty.",
        Some(format) if format == wanted.format => return None,
        Some(format) => format.hint(),
        None if detect::is_text(&bytes[..bytes.len().min(SNIFFED)]) => {
            "its content is no protocol buffer message, but text."
        }
        None => return None,
    };
    Some(Error::Foreign {
        input: message!("{name}"),
        wanted: wanted.what,
        found: message!("{found}"),
    })
}

/// What is said of content that resembles nothing.
pub fn no_message(name: &str, wanted: Wanted) -> Error {
    Error::Foreign {
        input: message!("{name}"),
        wanted: wanted.what,
        found: message!("its content is no protocol buffer message."),
    }
}
