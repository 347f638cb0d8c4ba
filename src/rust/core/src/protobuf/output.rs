//! Buffers the fields of a message that is written.
//!
//! Compression is faster for large blocks, so small fields are collected first.

use super::encode;
use crate::error::Result;
use crate::io::save;
use crate::limits::memory::{TryGrow, with_room};
use std::io::Write;

const CHUNK: usize = 1 << 16;

pub struct Output<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
}

impl<'o> Output<'o> {
    pub fn new(out: &'o mut dyn Write) -> Result<Output<'o>> {
        Ok(Output {
            out,
            buffer: with_room(CHUNK)?,
        })
    }

    /// Writes a field; its content is the concatenation of `parts`.
    pub fn field(&mut self, number: u32, parts: &[&[u8]]) -> Result<()> {
        self.header(number, parts.iter().map(|part| part.len()).sum())?;
        parts.iter().try_for_each(|part| self.bytes(part))
    }

    /// Writes the tag and the length of a field, whose content follows.
    pub fn header(&mut self, number: u32, length: usize) -> Result<()> {
        if self.buffer.len() + encode::MAX_VARINT_FIELD > CHUNK {
            self.flush()?;
        }
        encode::put_length_header(&mut self.buffer, number, length);
        Ok(())
    }

    /// Writes encoded fields, or content of a field.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > CHUNK {
            self.flush()?;
        }
        if bytes.len() > CHUNK {
            return self.out.write_all(bytes).map_err(save::failed);
        }
        self.buffer.try_extend(bytes)
    }

    pub fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.buffer).map_err(save::failed)?;
        self.buffer.clear();
        Ok(())
    }
}
