//! The string table of a message.
//!
//! All other parts of a message refer to strings by index, and may precede the table. Each string
//! is decoded only when it is first needed.

use crate::error::Position;
use crate::formats::problems::Problems;
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::{StringId, Strings};
use crate::protobuf::decode::{Field, Message, Result, error_at};

/// The maximum size of copies of strings for each byte of a message. A limit is needed because the
/// same string may be copied many times.
const COPIED_PER_BYTE: usize = 256;
/// The copies that any message may need, however small.
const COPIED_MINIMUM: usize = 1 << 24;

/// The number in a field, such as an index into a table, and the byte offset of the field. If
/// a message contains a field several times, the last one counts, and only it is checked;
/// numbers are therefore kept until the whole message is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumberField {
    pub value: u64,
    pub at: usize,
}

impl NumberField {
    pub fn from_field(field: &Field) -> Result<NumberField> {
        Ok(NumberField {
            value: field.uint()?,
            at: field.at,
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    length: u32,
    id: Option<StringId>,
}

pub struct StringTable<'a> {
    bytes: &'a [u8],
    entries: Vec<Entry>,
    /// The remaining number of bytes that may be copied.
    copies: usize,
}

impl<'a> StringTable<'a> {
    /// `bytes` is the whole file, `size` the size of the message that contains the table.
    pub fn new(bytes: &'a [u8], size: usize) -> StringTable<'a> {
        StringTable {
            bytes,
            entries: Vec::new(),
            copies: size.saturating_mul(COPIED_PER_BYTE).max(COPIED_MINIMUM),
        }
    }

    /// Adds the next string, which has `length` bytes at offset `start`.
    pub fn add(&mut self, start: usize, length: usize) -> Result<()> {
        if self.entries.is_empty() && length != 0 {
            return error_at(start, "The first string is not empty, as it must be.");
        }
        // The file is smaller than 2 GiB.
        let entry = Entry {
            start: start as u32,
            length: length as u32,
            id: None,
        };
        self.entries.try_push(entry)?;
        Ok(())
    }

    /// Decodes a string that is not in the table.
    pub fn decode(&self, text: Message, problems: &mut Problems) -> Result<String> {
        let entry = Entry {
            start: text.at() as u32,
            length: text.bytes().len() as u32,
            id: None,
        };
        Ok(owned(&decode(self.bytes, entry, problems)?)?)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks that a complete table is not empty, since index 0 must always be valid.
    pub fn check(&self) -> Result<()> {
        if self.entries.is_empty() {
            return error_at(
                self.bytes.len(),
                "The file ends without a string table. Is it a pprof profile?",
            );
        }
        Ok(())
    }

    fn entry(&mut self, index: NumberField) -> Result<&mut Entry> {
        let NumberField { value: index, at } = index;
        let count = self.entries.len();
        let row = usize::try_from(index).unwrap_or(usize::MAX);
        match self.entries.get_mut(row) {
            Some(entry) => Ok(entry),
            None => error_at(
                at,
                message!(
                    "String index {} is out of range (table size: {count}).",
                    index as i64
                ),
            ),
        }
    }

    /// The id of a string in the model.
    pub fn id(
        &mut self,
        index: NumberField,
        strings: &mut Strings,
        problems: &mut Problems,
    ) -> Result<StringId> {
        let bytes = self.bytes;
        let entry = self.entry(index)?;
        if let Some(id) = entry.id {
            return Ok(id);
        }
        let text = decode(bytes, *entry, problems)?;
        let id = strings.intern(&text)?;
        entry.id = Some(id);
        Ok(id)
    }

    /// A copy of a string, for the few that the model does not store by id.
    pub fn string(&mut self, index: NumberField, problems: &mut Problems) -> Result<String> {
        let entry = *self.entry(index)?;
        match self.copies.checked_sub(entry.length as usize) {
            Some(left) => self.copies = left,
            None => {
                return error_at(
                    index.at,
                    "The strings up to here are too long for this file.",
                );
            }
        }
        Ok(owned(&decode(self.bytes, entry, problems)?)?)
    }
}

fn decode<'a>(
    bytes: &'a [u8],
    entry: Entry,
    problems: &mut Problems,
) -> Result<std::borrow::Cow<'a, str>> {
    let start = entry.start as usize;
    let bytes = &bytes[start..start + entry.length as usize];
    Ok(problems.decode(bytes, Position::Byte(start as u64))?)
}
