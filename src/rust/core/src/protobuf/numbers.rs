//! Numbers in the order of first use, so that equal profiles give equal bytes.

use crate::collections::{Index, Interner, Lists, next_row};
use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::StringId;
use std::borrow::Cow;

/// The string table. Its first entry is the empty string, which means none.
pub struct Texts<'a> {
    pub texts: Vec<Cow<'a, str>>,
    index: Index,
    /// The numbers of the model's strings; 0 where not known yet.
    number: Vec<u32>,
}

impl<'a> Texts<'a> {
    pub fn new(strings: usize) -> Result<Texts<'a>> {
        let mut number = Vec::new();
        number.try_fill(strings, 0, "the string table")?;
        let mut texts = Texts {
            texts: Vec::new(),
            index: Index::default(),
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

/// Distinct byte strings.
pub type Pieces = Interner<Lists<u8>>;
