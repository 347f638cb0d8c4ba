//! The attribute table of a message, and the lists of indices into it.
//!
//! Records refer to attributes by index, so equal attributes are encoded and stored once.

use super::fields::put_unless_0;
use crate::attribute_value::AnyValue;
use crate::error::Result;
use crate::formats::losses::{LossKind, Losses};
use crate::formats::otlp::any_value;
use crate::formats::otlp::proto::key_value_and_unit as field;
use crate::limits::memory::{TryAdd, TryGrow, TryPut, copied, owned};
use crate::model::{Attribute, AttributeValue, Label, Profile, StringId, ValueKind};
use crate::protobuf::encode;
use crate::protobuf::tables::{EncodedTable, StringTableBuilder};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

/// The distinct attributes, in the order of first use, and the string table, which other records
/// of the message use, too.
pub struct AttributeTable<'a> {
    profile: &'a Profile,
    pub texts: StringTableBuilder<'a>,
    /// Information that could not be stored.
    pub losses: Losses,
    pub entries: EncodedTable,
    /// The indices of attributes of the model, by key, value and unit.
    by_value: HashMap<(u64, AttributeValue, Option<StringId>), u32, RandomState>,
    /// The indices of groups of labels with the same key.
    by_labels: HashMap<Vec<Label>, u32, RandomState>,
}

impl<'a> AttributeTable<'a> {
    pub fn new(profile: &'a Profile) -> Result<AttributeTable<'a>> {
        let mut entries = EncodedTable::default();
        // The specification reserves index 0 for "no attribute".
        entries.intern(&[])?;
        Ok(AttributeTable {
            profile,
            texts: StringTableBuilder::new(profile.strings.len())?,
            losses: Losses::default(),
            entries,
            by_value: HashMap::default(),
            by_labels: HashMap::default(),
        })
    }

    pub fn text(&mut self, id: StringId) -> Result<u64> {
        self.texts.index_of_id(id, self.profile.strings.get(id))
    }

    /// Returns the index of the attribute for the labels of a sample that have the same key. `value`
    /// computes its value and unit if the attribute is not in the table yet.
    pub fn labels(
        &mut self,
        labels: &[Label],
        value: impl FnOnce() -> Result<(AnyValue, Option<StringId>)>,
    ) -> Result<u32> {
        let Some(first) = labels.first() else {
            return Ok(0);
        };
        // A number is cheap to encode and often unique, so it is not cached.
        let is_number = labels.len() == 1 && first.num.is_some();
        let known = if is_number {
            None
        } else {
            self.by_labels.get(labels)
        };
        if let Some(&index) = known {
            return Ok(index);
        }
        let (value, unit) = value()?;
        let key = self.text(first.key)?;
        let index = self.intern(key, &value, unit)?;
        if is_number {
            return Ok(index);
        }
        let labels = copied(labels)?;
        self.by_labels.try_put(labels, index)?;
        Ok(index)
    }

    /// Returns the index of an attribute of the model. `key`: the index of its key in the string
    /// table. The attribute is encoded only once, since its text may be long and many records may
    /// have it.
    fn model_index(
        &mut self,
        key: u64,
        value: AttributeValue,
        unit: Option<StringId>,
    ) -> Result<u32> {
        let attribute = (key, value, unit);
        if let Some(&index) = self.by_value.get(&attribute) {
            return Ok(index);
        }
        let index = self.intern(key, &model_value(self.profile, value)?, unit)?;
        self.by_value.try_put(attribute, index)?;
        Ok(index)
    }

    fn intern(&mut self, key: u64, value: &AnyValue, unit: Option<StringId>) -> Result<u32> {
        let mut out = Vec::new();
        put_unless_0(&mut out, field::KEY_STRINDEX, key);
        encode::put_message(&mut out, field::VALUE, |inner| {
            any_value::put(inner, value, &mut self.texts)
        })?;
        if let Some(unit) = unit {
            let unit = self.text(unit)?;
            put_unless_0(&mut out, field::UNIT_STRINDEX, unit);
        }
        self.entries.intern(&out)
    }
}

/// Converts a value that the model stores as text.
pub fn model_value(profile: &Profile, value: AttributeValue) -> Result<AnyValue> {
    // Texts are checked when they are read, so this one is valid.
    let value = AnyValue::parse(value.kind, profile.strings.get(value.text))?;
    Ok(value.unwrap_or_default())
}

/// The attributes of a record, as indices. Keys are unique: of several attributes with the same
/// key the first is kept.
#[derive(Default)]
pub struct AttributeList {
    pub indices: Vec<u64>,
    /// The indices of their keys in the string table.
    keys: HashSet<u64, RandomState>,
}

impl AttributeList {
    pub fn add(&mut self, table: &mut AttributeTable, key: &str, value: &AnyValue) -> Result<()> {
        let key = table.texts.index(owned(key)?)?;
        self.push(table, key, |table| table.intern(key, value, None))
    }

    pub fn add_text(
        &mut self,
        table: &mut AttributeTable,
        key: &str,
        text: StringId,
    ) -> Result<()> {
        let key = table.texts.index(owned(key)?)?;
        let kind = ValueKind::String;
        self.push(table, key, |table| {
            table.model_index(key, AttributeValue { kind, text }, None)
        })
    }

    pub fn add_of_model(
        &mut self,
        table: &mut AttributeTable,
        attribute: &Attribute,
    ) -> Result<()> {
        let key = table.text(attribute.key)?;
        self.push(table, key, |table| {
            table.model_index(key, attribute.value, attribute.unit)
        })
    }

    fn push<'a>(
        &mut self,
        table: &mut AttributeTable<'a>,
        key: u64,
        index: impl FnOnce(&mut AttributeTable<'a>) -> Result<u32>,
    ) -> Result<()> {
        if !self.keys.try_add(key)? {
            table.losses.add(LossKind::RepeatedAttribute, 1);
            return Ok(());
        }
        self.indices.try_push(u64::from(index(table)?))
    }
}
