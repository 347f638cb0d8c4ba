//! Reads JSON value by value: the caller asks for what it expects, and skips the rest.
//!
//! Fields may come in any order, and values that nobody asks for may be nested to any depth, so nothing
//! here is recursive. In memory are a piece of the file and, where it is longer, one string.
//!
//! ```text
//! json.begin_object()?;
//! while let Some(key) = json.key()? {
//!     match key.as_str() {
//!         "name" => name = owned(json.text()?, WHAT)?,
//!         _ => json.skip()?,
//!     }
//! }
//! ```

use super::token::{self, Escape, Number};
use crate::error::{Error, Foreign, Position, Result};
use crate::formats::format::{Format, Opened};
use crate::formats::problems::{ProblemKind, Problems};
use crate::io::pieces::{self, PIECE, Pieces};
use crate::limits::budget::Budget;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, TryText};
use crate::message;
use crate::text::{Was, decode};
use memchr::{memchr, memchr2, memchr3};
use std::io::ErrorKind;
use std::ops::Range;

const WHAT: &str = "a text";
/// The number of bytes from which the format is detected.
const START: u64 = 1 << 16;
/// The maximum length of a string or number, more than any source file has.
const LONGEST: usize = 256 << 20;
/// How deep a value may be nested that is skipped.
const DEEPEST: usize = 1 << 20;

/// Calls `work` with a reader of the content.
pub fn read<'env, T>(
    mut opened: Opened<'env>,
    stop: Stop,
    work: impl FnOnce(&mut Reader) -> Result<T>,
) -> Result<(T, Problems)> {
    check_start(&mut opened)?;
    in_pieces(opened, PIECE, stop, work)
}

