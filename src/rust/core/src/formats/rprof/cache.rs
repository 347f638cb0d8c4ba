//! A cache of parsed texts.
//!
//! Lines and items repeat, and equal bytes have the same meaning until a header or a `#File` line
//! changes that. All bytes are compared, since distinct texts can have the same hash.

use crate::collections::{Interner, Lists};
use crate::error::Result;
use crate::limits::memory::TryGrow;

#[derive(Debug)]
pub struct TextCache<T> {
    texts: Interner<Lists<u8>>,
    meanings: Vec<T>,
}

impl<T> Default for TextCache<T> {
    fn default() -> Self {
        TextCache {
            texts: Interner::default(),
            meanings: Vec::new(),
        }
    }
}

impl<T: Copy> TextCache<T> {
    #[inline]
    pub fn get(&self, text: &[u8]) -> Option<T> {
        let row = self.texts.find(text)?;
        self.meanings.get(row as usize).copied()
    }

    /// Adds a text that `get` did not find.
    pub fn insert(&mut self, text: &[u8], meaning: T) -> Result<()> {
        self.texts.intern(text)?;
        self.meanings.try_push(meaning, "the distinct lines")
    }

    pub fn clear(&mut self) {
        self.texts.clear();
        self.meanings.clear();
    }
}
