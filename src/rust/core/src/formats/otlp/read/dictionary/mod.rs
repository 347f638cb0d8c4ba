//! The dictionary of a message: its tables, which become rows of the model.
//!
//! Indices start at 0. The first entry of each table means "none" and must be empty; if a
//! writer violates this, the entry is kept.

mod frames;
mod mappings;
mod rows;
mod tables;

use super::attributes::AttributeTable;
use super::budget::Budget;
use crate::formats::otlp::proto::dictionary as table;
use crate::formats::problems::Problems;
use crate::formats::string_table::StringTable;
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::model::{Link, Profile, StackId};
use crate::protobuf::decode::{Message, Result};
pub use mappings::unused_mappings;
use rows::entry;
use tables::TableReader;

/// The entries of each table except the string table, not decoded.
#[derive(Default)]
pub struct Outline<'a> {
    pub mappings: Vec<Message<'a>>,
    pub locations: Vec<Message<'a>>,
    pub functions: Vec<Message<'a>>,
    pub links: Vec<Message<'a>>,
    pub attributes: Vec<Message<'a>>,
    pub stacks: Vec<Message<'a>>,
}

/// The tables of a message, to which its profiles refer.
pub struct Dictionary<'a> {
    pub texts: StringTable<'a>,
    pub attributes: AttributeTable,
    links: Vec<Option<Link>>,
    stacks: Vec<StackId>,
}

impl<'a> Outline<'a> {
    /// Finds the entries. Strings are added to `texts`.
    pub fn read(
        mut message: Message<'a>,
        texts: &mut StringTable<'a>,
        stop: Stop,
    ) -> Result<Outline<'a>> {
        let mut outline = Outline::default();
        let mut watch = Watch::new(stop);
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            let list = match found.number {
                table::MAPPING_TABLE => &mut outline.mappings,
                table::LOCATION_TABLE => &mut outline.locations,
                table::FUNCTION_TABLE => &mut outline.functions,
                table::LINK_TABLE => &mut outline.links,
                table::ATTRIBUTE_TABLE => &mut outline.attributes,
                table::STACK_TABLE => &mut outline.stacks,
                table::STRING_TABLE => {
                    let text = found.message()?;
                    texts.add(text.at(), text.bytes().len())?;
                    continue;
                }
                _ => continue,
            };
            list.try_push(found.message()?)?;
        }
        Ok(outline)
    }
}

impl<'a> Dictionary<'a> {
    /// Adds the tables to `profile`. `texts` must be empty; the strings are added to it.
    pub fn read(
        message: Option<Message<'a>>,
        mut texts: StringTable<'a>,
        profile: &mut Profile,
        problems: &mut Problems,
        budget: &mut Budget,
        stop: Stop,
    ) -> Result<Dictionary<'a>> {
        let outline = match message {
            Some(message) => Outline::read(message, &mut texts, stop)?,
            None => Outline::default(),
        };
        if texts.is_empty() {
            texts.add(0, 0)?;
        }
        let attributes = AttributeTable::read(
            &outline.attributes,
            &mut texts,
            &mut profile.strings,
            problems,
            stop,
        )?;
        let mut reader = TableReader {
            texts,
            attributes,
            profile,
            problems,
            budget,
            stop,
        };
        for list in [&outline.mappings, &outline.locations, &outline.functions] {
            reader.check_first(list);
        }
        reader.check_first(&outline.stacks);
        let mappings = reader.mappings(&outline.mappings)?;
        let functions = reader.functions(&outline.functions)?;
        let locations = reader.locations(&outline.locations, mappings, functions)?;
        let links = reader.links(&outline.links)?;
        let stacks = reader.stacks(&outline.stacks, locations)?;
        Ok(Dictionary {
            texts: reader.texts,
            attributes: reader.attributes,
            links,
            stacks,
        })
    }

    pub fn link(&self, index: u64, at: usize) -> Result<Option<Link>> {
        if index == 0 {
            return Ok(None);
        }
        entry(&self.links, index, "Link", at).copied()
    }

    #[inline]
    pub fn stack(&self, index: u64, at: usize) -> Result<StackId> {
        entry(&self.stacks, index, "Stack", at).copied()
    }
}
