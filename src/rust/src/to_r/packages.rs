//! Converts packages that were looked up to R objects: the changes of the tables of functions, locations and frames.

use crate::arena::{Arena, RObject};
use crate::from_r::WithPackages;
use profile_core::collections::Interner;
use profile_core::error::Result;
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryCollect, TryGrow, with_room};
use profile_core::model::{Frames, Function, LocationId, StringId};
use profile_core::schema::{Key, Reading, SampleStacks};

/// A list with `functions` and `locations`, the old row of each new row; `package` and `package_from` of each function;
/// `function_of`, the row of the function of each location; and if stacks have changed, `frames`, the columns of
/// `sample_locations`, or `location_of`, the row of the location of each frame.
pub fn packages<'call>(
    arena: Arena<'call>,
    reading: &Reading,
    found: &WithPackages,
    as_stacks: bool,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let profile = &found.profile;
    let texts = |of: fn(&Function) -> Option<StringId>| {
        let mut distinct: Interner<Vec<StringId>> = Interner::default();
        let mut rows = with_room(profile.functions.len())?;
        for function in profile.functions.iter() {
            let row = of(function).map(|id| distinct.intern(id)).transpose()?;
            rows.try_push(row.map_or(-1, |row| row as i32))?;
        }
        let distinct = distinct.iter().map(|&id| profile.strings.get(id));
        arena.indexed_texts(&distinct.try_vec()?, &rows)
    };
    let rows = |count: usize, added: &[u32]| {
        let (vector, slots) = arena.integers(count)?;
        let old = 0..(count - added.len()) as u32;
        for (slot, row) in slots.iter_mut().zip(old.chain(added.iter().copied())) {
            *slot = row as i32 + 1;
        }
        Ok::<_, profile_core::error::Error>(vector)
    };
    let (function_of, slots) = arena.integers(profile.locations.len())?;
    for (slot, location) in slots.iter_mut().zip(profile.locations.iter()) {
        *slot = location.function.map_or(i32::MIN, |id| id.row() as i32 + 1);
    }
    let (mut frames, mut location_of) = (RObject::null(), RObject::null());
    let is_known = matches!(reading.stacks, SampleStacks::Known(_));
    if found.added.locations.is_empty() {
        // All frames keep their locations.
    } else if is_known && as_stacks && lazy && reading.has_row_ids(Key::Location) {
        let locations = profile.locations.len();
        let all = Frames::new(&profile.stacks, &profile.samples.stack, locations, stop)?;
        let [sample_id, depth, location_id] = arena.frame_columns(all)?;
        frames = arena.list(&[
            ("sample_id", sample_id),
            ("depth", depth),
            ("location_id", location_id),
        ])?;
    } else {
        let (vector, slots) = arena.integers(reading.stacks.rows())?;
        let mut space: Vec<LocationId> = Vec::new();
        for (sample, &id) in profile.samples.stack.iter().enumerate() {
            cancel::at_row(sample, stop)?;
            let stack = profile.stacks.get(id).unpacked(&mut space)?;
            let mut locations = stack.iter();
            reading.each_frame(sample, |row, _| {
                if let (Some(slot), Some(location)) = (slots.get_mut(row), locations.next()) {
                    *slot = location.row() as i32 + 1;
                }
                Ok(())
            })?;
        }
        location_of = vector;
    }
    arena.list(&[
        (
            "functions",
            rows(profile.functions.len(), &found.added.functions)?,
        ),
        (
            "locations",
            rows(profile.locations.len(), &found.added.locations)?,
        ),
        ("package", texts(|function| function.package)?),
        ("package_from", texts(|function| function.package_from)?),
        ("function_of", function_of),
        ("frames", frames),
        ("location_of", location_of),
    ])
}
