//! Converts the result of filtering to R objects: the remaining samples, frames, and rows of other tables.

use super::frames::take;
use super::rows;
use crate::arena::{Arena, RObject};
use profile_core::error::Result;
use profile_core::limits::cancel::{self, Stop};
use profile_core::model::{Frames, Profile, StackId, Stacks};
use profile_core::tables::{Filtered, FilteredFrames};

/// The result of `rust_filter()`.
pub fn filtered<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    left: &Filtered,
    other: &[(&str, Vec<u32>)],
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let flags = |flags: &[bool]| {
        let (vector, slots) = arena.logicals(flags.len())?;
        for (slot, &flag) in slots.iter_mut().zip(flags) {
            *slot = i32::from(flag);
        }
        Ok::<_, profile_core::error::Error>(vector)
    };
    let mut frames = RObject::null();
    let mut depths = RObject::null();
    let mut no_longer_inlined = RObject::null();
    match &left.frames {
        FilteredFrames::Stacks(stacks, of_sample) => {
            let is_whole = of_sample.len() == left.samples.len();
            let [sample_id, depth, location_id] = if lazy && is_whole {
                let locations = profile.locations.len();
                arena.frame_columns(Frames::new(stacks, of_sample, locations, stop)?)?
            } else {
                rows_of_stacks(arena, stacks, of_sample, &left.samples, stop)?
            };
            frames = arena.list(&[
                ("sample_id", sample_id),
                ("depth", depth),
                ("location_id", location_id),
            ])?;
        }
        FilteredFrames::Rows {
            depths: new,
            no_longer_inlined: rows,
        } => {
            let (vector, slots) = arena.integers(new.len())?;
            slots.copy_from_slice(new);
            depths = vector;
            let (vector, slots) = arena.integers(rows.len())?;
            for (slot, &row) in slots.iter_mut().zip(rows) {
                *slot = row as i32 + 1;
            }
            no_longer_inlined = vector;
        }
    }
    arena.list(&[
        ("samples", flags(&left.samples)?),
        ("outermost", flags(&left.outermost)?),
        ("frames", frames),
        ("depths", depths),
        ("no_longer_inlined", no_longer_inlined),
        ("rows", rows(arena, other)?),
    ])
}

/// The columns of `sample_locations` for the samples that are kept, whose ids are 1, 2, 3, … with gaps.
fn rows_of_stacks<'call>(
    arena: Arena<'call>,
    stacks: &Stacks,
    of_sample: &[StackId],
    stays: &[bool],
    stop: Stop,
) -> Result<[RObject<'call>; 3]> {
    let frames = || of_sample.iter().map(|&stack| stacks.get(stack));
    let rows = frames().map(|stack| stack.len()).sum();
    let (sample_id, mut sample_ids) = arena.integers(rows)?;
    let (depth, mut depths) = arena.integers(rows)?;
    let (location_id, mut locations) = arena.integers(rows)?;
    let mut space = Vec::new();
    let ids = (1..).zip(stays).filter(|(_, stays)| **stays);
    for (i, ((id, _), stack)) in ids.zip(frames()).enumerate() {
        cancel::at_row(i, stop)?;
        let stack = stack.unpacked(&mut space)?;
        take(&mut sample_ids, stack.len()).fill(id);
        for (slot, value) in take(&mut depths, stack.len()).iter_mut().zip(1..) {
            *slot = value;
        }
        for (slot, location) in take(&mut locations, stack.len()).iter_mut().zip(stack) {
            *slot = location.row() as i32 + 1;
        }
    }
    Ok([sample_id, depth, location_id])
}
