//! Reads mappings: those of the dictionary, and those to which no location refers, which are in an attribute of a
//! scope, see [`keys::UNUSED_MAPPINGS`].

use super::rows::{Rows, indices};
use super::tables::TableReader;
use crate::attribute_value::AnyValue;
use crate::collections::next_row;
use crate::formats::otlp::proto::{keys, mapping};
use crate::formats::string_table::NumberField;
use crate::limits::cancel::Watch;
use crate::limits::memory::{TryCollect, TryGrow};
use crate::model::{Attribute, Mapping, MappingId, PlacedMapping, Strings, Symbols};
use crate::protobuf::decode::{Message, Result};

impl TableReader<'_, '_> {
    pub fn mappings(&mut self, list: &[Message]) -> Result<Rows> {
        let rows = Rows::new("Mapping", self.profile.mappings.len(), list)?;
        let mut watch = Watch::new(self.stop);
        for mut message in rows.entries(list) {
            let at = message.at();
            watch.reach(at)?;
            let mut filename = NumberField { value: 0, at };
            let empty = self.profile.strings.intern("")?;
            let mut mapping = Mapping::of_file(empty, empty);
            let id = MappingId(next_row(self.profile.mappings.len(), "mappings")?);
            while let Some(found) = message.field()? {
                match found.number {
                    mapping::MEMORY_START => mapping.start = found.uint()?,
                    mapping::MEMORY_LIMIT => mapping.limit = found.uint()?,
                    mapping::FILE_OFFSET => mapping.offset = found.uint()?,
                    mapping::FILENAME_STRINDEX => filename = NumberField::from_field(&found)?,
                    mapping::ATTRIBUTE_INDICES => {
                        for (index, at) in indices(&found)? {
                            if let Some(kept) = self.mapping_attribute(index, at, &mut mapping)? {
                                let all = &mut self.profile.mapping_attributes;
                                all.try_push((id, kept))?;
                            }
                        }
                    }
                    _ => {}
                }
            }
            mapping.filename = self
                .texts
                .id(filename, &mut self.profile.strings, self.problems)?;
            self.profile.add_mapping(mapping)?;
        }
        Ok(rows)
    }

    /// Stores an attribute in a column of mappings, or returns it if there is no such column.
    fn mapping_attribute(
        &mut self,
        index: u64,
        at: usize,
        mapping: &mut Mapping,
    ) -> Result<Option<Attribute>> {
        let Some(entry) = self.attributes.get(index, at)? else {
            return Ok(None);
        };
        let symbols = &mut mapping.symbols;
        match (self.profile.strings.get(entry.kept.key), &entry.value) {
            (keys::BUILD_ID, AnyValue::String(_)) => mapping.build_id = entry.kept.value.text,
            (keys::HAS_FUNCTIONS, AnyValue::Bool(has)) => symbols.functions = *has,
            (keys::HAS_FILENAMES, AnyValue::Bool(has)) => symbols.filenames = *has,
            (keys::HAS_LINE_NUMBERS, AnyValue::Bool(has)) => symbols.line_numbers = *has,
            (keys::HAS_INLINE_FRAMES, AnyValue::Bool(has)) => symbols.inline_frames = *has,
            _ => return Ok(Some(entry.kept)),
        }
        Ok(None)
    }
}

/// The mappings in the attribute; `None` if it is not a list of mappings.
pub fn unused_mappings(
    texts: &[AnyValue],
    mappings: &[AnyValue],
    strings: &mut Strings,
) -> Result<Option<Vec<PlacedMapping>>> {
    let mut ids = Vec::new();
    for text in texts {
        let AnyValue::String(text) = text else {
            return Ok(None);
        };
        ids.try_push(strings.intern(text)?)?;
    }
    let mut all = Vec::new();
    for mapping in mappings {
        let AnyValue::Array(fields) = mapping else {
            return Ok(None);
        };
        let fields = fields.iter().map(|field| match field {
            AnyValue::Int(number) => Some(*number),
            _ => None,
        });
        let fields: [Option<i64>; 7] = match fields.try_vec()?.try_into() {
            Ok(fields) => fields,
            Err(_) => return Ok(None),
        };
        let text = |number: Option<i64>| {
            let place = usize::try_from(number?).ok()?;
            ids.get(place).copied()
        };
        let [position, start, limit, offset, filename, build_id, symbols] = fields;
        let position = position.and_then(|position| usize::try_from(position).ok());
        let (Some(position), Some(start), Some(limit), Some(offset), Some(symbols)) =
            (position, start, limit, offset, symbols)
        else {
            return Ok(None);
        };
        let (Some(filename), Some(build_id)) = (text(filename), text(build_id)) else {
            return Ok(None);
        };
        let has = |bit: u32| symbols >> bit & 1 == 1;
        let mapping = Mapping {
            start: start as u64,
            limit: limit as u64,
            offset: offset as u64,
            symbols: Symbols {
                functions: has(0),
                filenames: has(1),
                line_numbers: has(2),
                inline_frames: has(3),
            },
            ..Mapping::of_file(filename, build_id)
        };
        all.try_push(PlacedMapping { position, mapping })?;
    }
    Ok(Some(all))
}
