//! Reads the bytes of the input.

use super::Reader;
use crate::error::{Error, Position, Result};
use crate::formats::problems::ProblemKind;
use crate::limits::cancel;
use crate::message;
use std::io::ErrorKind;

/// The maximum length of a string or number. It exceeds the size of any source file.
const LONGEST: usize = 256 << 20;

impl Reader<'_, '_, '_> {
    /// The next byte that is not white space. This byte is not consumed.
    #[inline]
    pub(super) fn next_byte(&mut self) -> Result<u8> {
        match self.pieces.bytes().get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.fill()?.ok_or_else(|| self.truncated()),
        }
    }

    /// The next byte that is not white space, or `None` at the end of the input.
    pub(super) fn fill(&mut self) -> Result<Option<u8>> {
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

    /// Drops the bytes before `start`, and adds bytes after the others. Returns whether any were added.
    #[cold]
    pub(super) fn more(&mut self, start: usize) -> Result<bool> {
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

    /// The error at the end of the input.
    #[cold]
    pub(super) fn truncated(&mut self) -> Error {
        self.is_truncated = true;
        self.error(message!(
            "The file ends here, inside a value. It may be truncated."
        ))
    }

    pub(super) fn check_length(&self, length: usize) -> Result<()> {
        if length > LONGEST {
            Err(self.error(message!(
                "A string or number of more than {LONGEST} bytes is not supported."
            )))
        } else {
            Ok(())
        }
    }

    pub(super) fn skip_byte_order_mark(&mut self) -> Result<()> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        while self.pieces.bytes().len() < MARK.len() && self.more(0)? {}
        if self.pieces.bytes().starts_with(MARK) {
            self.note(ProblemKind::ByteOrderMark, b"");
            self.at = MARK.len();
        }
        Ok(())
    }
}
