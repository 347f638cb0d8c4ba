//! Creates the table of `as_tibble()`: a row for each frame of each sample, with the names of its
//! function and file and its line. It is for inspection and joins; nothing reads it back.

use crate::altrep::Of;
use crate::arena::{Arena, RObject, TextSlots};
use crate::tibble::{NA, Tibble};
use profile_core::error::Result;
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryCollect, TryGrow, filled, with_room};
use profile_core::model::{Frames, Function, LocationId, Profile, StringId, integer_for_r};

/// Columns are filled in parts of about this many rows, which fit in the processor's cache.
const PART: usize = 1 << 13;

/// `lazy`: whether columns are computed when their values are needed.
pub fn frames<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let samples = &profile.samples;
    let locations = profile.locations.len();
    let frames = Frames::new(&profile.stacks, &samples.stack, locations, stop)?;
    let lines = profile.locations.iter().map(|location| location.line);
    let lines = lines.map(|line| line.map_or(NA, integer_for_r));
    let columns = Columns {
        sources: samples
            .source
            .iter()
            .map(|source| source.row() as i32 + 1)
            .try_vec()?,
        names: Texts::new(profile, |function| function.name)?,
        filenames: Texts::new(profile, |function| function.filename)?,
        lines: lines.try_vec()?,
    };
    let mut table = Tibble::new(arena, frames.rows())?;
    let columns = if lazy {
        columns.computed(arena, frames)?
    } else {
        columns.stored(arena, &frames, stop)?
    };
    let names = [
        "sample_id",
        "source_id",
        "depth",
        "name",
        "filename",
        "line",
    ];
    for (name, column) in names.into_iter().zip(columns) {
        table.add(name, column)?;
    }
    table.finish()
}

/// The values of the columns, for each sample or location instead of each frame.
struct Columns<'profile> {
    /// For each sample.
    sources: Vec<i32>,
    names: Texts<'profile>,
    filenames: Texts<'profile>,
    /// For each location.
    lines: Vec<i32>,
}

impl Columns<'_> {
    fn computed<'call>(self, arena: Arena<'call>, frames: Frames) -> Result<[RObject<'call>; 6]> {
        let [sample_id, depth, location_id] = arena.frame_columns(frames)?;
        let values = arena.integer_vector(&self.sources)?;
        let source_id = arena.of_frames(sample_id, Of::Sample, values)?;
        let [name, filename] = [&self.names, &self.filenames].map(|texts| {
            let values = arena.indexed_texts(&texts.distinct, &texts.of_location)?;
            arena.of_frames(location_id, Of::Location, values)
        });
        let values = arena.integer_vector(&self.lines)?;
        let line = arena.of_frames(location_id, Of::Location, values)?;
        Ok([sample_id, source_id, depth, name?, filename?, line])
    }

    fn stored<'call>(
        self,
        arena: Arena<'call>,
        frames: &Frames,
        stop: Stop,
    ) -> Result<[RObject<'call>; 6]> {
        let rows = frames.rows();
        let (sample_id, mut sample_ids) = arena.integers(rows)?;
        let (source_id, mut sources) = arena.integers(rows)?;
        let (depth, mut depths) = arena.integers(rows)?;
        let (line, mut lines) = arena.integers(rows)?;
        let mut names = arena.text_slots(&self.names.distinct, rows)?;
        let mut filenames = arena.text_slots(&self.filenames.distinct, rows)?;
        let mut part: Vec<LocationId> = Vec::new();
        let mut indices = Vec::new();
        for (row, &source) in self.sources.iter().enumerate() {
            let (own, stack) = frames.of(row);
            take(&mut sample_ids, own.len()).fill(row as i32 + 1);
            take(&mut sources, own.len()).fill(source);
            for (slot, number) in take(&mut depths, own.len()).iter_mut().zip(1..) {
                *slot = number;
            }
            stack.append_to(&mut part)?;
            if part.len() < PART && row + 1 < self.sources.len() {
                continue;
            }
            cancel::check(stop)?;
            self.names.fill(&part, &mut indices, &mut names)?;
            self.filenames.fill(&part, &mut indices, &mut filenames)?;
            for (slot, location) in take(&mut lines, part.len()).iter_mut().zip(&part) {
                *slot = self.lines[location.row()];
            }
            part.clear();
        }
        Ok([
            sample_id,
            source_id,
            depth,
            names.vector,
            filenames.vector,
            line,
        ])
    }
}

/// Removes the first elements of a slice and returns them.
pub(super) fn take<'slots, T>(slots: &mut &'slots mut [T], len: usize) -> &'slots mut [T] {
    let (first, rest) = std::mem::take(slots).split_at_mut(len);
    *slots = rest;
    first
}

/// A text of the function of each location.
pub(super) struct Texts<'profile> {
    pub distinct: Vec<&'profile str>,
    /// The index of the text of each location, or -1 if there is none.
    pub of_location: Vec<i32>,
}

impl<'profile> Texts<'profile> {
    pub fn new(profile: &'profile Profile, text: impl Fn(Function) -> StringId) -> Result<Self> {
        let mut distinct: Vec<&str> = Vec::new();
        let mut indices = filled(profile.strings.len(), -1)?;
        let mut of_location = with_room(profile.locations.len())?;
        for location in profile.locations.ids() {
            let text = profile.function_of(location).map(&text);
            let index = match text {
                None => -1,
                Some(text) => {
                    let index = &mut indices[text.row()];
                    if *index < 0 {
                        *index = distinct.len() as i32;
                        distinct.try_push(profile.strings.get(text))?;
                    }
                    *index
                }
            };
            of_location.try_push(index)?;
        }
        Ok(Texts {
            distinct,
            of_location,
        })
    }

    pub fn fill(
        &self,
        frames: &[LocationId],
        indices: &mut Vec<i32>,
        slots: &mut TextSlots,
    ) -> Result<()> {
        indices.clear();
        let of_frames = frames
            .iter()
            .map(|location| self.of_location[location.row()]);
        indices.try_extend_from(of_frames)?;
        slots.fill(indices)
    }
}
