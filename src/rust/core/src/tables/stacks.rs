//! Finds the stacks of samples: tables contain all frames of each sample, the model stores each
//! distinct stack once. Tables that were not changed since they were created still have the stacks.

use super::list::{TableList, check_v2};
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, with_room};
use crate::model::{Frames, LocationId, Profile, Renumbering, StackCache, StackId};
use crate::schema::{Key, Reading, Runs, SampleStacks};

/// Checks tables of version "2.0" and converts them to a profile.
pub fn profile_from_v2(list: &TableList, stop: Stop) -> Result<Profile> {
    let mut reading = check_v2(list, stop)?;
    reading.profile.samples.stack = stacks(&mut reading, stop)?;
    Ok(reading.profile)
}

/// The stack of each sample.
fn stacks(reading: &mut Reading, stop: Stop) -> Result<Vec<StackId>> {
    match std::mem::replace(&mut reading.stacks, SampleStacks::Rows(Runs::default())) {
        SampleStacks::Known(frames) => {
            if !reading.has_row_ids(Key::Location) {
                return renumbered(frames, reading, stop);
            }
            reading.profile.stacks = frames.stacks().share();
            copied(frames.of_sample())
        }
        SampleStacks::Rows(runs) => find(runs, reading, stop),
    }
}

/// The stacks of an unchanged table, if the rows of locations have changed.
fn renumbered(frames: &Frames, reading: &mut Reading, stop: Stop) -> Result<Vec<StackId>> {
    let mut rows = with_room(frames.locations())?;
    for id in (0..).take(frames.locations()).map(LocationId) {
        // Missing locations are in no stack, so any row will do.
        rows.try_push(reading.location_now(id)?.unwrap_or(LocationId(0)))?;
    }
    let (stacks, numbers) = (&mut reading.profile.stacks, Renumbering::new(rows)?);
    let new = stacks.add_renumbered(frames.stacks(), &numbers, stop)?;
    let of_sample = frames.of_sample().iter();
    of_sample.map(|stack| new[stack.row()]).try_vec()
}

/// Finds equal stacks. Runs of rows often repeat, so each run is looked up by its ids before its
/// locations are resolved.
fn find(runs: Runs, reading: &mut Reading, stop: Stop) -> Result<Vec<StackId>> {
    let mut known: StackCache<i32> = StackCache::default();
    let mut stacks = Vec::new();
    let mut stack: Vec<LocationId> = Vec::new();
    for (sample, &(start, end)) in runs.of_sample.iter().enumerate() {
        cancel::at_row(sample, stop)?;
        stack.clear();
        let run = match runs.order {
            Some(_) => None,
            None => Some(&runs.locations[start..end]),
        };
        if let Some(stack) = run.and_then(|run| known.find(run)) {
            stacks.try_push(stack)?;
            continue;
        }
        for row in runs.rows(sample) {
            if let Some(row) = reading.row_of(Key::Location, runs.locations[row]) {
                stack.try_push(LocationId(next_row(row, "locations")?))?;
            }
        }
        let id = match run {
            Some(run) => {
                let id = reading.profile.stacks.push(&stack)?;
                known.add(run, id)?;
                id
            }
            None => reading.profile.stacks.intern(&stack)?,
        };
        stacks.try_push(id)?;
    }
    Ok(stacks)
}
