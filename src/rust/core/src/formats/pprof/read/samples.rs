//! Reads samples: stacks, values, labels.
//!
//! A profile that was not aggregated repeats its stacks, and equal stacks usually have equal
//! bytes. Bytes are therefore looked up before they are decoded.

use super::parts::Parts;
use super::tables::Locations;
use crate::collections::Lists;
use crate::error::Error;
use crate::formats::pprof::proto::{label, sample};
use crate::formats::problems::Problems;
use crate::formats::samples::next_row;
use crate::formats::string_table::{NumberField, StringTable};
use crate::limits::budget::Budget;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{Label, LocationId, Profile, SourceId, StackCache, StackId};
use crate::protobuf::decode::{Message, Result, error_at};

pub struct SampleReader<'a> {
    pub texts: StringTable<'a>,
    pub locations: Locations,
    pub source: SourceId,
    pub profile: Profile,
    pub problems: Problems,
    known: StackCache<'a, u8>,
    /// The stack of the current sample.
    frames: Vec<LocationId>,
    /// The values of the current sample, and the offset of the last list of them.
    values: Vec<i64>,
    values_at: usize,
    budget: Budget,
    /// The name of the file in messages.
    name: String,
}

impl<'a> SampleReader<'a> {
    pub fn new(
        texts: StringTable<'a>,
        parts: Parts,
        budget: Budget,
        name: String,
    ) -> SampleReader<'a> {
        SampleReader {
            texts,
            locations: parts.locations,
            source: parts.source,
            profile: parts.profile,
            problems: parts.problems,
            known: StackCache::default(),
            frames: Vec::new(),
            values: Vec::new(),
            values_at: 0,
            budget,
            name,
        }
    }

    pub fn sample(&mut self, mut message: Message<'a>) -> Result<()> {
        let start = message.at();
        let row = next_row(&self.profile, &self.name)?;
        let mut packed: Option<Message> = None;
        self.frames.clear();
        self.values.clear();
        while let Some(found) = message.field()? {
            match found.number {
                sample::LOCATION_ID => {
                    // Almost always one packed list.
                    if packed.is_none() && self.frames.is_empty() {
                        packed = found.packed();
                        if packed.is_some() {
                            continue;
                        }
                    }
                    if let Some(first) = packed.take() {
                        self.locate(first)?;
                    }
                    match found.packed() {
                        Some(list) => self.locate(list)?,
                        None => self.locate_one(found.uint()?, found.at)?,
                    }
                }
                sample::VALUE => {
                    self.values_at = found.at;
                    let values = &mut self.values;
                    found.each(|value| values.try_push(value as i64))?;
                }
                sample::LABEL => {
                    let label = self.label(found.message()?, row)?;
                    self.profile.labels.try_push(label)?;
                }
                _ => {}
            }
        }
        let stack = match packed {
            Some(list) => self.stack(list)?,
            None => self.profile.stacks.intern(&self.frames)?,
        };
        if self.values.len() != self.profile.values.len() {
            return error_at(
                start,
                message!(
                    "This sample has {} values, but there are {} sample types.",
                    self.values.len(),
                    self.profile.values.len()
                ),
            );
        }
        for (column, &value) in self.profile.values.iter_mut().zip(&self.values) {
            if column.push(value)? {
                self.problems.nearly(value, self.values_at);
            }
        }
        let frames = self.profile.stacks.get(stack).len();
        self.budget.samples(1, frames, &self.name)?;
        let samples = &mut self.profile.samples;
        samples.source.try_push(self.source)?;
        samples.stack.try_push(stack)?;
        Ok(())
    }

    /// The stack of a packed list.
    fn stack(&mut self, list: Message<'a>) -> Result<StackId> {
        if let Some(stack) = self.known.find(list.bytes()) {
            return Ok(stack);
        }
        self.locate(list)?;
        let stack = self.profile.stacks.push(&self.frames)?;
        self.known.add(list.bytes(), stack)?;
        Ok(stack)
    }

    /// Adds stacks, given as lists of ids in the order of the first sample of each.
    pub fn add_stacks(
        &mut self,
        lists: &Lists<u8>,
        of_samples: &[StackId],
        stop: Stop,
    ) -> Result<()> {
        for (row, &stack) in of_samples.iter().enumerate() {
            cancel::at_row(row, stop)?;
            if stack.row() == self.profile.stacks.len() {
                self.frames.clear();
                self.locate(Message::new(lists.get(stack.row())))?;
                self.profile.stacks.push(&self.frames)?;
            }
            let frames = self.profile.stacks.get(stack).len();
            self.budget.samples(1, frames, &self.name)?;
        }
        Ok(())
    }

    /// Appends the frames of a packed list.
    fn locate(&mut self, list: Message) -> Result<()> {
        let most = list.bytes().len();
        let Some(count) = self.locations.count_if_plain() else {
            return list.for_each_varint(|id, at| self.locate_one(id, at));
        };
        let frames = &mut self.frames;
        frames.try_reserve(most).map_err(Error::from)?;
        list.for_each_varint(|id, at| {
            let row = id.wrapping_sub(1);
            if row >= u64::from(count) {
                return self.locations.ids.find(id, at).map(|_| ());
            }
            Ok(frames.try_push(LocationId(row as u32))?)
        })?;
        Ok(())
    }

    /// Appends the frames of one location.
    #[inline]
    fn locate_one(&mut self, id: u64, at: usize) -> Result<()> {
        let row = self.locations.ids.find(id, at)?;
        let run = self.locations.run(row as usize);
        // Locations with inlined calls have several frames each.
        self.budget
            .check(self.frames.len() + run.len(), &self.name)?;
        Ok(self.frames.try_extend(run)?)
    }

    pub fn label(&mut self, mut message: Message, row: usize) -> Result<Label> {
        let at = message.at();
        let [mut key, mut unit] = [NumberField { value: 0, at }; 2];
        let mut str = None;
        let mut num = None;
        while let Some(found) = message.field()? {
            match found.number {
                label::KEY => key = NumberField::from_field(&found)?,
                label::STR => str = Some(NumberField::from_field(&found)?),
                label::NUM => num = Some(found.int()?),
                label::NUM_UNIT => unit = NumberField::from_field(&found)?,
                _ => {}
            }
        }
        let strings = &mut self.profile.strings;
        let mut text = |index| self.texts.id(index, strings, &mut self.problems);
        // A label is a text or a number, whichever is not 0. If both are 0, it is a text only if
        // there is a field for text and none for a number: most writers omit fields that are 0,
        // and a number is more likely to be 0.
        let is_text = str.is_some_and(|str: NumberField| str.value != 0);
        let is_number = unit.value != 0 || num.is_some_and(|num| num != 0);
        let empty = !is_text && !is_number;
        let is_text = is_text || empty && num.is_none() && str.is_some();
        let is_number = is_number || empty && !is_text;
        let key = text(key)?;
        Ok(Label {
            str: str.filter(|_| is_text).map(&mut text).transpose()?,
            num: is_number.then_some(num.unwrap_or(0)),
            unit: (unit.value != 0).then(|| text(unit)).transpose()?,
            ..Label::new(row, key)
        })
    }
}
