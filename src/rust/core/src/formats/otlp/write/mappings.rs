//! Mappings. The dictionary has those to which locations refer, in the order of the profile: the first one is the
//! program itself. A dictionary must not have entries to which nothing refers, so the others are in an attribute of a
//! scope, see [`keys::UNUSED_MAPPINGS`].

use super::attributes::{AttributeList, AttributeTable};
use super::fields::{put_indices, put_unless_0};
use crate::analysis::aggregate::LeftOut;
use crate::attribute_value::AnyValue;
use crate::collections::Interner;
use crate::error::Result;
use crate::formats::otlp::proto::{keys, mapping as field};
use crate::limits::memory::{TryCollect, TryGrow, filled, owned};
use crate::model::{Attribute, MappingId, Profile, StringId};
use crate::protobuf::tables::EncodedTable;

pub struct Mappings {
    pub entries: EncodedTable,
    /// For each mapping of the profile, its index in the table plus 1, or 0 if it is not in the table yet.
    indices: Vec<u32>,
    /// For each mapping of the profile, whether a location refers to it.
    is_used: Vec<bool>,
}

impl Mappings {
    pub fn new(profile: &Profile) -> Result<Mappings> {
        let mut entries = EncodedTable::default();
        entries.intern(&[])?;
        Ok(Mappings {
            entries,
            indices: filled(profile.mappings.len(), 0)?,
            is_used: filled(profile.mappings.len(), false)?,
        })
    }

    /// Adds the mappings of samples that are not omitted, in the order of the profile.
    pub fn add_all(
        &mut self,
        profile: &Profile,
        left_out: &LeftOut,
        attributes: &mut AttributeTable,
    ) -> Result<()> {
        if profile.mappings.is_empty() {
            return Ok(());
        }
        let mut has_samples = filled(profile.mappings.len(), false)?;
        let mut seen = filled(profile.stacks.len(), false)?;
        let mut space = Vec::new();
        for (row, &stack) in profile.samples.stack.iter().enumerate() {
            if left_out.contains(row) || std::mem::replace(&mut seen[stack.row()], true) {
                continue;
            }
            for &location in profile.stacks.get(stack).unpacked(&mut space)? {
                let address = profile.address_of(&profile.locations.get(location));
                let row = address.mapping.map(|mapping| mapping.row());
                if let Some(mapping) = row.and_then(|row| has_samples.get_mut(row)) {
                    *mapping = true;
                }
            }
        }
        for (row, _) in has_samples.iter().enumerate().filter(|(_, has)| **has) {
            self.add(profile, MappingId(row as u32), attributes)?;
        }
        Ok(())
    }

    /// The index of the mapping of a location, which is added if it is new.
    pub fn use_for_location(
        &mut self,
        profile: &Profile,
        id: MappingId,
        attributes: &mut AttributeTable,
    ) -> Result<u32> {
        if let Some(is_used) = self.is_used.get_mut(id.row()) {
            *is_used = true;
        }
        self.add(profile, id, attributes)
    }

    fn add(
        &mut self,
        profile: &Profile,
        id: MappingId,
        attributes: &mut AttributeTable,
    ) -> Result<u32> {
        let Some(row) = profile.mappings.get(id.row()) else {
            return Ok(0);
        };
        if let Some(known) = self.indices[id.row()].checked_sub(1) {
            return Ok(known);
        }
        let mut out = Vec::new();
        for (number, value) in [
            (field::MEMORY_START, row.start),
            (field::MEMORY_LIMIT, row.limit),
            (field::FILE_OFFSET, row.offset),
            (field::FILENAME_STRINDEX, attributes.text(row.filename)?),
        ] {
            put_unless_0(&mut out, number, value);
        }
        let mut list = AttributeList::default();
        // The specification requires a build id, but an empty one would claim that all files without
        // a known id are the same file, so none is written.
        if !profile.strings.get(row.build_id).is_empty() {
            list.add_text(attributes, keys::BUILD_ID, row.build_id)?;
        }
        for (key, has) in [
            (keys::HAS_FUNCTIONS, row.symbols.functions),
            (keys::HAS_FILENAMES, row.symbols.filenames),
            (keys::HAS_LINE_NUMBERS, row.symbols.line_numbers),
            (keys::HAS_INLINE_FRAMES, row.symbols.inline_frames),
        ] {
            if has {
                list.add(attributes, key, &AnyValue::Bool(true))?;
            }
        }
        for (_, attribute) in attributes_of_row(&profile.mapping_attributes, id) {
            list.add_of_model(attributes, attribute)?;
        }
        put_indices(&mut out, field::ATTRIBUTE_INDICES, &list.indices)?;
        let index = self.entries.intern(&out)?;
        self.indices[id.row()] = index + 1;
        Ok(index)
    }

    /// Whether a mapping was added to which no location refers, since only omitted samples have it.
    pub fn has_unused_entries(&self) -> bool {
        let mut all = self.indices.iter().zip(&self.is_used);
        all.any(|(&index, &is_used)| index != 0 && !is_used)
    }

    /// The mappings to which no location refers, as the value of [`keys::UNUSED_MAPPINGS`]; `None` if there are none.
    pub fn unused(&self, profile: &Profile) -> Result<Option<AnyValue>> {
        let mut texts: Interner<Vec<StringId>> = Interner::default();
        let mut numbers = Vec::new();
        // The position among the mappings that a reader sees: equal ones are one entry of the dictionary, and its entry
        // 0, whose index is 1 here, is no mapping.
        let (mut position, mut last_entry) = (0, 1);
        let states = self.is_used.iter().zip(&self.indices);
        for (row, (&is_used, &entry)) in profile.mappings.iter().zip(states) {
            if is_used {
                position += i64::from(entry > last_entry);
                last_entry = last_entry.max(entry);
                continue;
            }
            let symbols = [
                row.symbols.functions,
                row.symbols.filenames,
                row.symbols.line_numbers,
                row.symbols.inline_frames,
            ];
            let bits = (0..).zip(symbols).map(|(i, has)| i64::from(has) << i);
            let fields = [
                position,
                // Numbers above the largest signed one are negative.
                row.start as i64,
                row.limit as i64,
                row.offset as i64,
                i64::from(texts.intern(row.filename)?),
                i64::from(texts.intern(row.build_id)?),
                bits.sum(),
            ];
            let fields = fields.map(AnyValue::Int).into_iter().try_vec()?;
            numbers.try_push(AnyValue::Array(fields))?;
            position += 1;
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        let texts = texts.iter().map(|&id| profile.strings.get(id));
        let texts = texts.map(|text| Ok(AnyValue::String(owned(text)?)));
        let parts = [
            AnyValue::Array(texts.try_vec_of()?),
            AnyValue::Array(numbers),
        ];
        Ok(Some(AnyValue::Array(parts.into_iter().try_vec()?)))
    }
}

/// Returns the attributes of a row from a list that is sorted by row.
pub fn attributes_of_row<T: Ord + Copy>(all: &[(T, Attribute)], row: T) -> &[(T, Attribute)] {
    let start = all.partition_point(|(id, _)| *id < row);
    let end = all.partition_point(|(id, _)| *id <= row);
    &all[start..end]
}
