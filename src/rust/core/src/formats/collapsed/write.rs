//! Writes collapsed stacks: one line for each distinct stack of names, with the sum of its samples.
//!
//! The names of functions are all that a frame has, so stacks that differ only in files or lines become
//! one. They are merged in a prefix tree, and the lines are in the order of their first samples.

use super::grammar::{FRAME_TYPES, INLINED, starts_like_comment};
use crate::analysis::frame_names::FrameNames;
use crate::analysis::paths::{Paths, ROOT};
use crate::analysis::sample_types::{WrittenType, chosen_type, left_out_types};
use crate::analysis::total::Total;
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::formats::losses::{LossKind, Losses};
use crate::formats::write;
use crate::io::save;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{Growing, TryGrow, TryText, filled, with_room};
use crate::model::{LocationId, Profile, Values};
use std::io::Write;

/// The number of bytes that are written at once.
const CHUNK: usize = 1 << 16;

/// Writes collapsed stacks.
#[derive(Debug, Clone, Default)]
pub struct Writer<'w> {
    /// The name of the sample type whose values are summed; by default counts of samples.
    pub type_: Option<&'w str>,
    /// Whether frames get suffixes for their types.
    pub frame_types: bool,
}

impl write::Writer for Writer<'_> {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let mut losses = Losses::default();
        let type_ = chosen_type(profile, self.type_)?;
        losses.add(
            LossKind::SampleWithoutValue,
            in_other_units(profile, &type_),
        );
        if self.type_.is_none() {
            let left_out = left_out_types(profile, &[(type_.key, type_.unit)])?;
            losses.add(LossKind::LeftOutType, left_out);
        }
        let frames = FrameTexts::new(profile, self.frame_types)?;
        losses.add(LossKind::ChangedName, frames.changed);
        let stacks = NameStacks::new(profile, &type_, &frames, &mut losses, stop)?;
        stacks.write(&frames.texts, out, &mut losses, stop)?;
        Ok(losses)
    }
}

/// The distinct stacks of names, with the sums of their samples.
#[derive(Default)]
struct NameStacks {
    /// A stack is a node of this tree.
    paths: Paths,
    /// By node.
    sums: Vec<Total>,
    /// The stacks in the order of their first samples.
    order: Vec<u32>,
}

impl NameStacks {
    fn new(
        profile: &Profile,
        type_: &WrittenType,
        frames: &FrameTexts,
        losses: &mut Losses,
        stop: Stop,
    ) -> Result<NameStacks> {
        let mut stacks = NameStacks::default();
        // The path of a stack is computed for its first sample.
        let mut path_of = filled(profile.stacks.len(), None)?;
        let mut space = Vec::new();
        for (row, &stack) in profile.samples.stack.iter().enumerate() {
            cancel::at_row(row, stop)?;
            let value = type_.total(row, profile.samples.source[row]);
            if value.is_zero() {
                continue;
            }
            let path = match path_of[stack.row()] {
                Some(path) => path,
                None => {
                    let locations = profile.stacks.get(stack).unpacked(&mut space)?;
                    let outermost_first = locations.iter().rev().copied();
                    let path = stacks.paths.add(outermost_first, &frames.of_location)?;
                    let path = path.unwrap_or(ROOT);
                    path_of[stack.row()] = Some(path);
                    let nodes = stacks.paths.nodes().len();
                    stacks.sums.try_fill(nodes, Total::default())?;
                    path
                }
            };
            let Some(sum) = stacks.sums.get_mut(path as usize) else {
                losses.add(LossKind::EmptySample, 1);
                continue;
            };
            if sum.is_new() {
                stacks.order.try_push(path)?;
            }
            sum.add(value);
        }
        Ok(stacks)
    }

    /// Writes a line for each stack whose sum is positive.
    fn write(
        &self,
        texts: &Interner<TextList>,
        out: &mut dyn Write,
        losses: &mut Losses,
        stop: Stop,
    ) -> Result<()> {
        let mut lines = with_room(2 * CHUNK)?;
        let mut names = Vec::new();
        for (at, &path) in self.order.iter().enumerate() {
            cancel::at_row(at, stop)?;
            let sum = self.sums[path as usize];
            if sum.is_zero() {
                continue;
            }
            if sum.is_negative() {
                losses.add(LossKind::NegativeSum, 1);
                continue;
            }
            names.clear();
            let mut node = path;
            while let Some(found) = self.paths.nodes().get(node as usize) {
                names.try_push(found.group)?;
                node = found.parent;
            }
            for (depth, &name) in names.iter().rev().enumerate() {
                if depth > 0 {
                    lines.try_push(b';')?;
                }
                lines.try_extend(texts.get(name).as_bytes())?;
            }
            writeln!(Growing(&mut lines), " {sum}").map_err(save::failed)?;
            if lines.len() > CHUNK {
                out.write_all(&lines).map_err(save::failed)?;
                lines.clear();
            }
        }
        out.write_all(&lines).map_err(save::failed)
    }
}

/// The number of samples with a value of the type, but in another unit, which cannot be added.
fn in_other_units(profile: &Profile, type_: &WrittenType) -> usize {
    let is_other = |v: &&Values| v.type_.name == type_.key && v.type_.unit != type_.unit;
    let others = profile.values.iter().filter(is_other);
    let columns = others.flat_map(|values| values.column.iter());
    columns.filter(|value| !value.is_nan()).count()
}

/// The texts of frames, by location.
struct FrameTexts {
    texts: Interner<TextList>,
    of_location: Vec<u32>,
    /// The number of names that were changed.
    changed: usize,
}

impl FrameTexts {
    fn new(profile: &Profile, frame_types: bool) -> Result<FrameTexts> {
        let mut frames = FrameTexts {
            texts: Interner::default(),
            of_location: with_room(profile.locations.len())?,
            changed: 0,
        };
        let names = FrameNames::new(profile)?;
        let mut counted = filled(names.count(), false)?;
        let mut text = String::new();
        for location in profile.locations.ids() {
            let row = names.row(location);
            let name = names.get(row);
            text.clear();
            let mut changed = starts_like_comment(name.as_bytes());
            if changed {
                text.try_push_char(' ')?;
            }
            for c in name.chars() {
                let written = match c {
                    ';' => ':',
                    '\n' | '\r' => ' ',
                    c => c,
                };
                changed |= written != c;
                text.try_push_char(written)?;
            }
            if changed {
                frames.changed += usize::from(!counted[row as usize]);
                counted[row as usize] = true;
            }
            if frame_types {
                text.try_push_str(suffix(profile, location))?;
            }
            let id = frames.texts.intern(&text)?;
            frames.of_location.try_push(id)?;
        }
        Ok(frames)
    }
}

/// The suffix for the type of a frame.
fn suffix(profile: &Profile, location: LocationId) -> &'static str {
    let location = profile.locations.get(location);
    if location.inlined {
        return INLINED;
    }
    let type_ = profile.frame_type_of(&location);
    let found = FRAME_TYPES.iter().find(|(_, name)| type_ == Some(*name));
    found.map_or("", |(suffix, _)| suffix)
}
