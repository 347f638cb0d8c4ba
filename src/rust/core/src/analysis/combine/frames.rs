//! The stacks of combined profiles whose tables `sample_locations` are as they were made: each
//! distinct stack is renamed once, and no row is written.

use super::{Job, Parts, WHAT};
use crate::error::Result;
use crate::limits::cancel::{self, ROWS};
use crate::limits::memory::{TryCollect, TryGrow, with_room};
use crate::model::{Frames, LocationId, Stack, StackId, Stacks};
use crate::schema::{Key, known_frames};

impl<'a> Job<'_, '_, 'a> {
    /// The frames of each profile, with its number; `None` if a table was changed.
    pub(super) fn known_frames(&self, parts: &Parts<'_, 'a>) -> Result<Option<Vec<PartOf<'a>>>> {
        let mut all = with_room(parts.parts.len(), WHAT)?;
        for &(profile, part) in &parts.parts {
            let ids = |key: Key| Some(&self.numbered.get(key as usize)?.get(profile)?.rows);
            match known_frames(part, ids(Key::Sample), ids(Key::Location)) {
                Some(frames) => all.try_push((profile, frames), WHAT)?,
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    pub(super) fn combined_frames(&self, parts: &[PartOf<'a>]) -> Result<Frames> {
        let locations = &self.numbered[Key::Location as usize];
        let ids = locations.iter().map(|numbered| numbered.greatest());
        let count = ids.max().unwrap_or(0);
        if let [(profile, frames)] = parts {
            if locations[*profile].is_same() {
                return Frames::new(frames.stacks(), frames.of_sample(), count, self.stop);
            }
        }
        let samples = parts.iter().map(|(_, frames)| frames.of_sample().len());
        let mut of_sample: Vec<StackId> = with_room(samples.sum(), WHAT)?;
        let mut stacks = Stacks::default();
        let mut stack: Vec<LocationId> = Vec::new();
        let mut space = Vec::new();
        for &(profile, frames) in parts {
            let mut new: Vec<StackId> = with_room(frames.stacks().len(), WHAT)?;
            for (row, id) in frames.stacks().ids().enumerate() {
                if row % ROWS == 0 {
                    cancel::check(self.stop)?;
                }
                stack.clear();
                let own = frames.stacks().get(id);
                for location in own.unpacked(&mut space)? {
                    // Their ids are their rows, counted from 1.
                    let id = locations[profile].new_id(location.row() as i32 + 1);
                    stack.try_push(LocationId(id.unwrap_or(1) as u32 - 1), WHAT)?;
                }
                // Most packed stacks are distinct: interning them takes longer than all the rest.
                let id = match own {
                    Stack::Packed(_) => stacks.push(&stack)?,
                    Stack::Locations(_) => stacks.intern(&stack)?,
                };
                new.try_push(id, WHAT)?;
            }
            let own = frames.of_sample().iter().map(|stack| new[stack.row()]);
            of_sample.try_extend(&own.try_vec(WHAT)?, WHAT)?;
        }
        Frames::new(&stacks, &of_sample, count, self.stop)
    }
}

type PartOf<'a> = (usize, &'a Frames);
