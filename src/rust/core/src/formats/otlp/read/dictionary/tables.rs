//! Reads functions and links, whose entries become one row each.

use super::rows::{Rows, is_empty};
use crate::error::Position;
use crate::formats::otlp::proto::{function, link};
use crate::formats::otlp::read::attributes::AttributeTable;
use crate::formats::otlp::read::budget::Budget;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::string_table::{NumberField, StringTable};
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::model::{Function, Link, Profile};
use crate::protobuf::decode::{Message, Result};
use crate::text::encoded;
use data_encoding::HEXLOWER;

/// Reads the tables of a dictionary into the model.
pub struct TableReader<'a, 'p> {
    pub texts: StringTable<'a>,
    pub attributes: AttributeTable,
    pub profile: &'p mut Profile,
    pub problems: &'p mut Problems,
    pub budget: &'p mut Budget,
    pub stop: Stop<'p>,
}

impl TableReader<'_, '_> {
    /// Notes a problem if the first entry of a table is not empty.
    pub fn check_first(&mut self, list: &[Message]) {
        if let Some(first) = list.first().filter(|first| !is_empty(first)) {
            let position = Position::Byte(first.at() as u64);
            self.problems.note(ProblemKind::ZeroEntry, position, b"");
        }
    }

    pub fn functions(&mut self, list: &[Message]) -> Result<Rows> {
        let rows = Rows::new("Function", self.profile.functions.len(), list)?;
        let mut watch = Watch::new(self.stop);
        for mut message in rows.entries(list) {
            let at = message.at();
            watch.reach(at)?;
            let [mut name, mut system_name, mut filename, mut start_line] =
                [NumberField { value: 0, at }; 4];
            while let Some(found) = message.field()? {
                match found.number {
                    function::NAME_STRINDEX => name = NumberField::from_field(&found)?,
                    function::SYSTEM_NAME_STRINDEX => {
                        system_name = NumberField::from_field(&found)?
                    }
                    function::FILENAME_STRINDEX => filename = NumberField::from_field(&found)?,
                    function::START_LINE => start_line = NumberField::from_field(&found)?,
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
            let link = if is_missing(trace) && is_missing(span) {
                None
            } else {
                Some(Link {
                    trace_id: strings.intern(&encoded(&HEXLOWER, trace)?)?,
                    span_id: strings.intern(&encoded(&HEXLOWER, span)?)?,
                })
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
