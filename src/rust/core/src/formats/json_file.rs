//! Reads files of JSON value by value: the caller asks for what it expects, and skips the rest.
//!
//! Fields may come in any order, and values that are not needed may be nested to any depth, so nothing
//! here is recursive. Only a piece of the file is in memory, and the current string if it is longer.
//!
//! ```text
//! json.begin_object()?;
//! while let Some(key) = json.key()? {
//!     match key.as_str() {
//!         "name" => name = owned(json.text()?)?,
//!         _ => json.skip()?,
//!     }
//! }
//! ```
//!
//! A field that occurs twice in an object is an error, as one of its values would get lost. Fields that are skipped may
//! occur repeatedly.

mod bytes;
mod skip;
mod values;

use super::format::{Format, Look, Opened};
use super::problems::{ProblemKind, Problems};
use super::signatures;
use crate::error::{Error, Foreign, Position, Result};
use crate::io::pieces::{self, PIECE, Pieces};
use crate::limits::budget::Budget;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::SourceKind;

/// The number of bytes from which the format is detected.
const START: u64 = 1 << 16;

/// Reads an object: the values of these fields, of which there may be any, in any order. Others are skipped.
macro_rules! fields {
    ($json:ident, $($name:pat $(if $when:expr)? => $read:expr,)*) => {
        $json.begin_object()?;
        while let Some(key) = $json.key()? {
            match key.as_str() {
                $($name $(if $when)? => $read,)*
                _ => $json.skip()?,
            }
        }
    };
}
pub(crate) use fields;

/// Calls `work` with a reader for the content.
pub fn read<'env, T>(
    mut opened: Opened<'env>,
    stop: Stop,
    work: impl FnOnce(&mut Reader) -> Result<T>,
) -> Result<(T, Problems)> {
    check_start(&mut opened)?;
    in_pieces(opened, PIECE, stop, work)
}

/// Returns an error if the content is not JSON, or of another format.
fn check_start(opened: &mut Opened) -> Result<()> {
    let input = &opened.origin.name;
    let start = opened.content.peek(START);
    let start = start.map_err(|error| Error::damaged(input, Position::Byte(0), &error))?;
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let otherwise = match (text.trim_ascii_start().first(), opened.look) {
        (None, _) => "it is empty",
        (_, Look::Format(format)) if format != opened.format => "",
        // The fields by which the format is recognised may come later.
        (Some(b'{' | b'['), _) => return Ok(()),
        _ => "its content is not JSON",
    };
    Err(opened.look.error(input, opened.format, otherwise))
}

fn in_pieces<'env, T>(
    opened: Opened<'env>,
    size: usize,
    stop: Stop,
    work: impl FnOnce(&mut Reader) -> Result<T>,
) -> Result<(T, Problems)> {
    pieces::in_pieces(opened.content, size, |pieces| {
        let mut json = Reader {
            budget: opened.origin.budget(),
            input: opened.origin.name,
            format: opened.format,
            pieces,
            stop,
            at: 0,
            before: 0,
            is_first: false,
            is_truncated: false,
            is_ended: false,
            names: Vec::new(),
            objects: Vec::new(),
            is_named: false,
            text: String::new(),
            bytes: Vec::new(),
            problems: Problems::default(),
        };
        json.skip_byte_order_mark()?;
        let result = work(&mut json)?;
        let end = Position::Byte(json.position());
        json.problems.padding(json.pieces.padding(), end);
        Ok((result, json.problems))
    })
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    Object,
    Array,
    Text,
    Number,
    /// `true`, `false` or `null`.
    Word,
}

/// The name of a field, up to the length of those that formats define; longer ones are truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; Key::LONGEST],
    length: usize,
}

impl Key {
    const LONGEST: usize = 40;

    fn new(name: &[u8]) -> Key {
        let mut bytes = [0; Key::LONGEST];
        let length = name.len().min(Key::LONGEST);
        bytes[..length].copy_from_slice(&name[..length]);
        Key { bytes, length }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

pub struct Reader<'r, 'scope, 'env> {
    pieces: &'r mut Pieces<'scope, 'env>,
    stop: Stop<'r>,
    /// The name of the input in messages.
    pub input: String,
    /// The format as which it is read.
    format: &'static Format,
    /// The position of the next byte in the bytes of the pieces.
    at: usize,
    /// The number of bytes of the input before these.
    before: u64,
    /// Whether no element of the current object or array was read.
    is_first: bool,
    /// Whether the input ended inside a value.
    is_truncated: bool,
    /// Whether all bytes have been read.
    is_ended: bool,
    /// The names of fields of the current objects that were not skipped, and the start of each object's names.
    names: Vec<Key>,
    objects: Vec<usize>,
    /// Whether the next value is the one of the last name.
    is_named: bool,
    /// The last text.
    text: String,
    bytes: Vec<u8>,
    pub problems: Problems,
    budget: Budget,
}

impl Reader<'_, '_, '_> {
    /// The offset of the next byte in the input.
    pub fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The kind of sources that are read from the file.
    pub fn source_kind(&self) -> SourceKind {
        SourceKind::named(self.format.name)
    }

    /// The error for a problem at the next byte.
    pub fn error(&self, message: String) -> Error {
        self.error_at(self.position(), message)
    }

