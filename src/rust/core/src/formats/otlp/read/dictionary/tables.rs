//! Reads mappings, functions and links, whose entries become one row each.

use super::rows::{Rows, indices, is_empty};
use crate::attribute_value::AnyValue;
use crate::collections::next_row;
use crate::error::Position;
use crate::formats::otlp::proto::{function, keys, link, mapping};
use crate::formats::otlp::read::attributes::AttributeTable;
use crate::formats::otlp::read::budget::Budget;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::string_table::{NumberField, StringTable};
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::model::{Attribute, Function, Link, Mapping, MappingId, Profile, Symbols};
use crate::protobuf::decode::{Message, Result};
use crate::text::encoded;
use data_encoding::HEXLOWER;

/// Reads the tables of a dictionary into the model.
pub struct Reader<'a, 'p> {
    pub texts: StringTable<'a>,
    pub attributes: AttributeTable,
    pub profile: &'p mut Profile,
    pub problems: &'p mut Problems,
    pub budget: &'p mut Budget,
    pub stop: Stop<'p>,
}

impl Reader<'_, '_> {
    /// Notes a problem if the first entry of a table is not empty.
    pub fn check_first(&mut self, list: &[Message]) {
        if let Some(first) = list.first().filter(|first| !is_empty(first)) {
            let position = Position::Byte(first.at() as u64);
            self.problems.note(ProblemKind::ZeroEntry, position, b"");
        }
    }

    pub fn mappings(&mut self, list: &[Message]) -> Result<Rows> {
        let rows = Rows::of("Mapping", self.profile.mappings.len(), list)?;
        let mut watch = Watch::new(self.stop);
        for mut message in rows.entries(list) {
            let at = message.at();
            watch.reach(at)?;
            let mut filename = NumberField { value: 0, at };
            let empty = self.profile.strings.intern("")?;
            let mut mapping = Mapping {
                start: 0,
                limit: 0,
                offset: 0,
                filename: empty,
                build_id: empty,
                symbols: Symbols::default(),
                native_id: None,
            };
            let id = MappingId(next_row(self.profile.mappings.len(), "mappings")?);
            while let Some(found) = message.field()? {
                match found.number {
                    mapping::MEMORY_START => mapping.start = found.uint()?,
                    mapping::MEMORY_LIMIT => mapping.limit = found.uint()?,
                    mapping::FILE_OFFSET => mapping.offset = found.uint()?,
                    mapping::FILENAME_STRINDEX => filename = NumberField::of(&found)?,
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

    pub fn functions(&mut self, list: &[Message]) -> Result<Rows> {
        let rows = Rows::of("Function", self.profile.functions.len(), list)?;
        let mut watch = Watch::new(self.stop);
        for mut message in rows.entries(list) {
            let at = message.at();
            watch.reach(at)?;
            let [mut name, mut system_name, mut filename, mut start_line] =
                [NumberField { value: 0, at }; 4];
            while let Some(found) = message.field()? {
                match found.number {
                    function::NAME_STRINDEX => name = NumberField::of(&found)?,
                    function::SYSTEM_NAME_STRINDEX => system_name = NumberField::of(&found)?,
                    function::FILENAME_STRINDEX => filename = NumberField::of(&found)?,
                    function::START_LINE => start_line = NumberField::of(&found)?,
                    _ => {}
                }
            }
            let number = start_line.value as i64;
            let start_line = self.problems.line_number(number, start_line.at);
            let strings = &mut self.profile.strings;
            let mut text = |index| self.texts.id(index, strings, self.problems);
            let names = [text(name)?, text(system_name)?];
            let filename = text(filename)?;
            let function = Function::recorded(names, filename, start_line, strings)?;
            self.profile.functions.push(function)?;
        }
        Ok(rows)
    }

    pub fn links(&mut self, list: &[Message]) -> Result<Vec<Option<Link>>> {
        let mut links = Vec::new();
        let mut watch = Watch::new(self.stop);
        for &(mut message) in list {
            watch.reach(message.at())?;
            let [mut trace, mut span] = [&[][..]; 2];
            while let Some(found) = message.field()? {
                match found.number {
                    link::TRACE_ID => trace = found.message()?.bytes(),
                    link::SPAN_ID => span = found.message()?.bytes(),
                    _ => {}
                }
            }
            let strings = &mut self.profile.strings;
            let link = match is_missing(trace) && is_missing(span) {
                true => None,
                false => Some(Link {
                    trace_id: strings.intern(&encoded(&HEXLOWER, trace)?)?,
                    span_id: strings.intern(&encoded(&HEXLOWER, span)?)?,
                }),
            };
            links.try_push(link)?;
        }
        Ok(links)
    }
}

/// Whether an id of a trace or span is missing: it is empty, or all zeros.
fn is_missing(id: &[u8]) -> bool {
    id.iter().all(|&byte| byte == 0)
}
