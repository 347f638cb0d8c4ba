//! Creates the table of `as_tibble()`: a row for each frame of each sample, with the names of its
//! function and file and its line. It is for inspection and joins; nothing reads it back.

use crate::arena::{Arena, RObject, TextSlots};
use crate::tibble::{NA, Tibble};
use profile_core::error::Result;
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryCollect, TryGrow, filled, with_room};
use profile_core::model::{Frames, Function, LocationId, Profile, StringId, integer_for_r};

const WHAT: &str = "the frames of all samples";
/// Columns are filled in parts of about so many rows, which stay in the cache of a processor.
const PART: usize = 1 << 13;

/// `lazy`: whether columns of ids and depths are computed when their values are needed.
pub fn frames<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let samples = &profile.samples;
    let frames = Frames::new(
        &profile.stacks,
        &samples.stack,
        profile.locations.len(),
        stop,
    )?;
    let mut table = Tibble::new(arena, frames.rows())?;
    let mut name = Texts::new(arena, profile, frames.rows(), |function| function.name)?;
    let mut filename = Texts::new(arena, profile, frames.rows(), |function| function.filename)?;
    let lines = profile.locations.iter().map(|location| location.line);
    let lines = lines
        .map(|line| line.map_or(NA, integer_for_r))
        .try_vec(WHAT)?;
    let (line, mut line_slots) = arena.integers(frames.rows())?;
    let mut part: Vec<LocationId> = Vec::new();
    for sample in 0..samples.len() {
        let (_, stack) = frames.of(sample);
        stack.append_to(&mut part)?;
        if part.len() < PART && sample + 1 < samples.len() {
            continue;
        }
        cancel::check(stop)?;
        name.fill(&part)?;
        filename.fill(&part)?;
        let (own, rest) = line_slots.split_at_mut(part.len());
        for (slot, location) in own.iter_mut().zip(&part) {
            *slot = lines[location.row()];
        }
        line_slots = rest;
        part.clear();
    }
    let sources = samples.source.iter().map(|source| source.row() as i32 + 1);
    let source_id = match (lazy, profile.sources.len()) {
        (true, 0 | 1) => arena.constant(frames.rows(), 1)?,
        _ => repeated(arena, &frames, sources)?,
    };
    let (sample_id, depth) = match lazy {
        true => {
            let [sample_id, depth, _] = arena.frame_columns(frames)?;
            (sample_id, depth)
        }
        false => {
            let (depth, mut slots) = arena.integers(frames.rows())?;
            for sample in 0..samples.len() {
                let (own, rest) = slots.split_at_mut(frames.of(sample).0.len());
                for (slot, value) in own.iter_mut().zip(1..) {
                    *slot = value;
                }
                slots = rest;
            }
            (repeated(arena, &frames, 1..)?, depth)
        }
    };
    table.add("sample_id", sample_id)?;
    table.add("source_id", source_id)?;
    table.add("depth", depth)?;
    table.add("name", name.slots.vector)?;
    table.add("filename", filename.slots.vector)?;
    table.add("line", line)?;
    table.finish()
}

/// A column with the value of each sample in all rows of its frames.
fn repeated<'call>(
    arena: Arena<'call>,
    frames: &Frames,
    values: impl Iterator<Item = i32>,
) -> Result<RObject<'call>> {
    let (column, slots) = arena.integers(frames.rows())?;
    for (sample, value) in (0..frames.of_sample().len()).zip(values) {
        slots[frames.of(sample).0].fill(value);
    }
    Ok(column)
}

/// A column with a text of the function of each frame; NA if there is none.
struct Texts<'call> {
    slots: TextSlots<'call>,
    /// The index of the text of each location, or -1.
    of_location: Vec<i32>,
    rows: Vec<i32>,
}

impl<'call> Texts<'call> {
    fn new(
        arena: Arena<'call>,
        profile: &Profile,
        rows: usize,
        text: impl Fn(Function) -> StringId,
    ) -> Result<Texts<'call>> {
        let mut distinct: Vec<&str> = Vec::new();
        let mut indices = filled(profile.strings.len(), -1, WHAT)?;
        let mut of_location = with_room(profile.locations.len(), WHAT)?;
        for location in profile.locations.ids() {
            let text = profile.function_of(location).map(&text);
            let index = match text {
                None => -1,
                Some(text) => {
                    let index = &mut indices[text.row()];
                    if *index < 0 {
                        *index = distinct.len() as i32;
                        distinct.try_push(profile.strings.get(text), WHAT)?;
                    }
                    *index
                }
            };
            of_location.try_push(index, WHAT)?;
        }
        Ok(Texts {
            slots: arena.text_slots(&distinct, rows)?,
            of_location,
            rows: Vec::new(),
        })
    }

    fn fill(&mut self, frames: &[LocationId]) -> Result<()> {
        self.rows.clear();
        let indices = frames
            .iter()
            .map(|location| self.of_location[location.row()]);
        self.rows.try_extend_from(indices, WHAT)?;
        self.slots.fill(&self.rows)
    }
}
