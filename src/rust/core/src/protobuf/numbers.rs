//! Numbers in the order of first use, so that equal profiles give equal bytes.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::{Interner, StringId, next_row};
use std::borrow::Cow;

/// The string table. Its first entry is the empty string, which means none.
pub struct Texts<'a> {
    pub texts: Vec<Cow<'a, str>>,
    index: Interner,
    /// The numbers of the model's strings; 0 where not known yet.
    number: Vec<u32>,
}

impl<'a> Texts<'a> {
    pub fn new(strings: usize) -> Result<Texts<'a>> {
        let mut number = Vec::new();
        number.try_fill(strings, 0, "the string table")?;
        let mut texts = Texts {
            texts: Vec::new(),
            index: Interner::default(),
            number,
        };
        texts.of("")?;
        Ok(texts)
    }

    pub fn of(&mut self, text: impl Into<Cow<'a, str>>) -> Result<u64> {
        let text = text.into();
        let hash = self.index.hash(text.as_ref());
        let same = |row: u32| self.texts[row as usize] == text;
        if let Some(row) = self.index.find(hash, same) {
            return Ok(u64::from(row));
        }
        let row = next_row(self.texts.len(), "strings")?;
        self.texts.try_push(text, "the string table")?;
        self.index.insert(hash, row)?;
        Ok(u64::from(row))
    }

    /// The number of a string of the model, whose text is `text`.
    pub fn of_string(&mut self, id: StringId, text: &'a str) -> Result<u64> {
        let known = self.number[id.row()];
        if known != 0 {
            return Ok(u64::from(known));
        }
        let number = self.of(text)?;
        self.number[id.row()] = number as u32;
        Ok(number)
    }
}

/// Distinct byte strings, each stored once, end to end.
#[derive(Default)]
pub struct Pieces {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    index: Interner,
}

impl Pieces {
    /// Stores a piece that is known to be new, and gives its number from 0.
    pub fn push(&mut self, piece: &[u8]) -> Result<u32> {
        let row = next_row(self.ends.len(), "pieces of the output")?;
        self.bytes.try_extend(piece, "the output")?;
        self.ends.try_push(self.bytes.len(), "the output")?;
        Ok(row)
    }

    /// The number of a piece that may be known.
    pub fn intern(&mut self, piece: &[u8]) -> Result<u32> {
        let hash = self.index.hash(piece);
        if let Some(row) = self.index.find(hash, |row| self.get(row) == piece) {
            return Ok(row);
        }
        let row = self.push(piece)?;
        self.index.insert(hash, row)?;
        Ok(row)
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[inline]
    pub fn get(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len() as u32).map(|row| self.get(row))
    }
}
