//! Reads samples: stacks, values, labels.
//!
//! A profile that was not aggregated repeats its stacks, and a repeated one has
//! the same bytes; those are looked up before anything is decoded.

use super::headers;
use super::proto::{label, sample};
use super::tables::Locations;
use super::texts::{Index, TextTable};
use super::wire::{Message, Result, fault};
use crate::error::Error;
use crate::memory::TryGrow;
use crate::model::{Interner, Label, LocationId, Profile, SourceId, StackId, inexact, next_row};
use crate::problems::Problems;

/// Frames that the stacks of a file may have for each of its bytes. Without
/// inlined calls it is one at most; a small file that refers again and again to
/// one location of many lines would fill any memory.
const FRAMES_A_BYTE: usize = 32;
const FRAMES_AT_LEAST: usize = 1 << 20;

pub struct SampleReader<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    pub texts: TextTable<'a>,
    pub locations: Locations,
    pub source: SourceId,
    pub profile: Profile,
    pub problems: Problems,
    pub scratch: Scratch,
}

/// What is known from the samples before, and space that is used again.
#[derive(Default)]
pub struct Scratch {
    /// Where lists of locations stand in the file, and their stacks.
    lists: Vec<(usize, usize, StackId)>,
    index: Interner,
    ids: Vec<(u64, usize)>,
    frames: Vec<LocationId>,
    values: Vec<(i64, usize)>,
    /// Frames of all lists so far.
    expanded: usize,
}

impl<'a> SampleReader<'a> {
    pub fn sample(&mut self, mut message: Message<'a>) -> Result<()> {
        let start = message.at();
        let row = self.profile.samples.len();
        if row >= i32::MAX as usize {
            return Err(Error::Unsupported(format!(
                "More than {} samples, which R cannot number.",
                i32::MAX
            ))
            .into());
        }
        let mut packed: Option<Message> = None;
        self.scratch.ids.clear();
        self.scratch.values.clear();
        while let Some(found) = message.field()? {
            let at = found.at;
            match found.number {
                sample::LOCATION_ID => {
                    // Almost always there is one list, packed.
                    if packed.is_none() && self.scratch.ids.is_empty() {
                        packed = found.packed();
                        if packed.is_some() {
                            continue;
                        }
                    }
                    if let Some(first) = packed.take() {
                        self.ids(first)?;
                    }
                    let ids = &mut self.scratch.ids;
                    found.each(|id| ids.try_push((id, at), "a stack"))?;
                }
                sample::VALUE => {
                    let values = &mut self.scratch.values;
                    found.each(|value| values.try_push((value as i64, at), "sample values"))?;
                }
                sample::LABEL => {
                    let label = self.label(found.message()?, row)?;
                    self.profile.labels.try_push(label, "labels")?;
                }
                _ => {}
            }
        }
        let stack = match packed {
            Some(list) => self.list(list)?,
            None => self.stack()?,
        };
        let values = &self.scratch.values;
        if values.len() != self.profile.values.len() {
            return fault(
                start,
                format!(
                    "This sample has {} values, but there are {} sample types.",
                    values.len(),
                    self.profile.values.len()
                ),
            );
        }
        for (column, &(value, at)) in self.profile.values.iter_mut().zip(values) {
            if column.push(value)? {
                headers::note_nearly(value, at, &mut self.problems);
            }
        }
        let samples = &mut self.profile.samples;
        samples.source.try_push(self.source, "samples")?;
        samples.stack.try_push(stack, "samples")?;
        Ok(())
    }

    /// Decodes a packed list.
    fn ids(&mut self, mut list: Message) -> Result<()> {
        while !list.bytes().is_empty() {
            let at = list.at();
            let id = list.varint()?;
            self.scratch.ids.try_push((id, at), "a stack")?;
        }
        Ok(())
    }

    /// The stack of a packed list.
    fn list(&mut self, list: Message<'a>) -> Result<StackId> {
        let scratch = &mut self.scratch;
        let hash = scratch.index.hash(list.bytes());
        let same = |row: u32| {
            let (start, end, _) = scratch.lists[row as usize];
            &self.bytes[start..end] == list.bytes()
        };
        if let Some(row) = scratch.index.find(hash, same) {
            return Ok(scratch.lists[row as usize].2);
        }
        self.ids(list)?;
        let stack = self.stack()?;
        let scratch = &mut self.scratch;
        let row = next_row(scratch.lists.len(), "stacks")?;
        let (start, end) = (list.at(), list.at() + list.bytes().len());
        scratch.lists.try_push((start, end, stack), "stacks")?;
        scratch.index.insert(hash, row)?;
        Ok(stack)
    }

    /// The stack of the ids at hand.
    fn stack(&mut self) -> Result<StackId> {
        let scratch = &mut self.scratch;
        let most = self
            .bytes
            .len()
            .saturating_mul(FRAMES_A_BYTE)
            .max(FRAMES_AT_LEAST);
        scratch.frames.clear();
        for &(id, at) in &scratch.ids {
            let row = self.locations.ids.find(id, at)?;
            let run = self.locations.run(row as usize);
            scratch.expanded = scratch.expanded.saturating_add(run.len());
            if scratch.expanded > most {
                return fault(
                    at,
                    format!(
                        "With their inlined calls the stacks up to here have more than {most} \
                         frames, too many for a file of {} bytes.",
                        self.bytes.len()
                    ),
                );
            }
            scratch.frames.try_extend(run, "a stack")?;
        }
        Ok(self.profile.stacks.intern(&scratch.frames)?)
    }

    fn label(&mut self, mut message: Message, row: usize) -> Result<Label> {
        let at = message.at();
        let [mut key, mut unit] = [Index { index: 0, at }; 2];
        let mut str = None;
        let mut num = None;
        while let Some(found) = message.field()? {
            match found.number {
                label::KEY => key = Index::of(&found)?,
                label::STR => str = Some(Index::of(&found)?),
                label::NUM => {
                    let value = found.int()?;
                    if let Some(value) = inexact(value) {
                        headers::note_nearly(value, found.at, &mut self.problems);
                    }
                    num = Some(value);
                }
                label::NUM_UNIT => unit = Index::of(&found)?,
                _ => {}
            }
        }
        let strings = &mut self.profile.strings;
        let mut text = |index| self.texts.id(index, strings, &mut self.problems);
        // Of text and number the one is meant that is not 0. Most writers store
        // neither when it is 0 or empty; numbers are the likelier ones to be 0.
        let is_text = str.is_some_and(|str: Index| str.index != 0);
        let is_number = unit.index != 0 || num.is_some_and(|num| num != 0);
        let empty = !is_text && !is_number;
        let is_text = is_text || empty && num.is_none() && str.is_some();
        let is_number = is_number || empty && !is_text;
        Ok(Label {
            sample: row,
            key: text(key)?,
            str: str.filter(|_| is_text).map(&mut text).transpose()?,
            num: is_number.then_some(num.unwrap_or(0)),
            unit: (unit.index != 0).then(|| text(unit)).transpose()?,
        })
    }
}
