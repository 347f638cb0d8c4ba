//! Reads regular files in one pass, while another thread reads and decompresses ahead.
//!
//! Most writers put the samples before the tables that they refer to. The lists of locations of the samples are
//! therefore kept as encoded until the tables have been read. If the ids are row numbers, as most writers assign them,
//! the lists are checked and become the stacks of the model ([`Stacks::from_packed()`]); otherwise they are decoded. All
//! other fields are collected, and read like the fields of a whole message.
//!
//! This reader reports nothing. If anything is irregular or rare, the reader of whole messages starts
//! again, so that errors, problems and their positions do not depend on this file.

use super::header::MOST_TYPES;
use super::outline::Outline;
use super::parts::Parts;
use super::samples::SampleReader;
use super::{sources, spans};
use crate::collections::Lists;
use crate::error::{Error, Result};
use crate::formats::format::Format;
use crate::formats::message::LARGEST;
use crate::formats::pprof::proto::{profile as field, sample};
use crate::formats::problems::Problems;
use crate::io::gzip::Content;
use crate::io::input::Origin;
use crate::io::pieces::{self, Pieces};
use crate::limits::budget::Budget;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::model::{PackedStacks, Profile, SampleColumn, StackId, Stacks, is_exact};
use crate::protobuf::decode::{DecodeError, Message, Result as WireResult};
use crate::protobuf::encode::put_varint;

/// The maximum length of a varint, in bytes.
const LONGEST_NUMBER: usize = 10;

