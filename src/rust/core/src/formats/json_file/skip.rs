//! Skips values that are not needed.

use super::{JsonKind, Reader};
use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::message;
use memchr::memchr2;

/// The maximum nesting depth of a skipped value.
pub(super) const DEEPEST: usize = 1 << 20;

impl Reader<'_, '_, '_> {
    /// Skips the next value.
    pub fn skip(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_named) {
            self.names.pop();
        }
        match self.peek()? {
            JsonKind::Text => self.skip_string(),
            JsonKind::Number => self.number().map(drop),
            JsonKind::Word => self.skip_word(),
            JsonKind::Object | JsonKind::Array => self.skip_nested(),
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

    /// Skips an object or array. Only its brackets and strings are checked.
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
                // The codes of the two brackets of a pair differ by 2.
                b'[' | b'{' if open.len() == DEEPEST => {
                    return Err(self.error(message!(
                        "Values are nested more than {DEEPEST} levels deep."
                    )));
                }
                b'[' | b'{' => open.try_push(mark + 2)?,
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
}
