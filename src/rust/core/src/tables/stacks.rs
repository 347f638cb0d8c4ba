//! Finds the stacks of samples again: in tables each is written out, in the model it is one
//! row of a table of its own. Tables that come back as they were made still know them.

use super::list::{TableList, check_v2};
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryGrow, copied};
use crate::model::{Frames, LocationId, Profile, StackCache, StackId, Stacks};
use crate::schema::{Key, Reading, Runs, SampleStacks};

/// Checks tables of version "2.0" and makes a profile of them.
pub fn profile_from_v2(list: &TableList, stop: Stop) -> Result<Profile> {
    let mut reading = check_v2(list, stop)?;
    reading.profile.samples.stack = stacks(&mut reading, stop)?;
    Ok(reading.profile)
}

/// The stack of each sample.
fn stacks(reading: &mut Reading, stop: Stop) -> Result<Vec<StackId>> {
    match std::mem::replace(&mut reading.stacks, SampleStacks::Rows(Runs::default())) {
        SampleStacks::Known(frames) => {
            reading.profile.stacks = match reading.has_row_ids(Key::Location) {
                true => frames.stacks().share(),
                false => renamed(frames, reading, stop)?,
            };
            copied(frames.of_sample(), "samples")
        }
        SampleStacks::Rows(runs) => find(runs, reading, stop),
    }
}

/// The stacks with the rows that their locations have now.
fn renamed(frames: &Frames, reading: &Reading, stop: Stop) -> Result<Stacks> {
    let mut stacks = Stacks::default();
    let mut new: Vec<LocationId> = Vec::new();
    for (row, id) in frames.stacks().ids().enumerate() {
        if row % ROWS == 0 {
            cancel::check(stop)?;
        }
        new.clear();
        frames.stacks().get(id).try_for_each(|location| {
            let location = reading.location_now(location)?;
            location.map_or(Ok(()), |location| new.try_push(location, "a stack"))
        })?;
        stacks.push(&new)?;
    }
    Ok(stacks)
}

/// Runs of rows repeat, so a run is looked up as the ids that it has, before its locations are.
fn find(runs: Runs, reading: &mut Reading, stop: Stop) -> Result<Vec<StackId>> {
    let mut known: StackCache<i32> = StackCache::default();
    let mut stacks = Vec::new();
    let mut stack: Vec<LocationId> = Vec::new();
    for (sample, &(start, end)) in runs.of_sample.iter().enumerate() {
        if sample % ROWS == 0 {
            cancel::check(stop)?;
        }
        stack.clear();
        let run = match runs.order {
            Some(_) => None,
            None => Some(&runs.locations[start..end]),
        };
        if let Some(stack) = run.and_then(|run| known.find(run)) {
            stacks.try_push(stack, "samples")?;
            continue;
        }
        for row in runs.rows(sample) {
            if let Some(row) = reading.row_of(Key::Location, runs.locations[row]) {
                stack.try_push(LocationId(next_row(row, "locations")?), "a stack")?;
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
        stacks.try_push(id, "samples")?;
    }
    Ok(stacks)
}
