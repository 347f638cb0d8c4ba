//! Lists of attributes on their way out.

use super::dictionary::Tables;
use crate::error::Result;
use crate::formats::losses::LossKind;
use crate::limits::memory::{TryAdd, TryGrow, owned};
use crate::model::{Any, Attribute, StringId, Value, ValueKind};
use foldhash::fast::RandomState;
use std::collections::HashSet;

const OUTPUT: &str = "the output";

/// The attributes of one thing, of which each has a key of its own: the first counts.
#[derive(Default)]
pub struct List {
    pub indices: Vec<u64>,
    /// The numbers of their texts.
    keys: HashSet<u64, RandomState>,
}

impl List {
    pub fn add(&mut self, tables: &mut Tables, key: &str, value: &Any) -> Result<()> {
        let key = tables.texts.of(owned(key, OUTPUT)?)?;
        self.push(tables, key, |tables| tables.attribute(key, value, None))
    }

    pub fn add_text(&mut self, tables: &mut Tables, key: &str, text: StringId) -> Result<()> {
        let key = tables.texts.of(owned(key, OUTPUT)?)?;
        let kind = ValueKind::String;
        self.push(tables, key, |tables| {
            tables.known(key, Value { kind, text }, None)
        })
    }

    pub fn add_known(&mut self, tables: &mut Tables, attribute: &Attribute) -> Result<()> {
        let key = tables.text(attribute.key)?;
        self.push(tables, key, |tables| {
            tables.known(key, attribute.value, attribute.unit)
        })
    }

    fn push<'a>(
        &mut self,
        tables: &mut Tables<'a>,
        key: u64,
        index: impl FnOnce(&mut Tables<'a>) -> Result<u32>,
    ) -> Result<()> {
        if !self.keys.try_add(key, OUTPUT)? {
            tables.losses.add(LossKind::RepeatedAttribute, 1);
            return Ok(());
        }
        self.indices.try_push(u64::from(index(tables)?), OUTPUT)
    }
}