/// Reads the profile; returns `None` if the file is not regular.
pub fn read(
    content: Content,
    piece: usize,
    origin: &Origin,
    format: &'static Format,
    stop: Stop,
) -> Result<Option<Profile>> {
    let mut samples = Samples::new(origin.budget());
    let read = pieces::in_pieces(content, piece, |pieces| Ok(samples.read(pieces, stop)))?;
    match read.and_then(|()| samples.finish(origin, format, stop)) {
        Ok(profile) => Ok(Some(profile)),
        Err(DecodeError::Other(error @ (Error::Interrupted | Error::Memory))) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The reader of whole messages reports the reason.
fn irregular() -> Error {
    Error::Unsupported(String::new())
}

/// Whether these bytes are empty or may be the start of an incomplete field.
fn is_start_of_field(bytes: &[u8]) -> bool {
    let mut message = Message::new(bytes);
    let is_short = |message: &Message| message.bytes().len() < LONGEST_NUMBER;
    let Ok(tag) = message.varint() else {
        return is_short(&message);
    };
    match tag & 7 {
        0 | 1 | 5 => tag >> 3 != 0 && is_short(&message),
        2 => match message.varint() {
            Ok(length) => tag >> 3 != 0 && length <= LARGEST as u64,
            Err(_) => is_short(&message),
        },
        _ => false,
    }
}

/// The part of a profile that has been read.
struct Samples {
    /// The number of bytes.
    size: usize,
    budget: Budget,
    /// All fields except samples.
    rest: Vec<u8>,
    /// Stacks as ids of locations.
    stacks: PackedStacks,
    /// The ids of a sample if they are not packed, as most writers do with one or two.
    ids: Vec<u8>,
    /// The stack of each sample.
    of_sample: Vec<StackId>,
    /// For each type, the values of all samples.
    columns: Vec<SampleColumn<f64>>,
    labels: Lists<u8>,
    /// The sample of each label.
    labeled: Vec<usize>,
}

impl Samples {
    fn new(budget: Budget) -> Samples {
        Samples {
            size: 0,
            budget,
            rest: Vec::new(),
            stacks: PackedStacks::default(),
            ids: Vec::new(),
            of_sample: Vec::new(),
            columns: Vec::new(),
            labels: Lists::default(),
            labeled: Vec::new(),
        }
    }

    fn read(&mut self, pieces: &mut Pieces, stop: Stop) -> WireResult<()> {
        loop {
            cancel::check(stop)?;
            let Ok(count) = pieces.more() else {
                return Err(irregular().into());
            };
            self.size += count;
            if self.size > LARGEST || !self.budget.try_take(count as u64) {
                return Err(irregular().into());
            }
            if count == 0 {
                break;
            }
            let bytes = pieces.bytes();
            let (length, used) = (bytes.len(), self.fields(bytes)?);
            pieces.keep(used..length);
        }
        if pieces.bytes().is_empty() && pieces.padding() == 0 {
            Ok(())
        } else {
            Err(irregular().into())
        }
    }

    /// Reads complete fields; returns their size.
    fn fields(&mut self, bytes: &[u8]) -> WireResult<usize> {
        let mut message = Message::new(bytes);
        loop {
            let start = message.at();
            // An incomplete field continues in the next piece.
            let Ok(Some(found)) = message.field() else {
                let rest = bytes.get(start..).unwrap_or_default();
                return if is_start_of_field(rest) {
                    Ok(start)
                } else {
                    Err(irregular().into())
                };
            };
            if found.number == field::SAMPLE {
                self.sample(found.message()?)?;
            } else {
                let field = bytes.get(start..message.at()).unwrap_or_default();
                self.rest.try_extend(field)?;
            }
        }
    }

    #[inline]
    fn sample(&mut self, mut message: Message) -> WireResult<()> {
        let row = self.of_sample.len();
        if row >= i32::MAX as usize {
            return Err(irregular().into());
        }
        let mut packed: Option<Message> = None;
        let mut values = 0;
        self.ids.clear();
        while let Some(found) = message.field()? {
            match found.number {
                sample::LOCATION_ID => match found.packed() {
                    Some(list) if packed.is_none() && self.ids.is_empty() => packed = Some(list),
                    None if packed.is_none() => {
                        let room = self.ids.try_reserve(LONGEST_NUMBER);
                        room.map_err(Error::from)?;
                        put_varint(&mut self.ids, found.uint()?);
                    }
                    _ => return Err(irregular().into()),
                },
                sample::VALUE => found.each(|value| {
                    self.value(row, values, value as i64)?;
                    values += 1;
                    Ok(())
                })?,
                sample::LABEL => {
                    self.labels.push(found.message()?.bytes())?;
                    self.labeled.try_push(row)?;
                }
                _ => {}
            }
        }
        if values != self.columns.len() {
            return Err(irregular().into());
        }
        let (stack, bytes) = match packed {
            Some(list) => (self.stacks.find_or_add(list.bytes())?, list.bytes().len()),
            None => (self.stacks.intern(&self.ids)?, self.ids.len()),
        };
        // Each frame takes at least one byte.
        if self.budget.samples(1, bytes, "").is_err() {
            return Err(irregular().into());
        }
        Ok(self.of_sample.try_push(stack)?)
    }

    /// Adds a value of a sample. All samples must have as many as the first one.
    #[inline]
    fn value(&mut self, row: usize, at: usize, value: i64) -> Result<()> {
        if row == 0 && at < MOST_TYPES {
            self.columns.try_push(SampleColumn::default())?;
        }
        match self.columns.get_mut(at) {
            Some(column) if is_exact(value) => column.try_push(value as f64),
            _ => Err(irregular()),
        }
    }

    /// Completes the profile when everything has been read.
    fn finish(self, origin: &Origin, format: &'static Format, stop: Stop) -> WireResult<Profile> {
        let mut outline = Outline::read(&self.rest, stop)?;
        let mut parts = Parts::read(&mut outline, origin, format, Problems::default())?;
        let profile = &mut parts.profile;
        let has_samples = !self.of_sample.is_empty();
        if has_samples && (self.columns.is_empty() || self.columns.len() != profile.values.len()) {
            return Err(irregular().into());
        }
        for (values, column) in profile.values.iter_mut().zip(self.columns) {
            values.column = column;
        }
        let (stacks, of_sample) = (self.stacks.into_lists(), self.of_sample);
        let source = parts.source;
        profile.samples.source.try_fill(of_sample.len(), source)?;
        let lists = match parts.locations.count_if_plain() {
            Some(_) => {
                let packed = Stacks::from_packed(stacks, profile.locations.len());
                profile.stacks = packed.ok_or_else(irregular)?;
                None
            }
            None => Some(stacks),
        };
        let mut budget = origin.budget();
        budget.take(self.size as u64, "")?;
        let mut reader = SampleReader::new(outline.texts, parts, budget, String::new());
        if let Some(lists) = lists {
            reader.add_stacks(&lists, &of_sample, stop)?;
        }
        reader.profile.samples.stack = of_sample;
        for (label, &row) in self.labels.iter().zip(&self.labeled) {
            let label = reader.label(Message::new(label), row)?;
            reader.profile.labels.try_push(label)?;
        }
        if !reader.problems.is_empty() {
            return Err(irregular().into());
        }
        let mut profile = reader.profile;
        sources::from_labels(&mut profile, self.size, stop)?;
        spans::from_labels(&mut profile, stop)?;
        Ok(profile)
    }
}
