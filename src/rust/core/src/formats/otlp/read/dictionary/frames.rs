//! Reads locations, each of which has a row for each inlined call, and stacks, which are lists
//! of locations.

use super::rows::{Rows, Runs, indices};
use super::tables::TableReader;
use crate::attribute_value::AnyValue;
use crate::collections::{Lists, next_row};
use crate::formats::otlp::proto::{keys, line, location, stack};
use crate::formats::problems::Problems;
use crate::formats::string_table::NumberField;
use crate::limits::cancel::Watch;
use crate::limits::memory::TryGrow;
use crate::model::{Address, FrameType, FunctionId, Location, LocationId, MappingId, StackId};
use crate::protobuf::decode::{Message, Result};

impl TableReader<'_, '_> {
    pub fn locations(&mut self, list: &[Message], mappings: Rows, functions: Rows) -> Result<Runs> {
        let before = self.profile.locations.len();
        let mut runs = Runs {
            rows: Rows::new("Location", before, list)?,
            frames: Lists::default(),
            one_row_each: true,
        };
        if runs.rows.skipped > 0 {
            // The empty location gets a row when a stack uses it.
            runs.frames.close()?;
        }
        let mut lines = Vec::new();
        let mut watch = Watch::new(self.stop);
        for message in runs.rows.entries(list) {
            watch.reach(message.at())?;
            lines.clear();
            self.location(message, mappings, functions, &mut lines)?;
            for &line in &lines {
                let row = self.profile.locations.push(line)?;
                runs.frames.push_item(row)?;
            }
            runs.one_row_each &= lines.len() == 1;
            runs.frames.close()?;
        }
        Ok(runs)
    }

    /// Appends the rows of a location to `lines`.
    fn location(
        &mut self,
        mut message: Message,
        mappings: Rows,
        functions: Rows,
        lines: &mut Vec<Location>,
    ) -> Result<()> {
        let mut address = Address::default();
        let mut mapping = None;
        let mut frame_type = None;
        let first = self.profile.location_attributes.len();
        while let Some(found) = message.field()? {
            match found.number {
                location::MAPPING_INDEX => mapping = Some(NumberField::from_field(&found)?),
                location::ADDRESS => address.address = found.uint()?,
                location::LINES => {
                    let line = line(found.message()?, functions, self.problems)?;
                    lines.try_push(line)?;
                }
                location::ATTRIBUTE_INDICES => {
                    for (index, at) in indices(&found)? {
                        self.location_attribute(index, at, &mut address, &mut frame_type)?;
                    }
                }
                _ => {}
            }
        }
        if let Some(NumberField { value: index, at }) = mapping {
            address.mapping = mappings.row(index, at)?.map(MappingId);
        }
        if lines.is_empty() {
            // An address without a symbol.
            lines.try_push(Location::default())?;
        }
        let outermost = lines.len() - 1;
        // Attributes of a location belong to the function that contains the inlined calls.
        let own = next_row(self.profile.locations.len() + outermost, "locations")?;
        for (id, _) in &mut self.profile.location_attributes[first..] {
            *id = LocationId(own);
        }
        let address = self.profile.intern_address(address)?;
        for (i, line) in lines.iter_mut().enumerate() {
            line.address = address;
            line.inlined = i < outermost;
            line.frame_type = frame_type;
        }
        Ok(())
    }

    fn location_attribute(
        &mut self,
        index: u64,
        at: usize,
        address: &mut Address,
        frame_type: &mut Option<FrameType>,
    ) -> Result<()> {
        let Some(entry) = self.attributes.get(index, at)? else {
            return Ok(());
        };
        let profile = &mut self.profile;
        match (profile.strings.get(entry.kept.key), &entry.value) {
            (keys::IS_FOLDED, AnyValue::Bool(is_folded)) => address.is_folded = *is_folded,
            (keys::FRAME_TYPE, AnyValue::String(type_)) if !type_.is_empty() => {
                *frame_type = profile.frame_type_of_text(entry.kept.value.text);
            }
            _ => {
                let all = &mut profile.location_attributes;
                all.try_push((LocationId(0), entry.kept))?;
            }
        }
        Ok(())
    }

    pub fn stacks(&mut self, list: &[Message], runs: Runs) -> Result<Vec<StackId>> {
        let mut stacks = Vec::new();
        let mut frames = Vec::new();
        if list.is_empty() {
            stacks.try_push(self.profile.stacks.intern(&[])?)?;
        }
        let mut unset = None;
        let mut watch = Watch::new(self.stop);
        // With inlined calls, a few bytes can represent a long stack.
        let (mut written, mut frames_watch) = (0, Watch::new(self.stop));
        for &(mut message) in list {
            watch.reach(message.at())?;
            frames.clear();
            while let Some(found) = message.field()? {
                if found.number != stack::LOCATION_INDICES {
                    continue;
                }
                let mut located = |index: u64, at: usize| -> Result<()> {
                    if runs.one_row_each {
                        if let Some(row) = runs.rows.row(index, at)? {
                            return Ok(frames.try_push(LocationId(row))?);
                        }
                    }
                    if index < runs.rows.skipped {
                        let row = match unset {
                            Some(row) => row,
                            None => self.profile.locations.push(Location::default())?,
                        };
                        unset = Some(row);
                        return Ok(frames.try_push(row)?);
                    }
                    let run = runs.run(index, at)?;
                    self.budget.take(size_of_val(run), at)?;
                    written += size_of_val(run);
                    frames_watch.reach(written)?;
                    Ok(frames.try_extend(run)?)
                };
                match found.packed() {
                    Some(list) => list.for_each_varint(located)?,
                    // The last byte of the field, so that each field has its own position.
                    None => located(found.uint()?, message.at() - 1)?,
                }
            }
            stacks.try_push(self.profile.stacks.push(&frames)?)?;
        }
        Ok(stacks)
    }
}

fn line(mut message: Message, functions: Rows, problems: &mut Problems) -> Result<Location> {
    let [mut function, mut line, mut column] = [NumberField::default(); 3];
    while let Some(found) = message.field()? {
        match found.number {
            line::FUNCTION_INDEX => function = NumberField::from_field(&found)?,
            line::LINE => line = NumberField::from_field(&found)?,
            line::COLUMN => column = NumberField::from_field(&found)?,
            _ => {}
        }
    }
    let mut number = |number: NumberField| problems.line_number(number.value as i64, number.at);
    Ok(Location {
        function: functions.row(function.value, function.at)?.map(FunctionId),
        line: Some(number(line)),
        column: number(column),
        ..Location::default()
    })
}