/// An error if the content is not JSON, or of another format.
fn check_start(opened: &mut Opened) -> Result<()> {
    let input = &opened.origin.name;
    let start = opened.content.peek(START);
    let start = start.map_err(|error| Error::damaged(input, Position::Byte(0), &error))?;
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    let other = (opened.recognise)(start).filter(|format| *format != opened.format);
    let (found, looks_like) = match (text.trim_ascii_start().first(), other) {
        (None, _) => (message!("it is empty"), None),
        (_, Some(other)) => (message!("it looks like {}", other.title), Some(other.name)),
        (Some(b'{' | b'['), None) => return Ok(()),
        _ => (message!("its content is not JSON"), None),
    };
    Err(Error::Foreign(Foreign {
        input: message!("{input}"),
        wanted: opened.format.title,
        found,
        looks_like,
    }))
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
            pieces,
            stop,
            at: 0,
            before: 0,
            is_first: false,
            is_truncated: false,
            is_ended: false,
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
pub enum Kind {
    Object,
    Array,
    Text,
    Number,
    /// `true`, `false` or `null`.
    Word,
}

/// The name of a field, up to the length of those that formats define; longer ones are truncated.
#[derive(Debug, Clone, Copy)]
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
    /// The next byte among those of the pieces.
    at: usize,
    /// The number of bytes before those of the pieces.
    before: u64,
    /// Whether no element of the current object or array was read.
    is_first: bool,
    /// Whether the input ended inside a value.
    is_truncated: bool,
    /// Whether all bytes have been read.
    is_ended: bool,
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

    /// An error at the next byte.
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

    pub fn check(&self) -> Result<()> {
        cancel::check(self.stop)
    }

    /// The kind of the next value.
    pub fn peek(&mut self) -> Result<Kind> {
        Ok(match self.next_byte()? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::Text,
            b'-' | b'0'..=b'9' => Kind::Number,
            b't' | b'f' | b'n' => Kind::Word,
            _ => return Err(self.expected("a value")),
        })
    }

    pub fn begin_object(&mut self) -> Result<()> {
        self.begin(b'{', "an object")
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
        Ok(())
    }

    /// The name of the next field of an object; `None` at its end.
    pub fn key(&mut self) -> Result<Option<Key>> {
        if !self.next_in(b'}')? {
            return Ok(None);
        }
        if self.next_byte()? != b'"' {
            return Err(self.expected("the name of a field"));
        }
        let (range, escaped) = self.string()?;
        let name = &self.pieces.bytes()[range];
        let key = match escaped {
            false => Key::new(name),
            // No name that formats define needs an escape.
            true => Key::new(b"\\"),
        };
        if self.next_byte()? != b':' {
            return Err(self.expected("`:`"));
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Whether an array has another element, which is next.
    #[inline]
    pub fn element(&mut self) -> Result<bool> {
        self.next_in(b']')
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

    /// The next value, a string.
    pub fn text(&mut self) -> Result<&str> {
        if self.next_byte()? != b'"' {
            return Err(self.expected("a string"));
        }
        let start = self.position();
        let (range, escaped) = self.string()?;
        let string = &self.pieces.bytes()[range];
        self.text.clear();
        if !escaped && memchr(0, string).is_none() {
            if let Ok(text) = std::str::from_utf8(string) {
                self.text.try_push_str(text, WHAT)?;
                return Ok(&self.text);
            }
        }
        self.bytes.clear();
        let (input, problems) = (&self.input, &mut self.problems);
        token::unescape(string, &mut self.bytes, |offset, what| {
            let position = Position::Byte(start + 1 + offset as u64);
            match what {
                Escape::Half => problems.note(ProblemKind::HalfCharacter, position, b""),
                Escape::Unknown => {
                    return Err(Error::Parse {
                        input: message!("{input}"),
                        position,
                        message: message!("This escape sequence is not valid in JSON."),
                    });
                }
            }
            Ok(())
        })?;
        let decoded = decode(&self.bytes)?;
        let kind = match decoded.was {
            Was::Utf8 => None,
            Was::Latin1 => Some(ProblemKind::NotUtf8),
            Was::CutUtf8 => Some(ProblemKind::CutName),
            Was::Nul => Some(ProblemKind::NulByte),
        };
        if let Some(kind) = kind {
            let position = Position::Byte(start);
            self.problems.note(kind, position, &self.bytes);
        }
        self.text.try_push_str(&decoded.text, WHAT)?;
        Ok(&self.text)
    }

    /// The next value if it is a string. Any other value is skipped.
    pub fn text_if_any(&mut self) -> Result<Option<&str>> {
        match self.peek()? {
            Kind::Text => self.text().map(Some),
            _ => self.skip().map(|()| None),
        }
    }

    /// The next value if it is a number. Any other value is skipped.
    pub fn number_if_any(&mut self) -> Result<Option<Number>> {
        match self.peek()? {
            Kind::Number => self.number().map(Some),
            _ => self.skip().map(|()| None),
        }
    }

    /// The next value, a number.
    pub fn number(&mut self) -> Result<Number> {
        self.next_byte()?;
        // Most numbers are small, whole, and do not end with a piece.
        let bytes = &self.pieces.bytes()[self.at..];
        let digits = bytes.iter().take(19).take_while(|b| b.is_ascii_digit());
        let count = digits.count();
        if let (1..=18, Some(b',' | b']' | b'}' | b' ' | b'\n')) = (count, bytes.get(count)) {
            if bytes[0] != b'0' || count == 1 {
                let digits = bytes[..count].iter();
                let number = digits.fold(0, |all, digit| all * 10 + i64::from(digit - b'0'));
                self.at += count;
                return Ok(Number::Whole(number));
            }
        }
        self.other_number()
    }

    #[cold]
    fn other_number(&mut self) -> Result<Number> {
        let is_number = |&byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let mut length = 0;
        loop {
            let rest = &self.pieces.bytes()[self.at + length..];
            length += rest.iter().take_while(|byte| is_number(byte)).count();
            if self.at + length < self.pieces.bytes().len() {
                break;
            }
            self.check_length(length)?;
            if !self.more(self.at)? {
                // The number may have more digits.
                return Err(self.truncated());
            }
        }
        match token::number(&self.pieces.bytes()[self.at..self.at + length]) {
            Some(number) => {
                self.at += length;
                Ok(number)
            }
            None => Err(self.expected("a number")),
        }
    }

    /// The text of the next value, an array of numbers, without brackets; `None` if it has other elements, and
    /// is next. If an array occurs often, its text is faster to compare than to parse.
    pub fn numbers_as_text(&mut self) -> Result<Option<&[u8]>> {
        if self.next_byte()? != b'[' {
            return Err(self.expected("an array"));
        }
        let mut length = 1;
        loop {
            let rest = &self.pieces.bytes()[self.at + length..];
            if let Some(found) = memchr(b']', rest) {
                length += found;
                break;
            }
            length += rest.len();
            self.check_length(length)?;
            if !self.more(self.at)? {
                return Err(self.truncated());
            }
        }
        let range = self.at + 1..self.at + length;
        if memchr3(b'[', b'{', b'"', &self.pieces.bytes()[range.clone()]).is_some() {
            return Ok(None);
        }
        self.at += length + 1;
        self.is_first = false;
        Ok(Some(&self.pieces.bytes()[range]))
    }

    /// The next value if it is `true` or `false`. Any other value is skipped.
    pub fn flag(&mut self) -> Result<Option<bool>> {
        let flag = match self.next_byte()? {
            b't' => Some(true),
            b'f' => Some(false),
            _ => None,
        };
        self.skip()?;
        Ok(flag)
    }

    /// Skips the next value.
    pub fn skip(&mut self) -> Result<()> {
        match self.peek()? {
            Kind::Text => self.skip_string(),
            Kind::Number => self.number().map(drop),
            Kind::Word => self.skip_word(),
            Kind::Object | Kind::Array => self.skip_nested(),
        }
    }

    fn skip_word(&mut self) -> Result<()> {
        for word in [&b"true"[..], b"false", b"null"] {
            while self.pieces.bytes().len() - self.at <= word.len() && self.more(self.at)? {}
            let rest = &self.pieces.bytes()[self.at..];
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(());
            }
            if word.starts_with(rest) {
                return Err(self.truncated());
            }
        }
        Err(self.expected("a value"))
    }

    /// Skips an object or array. Only its brackets and strings are looked at.
    fn skip_nested(&mut self) -> Result<()> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            let bytes = &self.pieces.bytes()[self.at..];
            let is_mark = |byte: &u8| matches!(byte, b'"' | b'[' | b']' | b'{' | b'}');
            let Some(found) = bytes.iter().position(is_mark) else {
                self.at += bytes.len();
                if !self.more(self.at)? {
                    return Err(self.truncated());
                }
                continue;
            };
            let mark = bytes[found];
            self.at += found;
            match mark {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                // The brackets of a pair differ by 2.
                b'[' | b'{' if open.len() == DEEPEST => {
                    return Err(self.error(message!(
                        "Values are nested more than {DEEPEST} levels deep."
                    )));
                }
                b'[' | b'{' => open.try_push(mark + 2, "nested values")?,
                _ if open.pop() != Some(mark) => return Err(self.expected("a value")),
                _ => {}
            }
            self.at += 1;
            if open.is_empty() {
                self.is_first = false;
                return Ok(());
            }
        }
    }

    fn skip_string(&mut self) -> Result<()> {
        self.at += 1;
        loop {
            let rest = &self.pieces.bytes()[self.at..];
            match memchr2(b'"', b'\\', rest) {
                Some(found) if rest[found] == b'"' => {
                    self.at += found + 1;
                    return Ok(());
                }
                Some(found) if found + 1 < rest.len() => {
                    self.at += found + 2;
                    continue;
                }
                Some(found) => self.at += found,
                None => self.at += rest.len(),
            }
            if !self.more(self.at)? {
                return Err(self.truncated());
            }
        }
    }

    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// The error for a file in which nothing of this format was found.
    pub fn foreign(&self, wanted: &Format, found: &str) -> Error {
        Error::Foreign(Foreign {
            input: message!("{}", self.input),
            wanted: wanted.title,
            found: message!("{found}"),
            looks_like: None,
        })
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

    /// Accepts the end of the input inside a value: what was read before is used.
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

    /// An error that says what was expected at the next byte.
    pub fn expected(&mut self, what: &str) -> Error {
        let end = self.pieces.bytes().len().min(self.at + 20);
        let rest = self.pieces.bytes().get(self.at..end).unwrap_or_default();
        let found = rest.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        self.error(message!(
            "Expected {what}, found `{}`.",
            found.escape_default()
        ))
    }

    /// The range of the characters of the next value, a string, and whether it has escapes.
    fn string(&mut self) -> Result<(Range<usize>, bool)> {
        let mut escaped = false;
        // Behind the quote.
        let mut searched = 1;
        loop {
            let rest = &self.pieces.bytes()[self.at + searched..];
            match memchr2(b'"', b'\\', rest) {
                Some(found) if rest[found] == b'"' => {
                    let range = self.at + 1..self.at + searched + found;
                    self.at = range.end + 1;
                    return Ok((range, escaped));
                }
                Some(found) if found + 1 < rest.len() => {
                    escaped = true;
                    searched += found + 2;
                    continue;
                }
                Some(found) => searched += found,
                None => searched += rest.len(),
            }
            self.check_length(searched)?;
            if !self.more(self.at)? {
                return Err(self.truncated());
            }
        }
    }

    fn check_length(&self, length: usize) -> Result<()> {
        match length > LONGEST {
            true => Err(self.error(message!(
                "A string or number of more than {LONGEST} bytes is not supported."
            ))),
            false => Ok(()),
        }
    }

    /// The next byte that is not white space, which is not skipped.
    #[inline]
    fn next_byte(&mut self) -> Result<u8> {
        match self.pieces.bytes().get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.fill()?.ok_or_else(|| self.truncated()),
        }
    }

    /// The same, or `None` at the end of the input.
    fn fill(&mut self) -> Result<Option<u8>> {
        loop {
            let rest = &self.pieces.bytes()[self.at..];
            let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
            let blanks = rest.iter().take_while(is_blank).count();
            self.at += blanks;
            if let Some(&byte) = self.pieces.bytes().get(self.at) {
                return Ok(Some(byte));
            }
            if !self.more(self.at)? {
                return Ok(None);
            }
        }
    }

    /// The error at the end of the input.
    #[cold]
    fn truncated(&mut self) -> Error {
        self.is_truncated = true;
        self.error(message!(
            "The file ends here, inside a value. It may be truncated."
        ))
    }

    /// Adds bytes behind those from `start` on; the ones before are dropped. Returns whether there
    /// are any.
    #[cold]
    fn more(&mut self, start: usize) -> Result<bool> {
        let length = self.pieces.bytes().len();
        self.pieces.keep(start..length);
        self.before += start as u64;
        self.at -= start;
        while !self.is_ended {
            cancel::check(self.stop)?;
            match self.pieces.more() {
                Ok(count) => {
                    self.is_ended = count == 0;
                    return Ok(!self.is_ended);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.is_ended = true;
                    let end = self.before + self.pieces.bytes().len() as u64;
                    let position = Position::Byte(end);
                    self.problems.note(ProblemKind::CutGzip, position, b"");
                }
                Err(error) => {
                    let end = self.before + self.pieces.bytes().len() as u64;
                    return Err(Error::damaged(&self.input, Position::Byte(end), &error));
                }
            }
        }
        Ok(false)
    }

    fn skip_byte_order_mark(&mut self) -> Result<()> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        while self.pieces.bytes().len() < MARK.len() && self.more(0)? {}
        if self.pieces.bytes().starts_with(MARK) {
            self.note(ProblemKind::ByteOrderMark, b"");
            self.at = MARK.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
