//! Strings, numbers, `true` and `false`.

use super::{JsonKind, Reader};
use crate::error::{Error, Position, Result};
use crate::formats::problems::ProblemKind;
use crate::json::token::{self, Escape, Number};
use crate::limits::memory::TryText;
use crate::message;
use memchr::{memchr, memchr2, memchr3};
use std::ops::Range;

impl Reader<'_, '_, '_> {
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
                self.text.try_push_str(text)?;
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
        let position = Position::Byte(start);
        let text = self.problems.decode(&self.bytes, position)?;
        self.text.try_push_str(&text)?;
        Ok(&self.text)
    }

    /// The next value if it is a string. Any other value is skipped.
    pub fn text_if_any(&mut self) -> Result<Option<&str>> {
        match self.peek()? {
            JsonKind::Text => self.text().map(Some),
            _ => self.skip().map(|()| None),
        }
    }

    /// Whether the next value is `true`.
    pub fn is_true(&mut self) -> Result<bool> {
        let is_true = self.next_byte()? == b't';
        self.skip()?;
        Ok(is_true)
    }

    /// The range of the characters of the next value, a string, and whether it has escapes.
    pub(super) fn string(&mut self) -> Result<(Range<usize>, bool)> {
        let mut escaped = false;
        // Starts after the quote.
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

    /// The next value, a number.
    pub fn number(&mut self) -> Result<Number> {
        self.next_byte()?;
        // Most numbers are small and whole, and do not end at the end of a piece.
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

    /// The next value if it is a number. Any other value is skipped.
    pub fn number_if_any(&mut self) -> Result<Option<Number>> {
        match self.peek()? {
            JsonKind::Number => self.number().map(Some),
            _ => self.skip().map(|()| None),
        }
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

    /// The text of the next value, an array of numbers, without brackets; `None` if it has other elements. It is
    /// then not consumed. If an array occurs often, comparing its text is faster than parsing it.
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
}
