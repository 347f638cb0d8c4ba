//! A cache of parsed texts, for readers of text formats.
//!
//! Lines and items repeat, and equal bytes have the same meaning until a header or a `#File` line
//! changes that. All bytes are compared, since distinct texts can have the same hash.
//!
//! Looking up lines is most of the work of reading, and most of that time is spent waiting for
//! memory. Therefore an entry contains everything except the text.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

#[derive(Debug)]
pub struct TextCache<T> {
    /// All texts, end to end.
    texts: Vec<u8>,
    entries: HashTable<Entry<T>>,
    state: RandomState,
}

#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    start: usize,
    length: u32,
    meaning: T,
}

impl<T> Default for TextCache<T> {
    fn default() -> Self {
        TextCache {
            texts: Vec::new(),
            entries: HashTable::new(),
            state: RandomState::default(),
        }
    }
}

impl<T: Copy> TextCache<T> {
    #[inline]
    pub fn get(&self, text: &[u8]) -> Option<T> {
        let hash = self.state.hash_one(text);
        let found = self.entries.find(hash, |entry| {
            entry.length as usize == text.len() && self.texts[entry.start..][..text.len()] == *text
        });
        found.map(|entry| entry.meaning)
    }

    /// The meaning of a text; `read` determines it if the text is new.
    #[inline]
    pub fn get_or_read(&mut self, text: &[u8], read: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(known) = self.get(text) {
            return Ok(known);
        }
        let meaning = read()?;
        self.insert(text, meaning)?;
        Ok(meaning)
    }

    /// Adds a text that `get` did not find.
    pub fn insert(&mut self, text: &[u8], meaning: T) -> Result<()> {
        let Ok(length) = u32::try_from(text.len()) else {
            return Ok(());
        };
        let start = self.texts.len();
        self.texts.try_extend(text)?;
        let hash_of = |entry: &Entry<T>| {
            let text = &self.texts[entry.start..][..entry.length as usize];
            self.state.hash_one(text)
        };
        self.entries.try_reserve(1, hash_of)?;
        let entry = Entry {
            start,
            length,
            meaning,
        };
        let hash = self.state.hash_one(text);
        #[expect(clippy::disallowed_methods, reason = "there is room for it")]
        self.entries.insert_unique(hash, entry, hash_of);
        Ok(())
    }

    pub fn clear(&mut self) {
        self.texts.clear();
        self.entries.clear();
    }
}
