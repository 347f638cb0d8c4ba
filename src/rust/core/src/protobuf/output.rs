//! Fields on their way out.
//!
//! A compressor works on large pieces best, so small fields are gathered first.

use super::wire;
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
            buffer: with_room(CHUNK, "the output")?,
        })
    }

    /// One field, whose content is given in parts.
    pub fn field(&mut self, number: u32, parts: &[&[u8]]) -> Result<()> {
        self.head(number, parts.iter().map(|part| part.len()).sum())?;
        parts.iter().try_for_each(|part| self.bytes(part))
    }

    /// The start of a field whose content of so many bytes follows.
    pub fn head(&mut self, number: u32, length: usize) -> Result<()> {
        if self.buffer.len() + wire::LONGEST_FIELD > CHUNK {
            self.flush()?;
        }
        wire::put_head(&mut self.buffer, number, length);
        Ok(())
    }

    /// Fields that are encoded already.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > CHUNK {
            self.flush()?;
        }
        if bytes.len() > CHUNK {
            return self.out.write_all(bytes).map_err(save::failed);
        }
        self.buffer.try_extend(bytes, "the output")
    }

    pub fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.buffer).map_err(save::failed)?;
        self.buffer.clear();
        Ok(())
    }
}
