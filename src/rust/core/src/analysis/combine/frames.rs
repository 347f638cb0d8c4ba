//! Combines the stacks of profiles whose tables `sample_locations` are unchanged: each distinct stack is renumbered
//! once, and no rows are written.

use super::{Job, Parts};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, with_room};
use crate::model::{Frames, LocationId, Renumbering, StackId, Stacks};
use crate::schema::{Key, known_frames};

impl<'a> Job<'_, '_, 'a> {
    /// The frames of each profile, with the number of the profile; `None` if a table was changed.
    pub(super) fn known_frames(&self, parts: &Parts<'_, 'a>) -> Result<Option<Vec<PartOf<'a>>>> {
        let mut all = with_room(parts.parts.len())?;
        for &(profile, part) in &parts.parts {
            let ids = |key: Key| Some(&self.numbered.get(key as usize)?.get(profile)?.rows);
            let ids = [Key::Sample, Key::Location].map(ids);
            match known_frames(part, ids, self.stop)? {
                Some(frames) => all.try_push((profile, frames))?,
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
        let mut of_sample: Vec<StackId> = with_room(samples.sum())?;
        let mut stacks = Stacks::default();
        for &(profile, frames) in parts {
            let mut rows = with_room(frames.locations())?;
            for id in (1..).take(frames.locations()) {
                let id = locations[profile].new_id(id).unwrap_or(1);
                rows.try_push(LocationId(id as u32 - 1))?;
            }
            let numbers = Renumbering::new(rows)?;
            let new = stacks.add_renumbered(frames.stacks(), &numbers, self.stop)?;
            let own = frames.of_sample().iter().map(|stack| new[stack.row()]);
            of_sample.try_extend(&own.try_vec()?)?;
        }
        Frames::new(&stacks, &of_sample, count, self.stop)
    }
}

type PartOf<'a> = (usize, &'a Frames);
