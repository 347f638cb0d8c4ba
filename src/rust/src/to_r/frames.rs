//! Creates the table of `as_tibble()`: a row for each frame of each sample, with the names of its
//! function and file and its line. It is for inspection and joins; nothing reads it back.

use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::error::Result;
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryCollect, with_room};
use profile_core::model::{LocationId, Profile, StringId, integer_for_r};

const FRAMES: &str = "the frames of all samples";
const SAMPLES_PER_CHECK: usize = 10_000;

pub fn frames<'call>(arena: Arena<'call>, profile: &Profile, stop: Stop) -> Result<RObject<'call>> {
    let samples = || {
        profile
            .samples
            .stack
            .iter()
            .zip(profile.samples.source.iter())
    };
    let rows = samples().map(|(&s, _)| profile.stacks.get(s).len()).sum();
    let mut table = Tibble::new(arena, rows)?;
    let mut sample_id = table.integer_slots("sample_id")?;
    let mut source_id = table.integer_slots("source_id")?;
    let mut depth = table.integer_slots("depth")?;
    let mut locations: Vec<LocationId> = with_room(rows, FRAMES)?;
    for (row, (&stack, source)) in samples().enumerate() {
        if row % SAMPLES_PER_CHECK == 0 {
            cancel::check(stop)?;
        }
        let before = locations.len();
        profile.stacks.get(stack).append_to(&mut locations)?;
        let frames = locations.len() - before;
        let (ids, rest) = sample_id.split_at_mut(frames);
        ids.fill(row as i32 + 1);
        sample_id = rest;
        let (ids, rest) = source_id.split_at_mut(frames);
        ids.fill(source.row() as i32 + 1);
        source_id = rest;
        let (depths, rest) = depth.split_at_mut(frames);
        for (slot, value) in depths.iter_mut().zip(1..) {
            *slot = value;
        }
        depth = rest;
    }
    let strings = profile.strings.iter().try_vec("strings")?;
    let mut by_location = |name, of: &dyn Fn(LocationId) -> Option<StringId>| -> Result<()> {
        let row = |&location| of(location).map_or(-1, |id| id.row() as i32);
        let rows = locations.iter().map(row).try_vec(FRAMES)?;
        table.indexed_texts(name, &strings, &rows)
    };
    by_location("name", &|l| profile.function_of(l).map(|f| f.name))?;
    by_location("filename", &|l| profile.function_of(l).map(|f| f.filename))?;
    let lines = locations.iter().map(|&l| profile.locations.get(l).line);
    table.integers("line", lines.map(|line| line.map_or(NA, integer_for_r)))?;
    table.finish()
}