    pub fn error_at(&self, byte: u64, message: String) -> Error {
        Error::Parse {
            input: message!("{}", self.input),
            position: Position::Byte(byte),
            message,
        }
    }

    /// An error that describes what was expected at the next byte.
    pub fn expected(&mut self, what: &str) -> Error {
        let end = self.pieces.bytes().len().min(self.at + 20);
        let rest = self.pieces.bytes().get(self.at..end).unwrap_or_default();
        let found = rest.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        self.error(message!(
            "Expected {what}, found `{}`.",
            found.escape_default()
        ))
    }

    pub fn note(&mut self, kind: ProblemKind, text: &[u8]) {
        let position = Position::Byte(self.position());
        self.problems.note(kind, position, text);
    }

    /// Takes memory for data of the file from the budget.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.budget.take(bytes as u64, &self.input)
    }

    /// Takes the memory of samples with this number of frames from the budget.
    #[inline]
    pub fn take_samples(&mut self, count: usize, frames: usize) -> Result<()> {
        self.budget.samples(count, frames, &self.input)
    }

    /// Checks once in many rows whether to stop.
    pub fn check(&self, row: usize) -> Result<()> {
        cancel::at_row(row, self.stop)
    }

    /// The kind of the next value.
    pub fn peek(&mut self) -> Result<JsonKind> {
        Ok(match self.next_byte()? {
            b'{' => JsonKind::Object,
            b'[' => JsonKind::Array,
            b'"' => JsonKind::Text,
            b'-' | b'0'..=b'9' => JsonKind::Number,
            b't' | b'f' | b'n' => JsonKind::Word,
            _ => return Err(self.expected("a value")),
        })
    }

    pub fn begin_object(&mut self) -> Result<()> {
        self.begin(b'{', "an object")?;
        self.objects.try_push(self.names.len())
    }

    pub fn begin_array(&mut self) -> Result<()> {
        self.begin(b'[', "an array")
    }

    fn begin(&mut self, bracket: u8, what: &str) -> Result<()> {
        if self.next_byte()? != bracket {
            return Err(self.expected(what));
        }
        self.at += 1;
        self.is_first = true;
        self.is_named = false;
        Ok(())
    }

    /// The name of the next field of an object; `None` at its end.
    pub fn key(&mut self) -> Result<Option<Key>> {
        if !self.next_in(b'}')? {
            self.names.truncate(self.objects.pop().unwrap_or(0));
            return Ok(None);
        }
        if self.next_byte()? != b'"' {
            return Err(self.expected("the name of a field"));
        }
        let (range, escaped) = self.string()?;
        let name = &self.pieces.bytes()[range];
        let key = if escaped {
            // Names that formats define need no escapes, so this one is not known.
            Key::new(b"\\")
        } else {
            Key::new(name)
        };
        if self.next_byte()? != b':' {
            return Err(self.expected("`:`"));
        }
        self.at += 1;
        let first = self.objects.last().copied().unwrap_or(0);
        if self.names[first..].contains(&key) {
            let message = message!("The field `{}` occurs twice in this object.", key.as_str());
            return Err(self.error(message));
        }
        self.names.try_push(key)?;
        self.is_named = true;
        Ok(Some(key))
    }

    /// Whether an array has another element. If so, that is the next value.
    #[inline]
    pub fn element(&mut self) -> Result<bool> {
        self.next_in(b']')
    }

    /// Whether an array that need not be closed has another element: it may end with the input, after an element or a comma.
    pub fn element_or_end(&mut self) -> Result<bool> {
        let is_first = self.is_first;
        match self.fill()? {
            None => Ok(false),
            Some(b',') if !is_first => {
                self.at += 1;
                match self.fill()? {
                    None => Ok(false),
                    Some(b']') => Err(self.expected("a value")),
                    Some(_) => Ok(true),
                }
            }
            Some(_) => self.element(),
        }
    }

    fn next_in(&mut self, end: u8) -> Result<bool> {
        let byte = self.next_byte()?;
        if byte == end {
            self.at += 1;
            self.is_first = false;
            return Ok(false);
        }
        if !std::mem::take(&mut self.is_first) {
            if byte != b',' {
                let end = char::from(end);
                return Err(self.expected(&message!("`,` or `{end}`")));
            }
            self.at += 1;
            if self.next_byte()? == end {
                return Err(self.expected("a value"));
            }
        }
        Ok(true)
    }

    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// The error for a file in which nothing of this format was found.
    pub fn foreign(&self, found: &str) -> Error {
        Error::Foreign(Foreign {
            input: message!("{}", self.input),
            wanted: self.format.title,
            found: message!("{found}"),
            looks_like: None,
            remedy: "",
        })
    }

    /// The error for a file that is of a kind which cannot be read.
    pub fn is_of_kind(&self, kind: &'static signatures::FileKind) -> Error {
        Look::Kind(kind).error(&self.input, self.format, "")
    }

    /// Checks that nothing follows the last value.
    pub fn finish(&mut self) -> Result<()> {
        if self.fill()?.is_some() {
            let rest = &self.pieces.bytes()[self.at..];
            let position = Position::Byte(self.position());
            self.problems.note(ProblemKind::StrayText, position, rest);
        }
        Ok(())
    }

    /// Accepts the end of the input inside a value. Everything that was read before it is used.
    pub fn accept_end(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Err(_) if self.is_truncated => {
                self.note(ProblemKind::CutJson, b"");
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => self.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
