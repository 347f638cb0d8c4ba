//! Tables of a message that is written: each distinct entry once, in the order of first use,
//! so that equal profiles result in equal bytes.

use crate::collections::{Index, Interner, Lists, next_row};
use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::StringId;
use std::borrow::Cow;

/// The string table. Its first entry is the empty string, which also represents a missing
/// string.
pub struct StringTableBuilder<'a> {
    pub strings: Vec<Cow<'a, str>>,
    hashes: Index,
    /// The index of each string of the model; 0 if it has not been used yet.
    index_of_id: Vec<u32>,
}

impl<'a> StringTableBuilder<'a> {
    /// `strings` is the number of strings of the model.
    pub fn new(strings: usize) -> Result<StringTableBuilder<'a>> {
        let mut index_of_id = Vec::new();
        index_of_id.try_fill(strings, 0)?;
        let mut table = StringTableBuilder {
            strings: Vec::new(),
            hashes: Index::default(),
            index_of_id,
        };
        table.index("")?;
        Ok(table)
    }

    /// The index of a string, which is added if it is new.
    pub fn index(&mut self, text: impl Into<Cow<'a, str>>) -> Result<u64> {
        let text = text.into();
        let hash = self.hashes.hash(text.as_ref());
        let same = |row: u32| self.strings[row as usize] == text;
        if let Some(row) = self.hashes.find(hash, same) {
            return Ok(u64::from(row));
        }
        let row = next_row(self.strings.len(), "strings")?;
        self.strings.try_push(text)?;
        self.hashes.insert(hash, row)?;
        Ok(u64::from(row))
    }

    /// The index of a string of the model, whose text is `text`.
    pub fn index_of_id(&mut self, id: StringId, text: &'a str) -> Result<u64> {
        let known = self.index_of_id[id.row()];
        if known != 0 {
            return Ok(u64::from(known));
        }
        let index = self.index(text)?;
        self.index_of_id[id.row()] = index as u32;
        Ok(index)
    }
}

/// A table of encoded entries, each stored once.
pub type EncodedTable = Interner<Lists<u8>>;
