//! What a text meant the last time.
//!
//! Lines and items repeat, and the same bytes mean the same thing until a
//! `#File` line or a header says otherwise. The bytes are compared whole: a hash
//! alone would be a guess.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::{Interner, next_row};

#[derive(Debug)]
pub struct TextCache<T> {
    text: Vec<u8>,
    rows: Vec<(usize, T)>,
    index: Interner,
}

impl<T> Default for TextCache<T> {
    fn default() -> Self {
        TextCache {
            text: Vec::new(),
            rows: Vec::new(),
            index: Interner::default(),
        }
    }
}

impl<T: Copy> TextCache<T> {
    #[inline]
    pub fn get(&self, text: &[u8]) -> Option<T> {
        let hash = self.index.hash(text);
        let row = self.index.find(hash, |row| self.bytes(row) == text)?;
        Some(self.rows[row as usize].1)
    }

    /// Remembers a text that `get` did not know.
    pub fn insert(&mut self, text: &[u8], meaning: T) -> Result<()> {
        let row = next_row(self.rows.len(), "lines")?;
        self.text.try_extend(text, "the distinct lines")?;
        self.rows
            .try_push((self.text.len(), meaning), "the distinct lines")?;
        self.index.insert(self.index.hash(text), row)
    }

    fn bytes(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.rows[row - 1].0 };
        &self.text[start..self.rows[row].0]
    }

    pub fn clear(&mut self) {
        self.text.clear();
        self.rows.clear();
        self.index.clear();
    }
}
