//! The keys and frames of stacks.

use super::super::content_keys::{Cells, content_keys, key};
use super::super::frame_names::{FrameNames, shown};
use super::super::packages::package_of;
use super::origins::Origin;
use super::rows::{Frame, Sum, pairs_with_services};
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, with_room};
use crate::model::{LocationId, Profile, StackId, integer_for_r};
use crate::schema::NA;
use hmac_sha256::Hash;
use std::borrow::Cow;

/// The columns of frames, by location.
pub struct FrameTexts<'p> {
    pub names: Vec<Cow<'p, str>>,
    pub files: Vec<Option<&'p str>>,
    /// NA if it is unknown.
    pub lines: Vec<i32>,
    pub packages: Vec<Option<&'p str>>,
    pub types: Vec<Option<&'p str>>,
}

impl<'p> FrameTexts<'p> {
    pub(super) fn new(profile: &'p Profile, names: &'p FrameNames) -> Result<FrameTexts<'p>> {
        let count = profile.locations.len();
        let mut texts = FrameTexts {
            names: with_room(count)?,
            files: with_room(count)?,
            lines: with_room(count)?,
            packages: with_room(count)?,
            types: with_room(count)?,
        };
        for id in profile.locations.ids() {
            let frame = shown(profile, id)?;
            texts.names.try_push(Cow::Borrowed(names.of(id)))?;
            let file = Some(frame.file).filter(|file| !file.is_empty());
            texts.files.try_push(file)?;
            let line = integer_for_r(frame.line);
            texts.lines.try_push(if line == 0 { NA } else { line })?;
            texts.packages.try_push(package_of(profile, id))?;
            let location = profile.locations.get(id);
            texts.types.try_push(profile.frame_type_of(&location))?;
        }
        Ok(texts)
    }

    /// The keys of all locations.
    fn keys(&self, stop: Stop) -> Result<Vec<String>> {
        let names = self
            .names
            .iter()
            .map(|name| Some(name.as_ref()))
            .try_vec()?;
        let optional = |texts: &[Option<&'p str>]| copied(texts).map(Cells::Texts);
        let mut columns = [
            ("name", Cells::Texts(names)),
            ("file", optional(&self.files)?),
            ("line", Cells::Integers(&self.lines)),
            ("package", optional(&self.packages)?),
            ("frame_type", optional(&self.types)?),
        ];
        content_keys(&mut columns, self.names.len(), stop)
    }
}

/// Numbers stacks by their keys: stacks whose frames look the same have the same number.
pub(super) struct StackKeys {
    pub(super) location_keys: Vec<String>,
    pub(super) keys: Interner<TextList>,
    /// A stack for each key.
    examples: Vec<StackId>,
    /// The number of each stack that has been looked up.
    numbers: Vec<Option<u32>>,
    space: Vec<LocationId>,
}

impl StackKeys {
    pub(super) fn new(profile: &Profile, texts: &FrameTexts, stop: Stop) -> Result<StackKeys> {
        Ok(StackKeys {
            location_keys: texts.keys(stop)?,
            keys: Interner::default(),
            examples: Vec::new(),
            numbers: filled(profile.stacks.len(), None)?,
            space: Vec::new(),
        })
    }

    pub(super) fn number(&mut self, profile: &Profile, stack: StackId) -> Result<u32> {
        if let Some(number) = self.numbers[stack.row()] {
            return Ok(number);
        }
        let mut hash = Hash::new();
        // All keys have the same length, so that different lists never have the same bytes.
        for location in profile.stacks.get(stack).unpacked(&mut self.space)? {
            hash.update(&self.location_keys[location.row()]);
        }
        let number = self.keys.intern(&key(hash)?)?;
        if number as usize == self.examples.len() {
            self.examples.try_push(stack)?;
        }
        self.numbers[stack.row()] = Some(number);
        Ok(number)
    }

    pub(super) fn frames(
        &self,
        profile: &Profile,
        origins: &[Origin],
        sums: &[Sum],
        stop: Stop,
    ) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        let pairs = pairs_with_services(origins, sums, |group| Some(group.stack))?;
        let mut space = Vec::new();
        for (row, &(origin, stack)) in pairs.iter().enumerate() {
            cancel::at_row(row, stop)?;
            let example = profile.stacks.get(self.examples[stack as usize]);
            for (depth, &location) in (1..).zip(example.unpacked(&mut space)?) {
                frames.try_push(Frame {
                    origin,
                    stack,
                    depth,
                    location,
                })?;
            }
        }
        Ok(frames)
    }
}
