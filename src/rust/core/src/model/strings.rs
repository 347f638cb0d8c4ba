//! Strings: one row for each distinct text.
//!
//! Names of functions and files repeat in every other table; there they are a
//! [`StringId`]. The bytes stand end to end in one buffer, always UTF-8.

use super::interner::{Interner, next_row};
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryText};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub(crate) u32);

impl StringId {
    /// The row in its table, counted from 0.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default, Clone)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
    index: Interner,
}

impl Strings {
    pub fn intern(&mut self, text: &str) -> Result<StringId> {
        let hash = self.index.hash(text);
        if let Some(row) = self.index.find(hash, |row| self.row(row) == text) {
            return Ok(StringId(row));
        }
        let row = next_row(self.ends.len(), "strings")?;
        self.text.try_push_str(text, "strings")?;
        self.ends.try_push(self.text.len(), "strings")?;
        self.index.insert(hash, row)?;
        Ok(StringId(row))
    }

    pub fn get(&self, id: StringId) -> &str {
        self.row(id.0)
    }

    fn row(&self, row: u32) -> &str {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|row| self.row(row as u32))
    }
}
