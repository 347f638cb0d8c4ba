//! Reads attributes of all kinds of records.
//!
//! Profiles, samples, mappings and locations refer by index to a table of keys, values and units.
//! Resources and scopes contain their attributes themselves.

use crate::attribute_value::AnyValue;
use crate::formats::otlp::any_value;
use crate::formats::otlp::proto::key_value_and_unit as field;
use crate::formats::problems::Problems;
use crate::formats::string_table::{NumberField, StringTable};
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{Attribute, AttributeValue, Profile, Strings};
use crate::protobuf::decode::{Message, Result, error_at};

/// An entry of the table. It is decoded only once, since it may be long and have many references.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The attribute in the model.
    pub kept: Attribute,
    pub value: AnyValue,
    has_content: bool,
}

/// The table of a message. Its first entry means "none".
#[derive(Default)]
pub struct AttributeTable {
    entries: Vec<Entry>,
}

impl AttributeTable {
    pub fn read(
        table: &[Message],
        texts: &mut StringTable,
        strings: &mut Strings,
        problems: &mut Problems,
        stop: Stop,
    ) -> Result<AttributeTable> {
        let mut entries = Vec::new();
        let mut watch = Watch::new(stop);
        for &(mut message) in table {
            let at = message.at();
            watch.reach(at)?;
            let [mut key, mut unit] = [NumberField { value: 0, at }; 2];
            let mut value = None;
            while let Some(found) = message.field()? {
                match found.number {
                    field::KEY_STRINDEX => key = NumberField::from_field(&found)?,
                    field::VALUE => value = Some(found.message()?),
                    field::UNIT_STRINDEX => unit = NumberField::from_field(&found)?,
                    _ => {}
                }
            }
            let value = match value {
                Some(message) => any_value::read(message, texts, problems)?,
                None => AnyValue::Empty,
            };
            let unit = match unit.value {
                0 => None,
                _ => Some(texts.id(unit, strings, problems)?),
            };
            let key = match key.value {
                0 => strings.intern("")?,
                _ => texts.id(key, strings, problems)?,
            };
            let entry = Entry {
                has_content: !strings.get(key).is_empty() || value != AnyValue::Empty,
                kept: Attribute {
                    unit,
                    ..Attribute::new(key, self::value(&value, strings)?)
                },
                value,
            };
            entries.try_push(entry)?;
        }
        Ok(AttributeTable { entries })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry with an index that is at byte `at`, `None` if it is the empty first entry.
    pub fn get(&self, index: u64, at: usize) -> Result<Option<&Entry>> {
        match usize::try_from(index)
            .ok()
            .and_then(|i| self.entries.get(i))
        {
            // Some writers put an empty value into the first entry, which is still "none".
            Some(entry) => Ok(Some(entry).filter(|entry| index != 0 || entry.has_content)),
            None if index == 0 => Ok(None),
            None => error_at(
                at,
                message!(
                    "Attribute index {} is out of range (table size: {}).",
                    index as i64,
                    self.entries.len()
                ),
            ),
        }
    }
}

pub fn value(any: &AnyValue, strings: &mut Strings) -> Result<AttributeValue> {
    Ok(AttributeValue {
        kind: any.kind(),
        text: strings.intern(&any.to_text()?)?,
    })
}

/// Reads the attributes of a resource or scope.
pub fn read_pairs(
    list: &[Message],
    texts: &mut StringTable,
    problems: &mut Problems,
) -> Result<Vec<(String, AnyValue)>> {
    let mut pairs = Vec::new();
    for &message in list {
        pairs.try_push(any_value::read_pair(message, texts, problems, 0)?)?;
    }
    Ok(pairs)
}

/// Converts attributes of a resource or scope to attributes of the model.
pub fn keep_pairs(pairs: &[(String, AnyValue)], profile: &mut Profile) -> Result<Vec<Attribute>> {
    let mut kept = Vec::new();
    for (key, any) in pairs {
        let key = profile.strings.intern(key)?;
        let value = value(any, &mut profile.strings)?;
        kept.try_push(Attribute::new(key, value))?;
    }
    Ok(kept)
}
