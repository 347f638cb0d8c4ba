//! The samples of a profile as steps of equal length, which profvis draws: a row for each frame of each step, innermost
//! first.
//!
//! For each function, profvis shows the line that called it, so each frame has the file and the line of the next
//! outer one. The line that was running in the innermost function is a separate row, with its code as label.

use super::frame_names::FrameNames;
use super::recorded::RowKinds;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled, with_room};
use crate::message;
use crate::model::known_types::RPROF_MEMORY;
use crate::model::{Profile, Values};
use crate::schema::NA;
use std::collections::HashMap;

const MEBIBYTE: f64 = (1 << 20) as f64;

/// A step. All lists have an element for each of its rows.
pub struct Step<'s> {
    /// Counted from 1.
    pub number: i32,
    /// Indices of labels.
    pub labels: &'s [i32],
    /// Indices of files, or -1, and lines, or [`NA`].
    pub files: &'s [i32],
    pub lines: &'s [i32],
    /// The memory in use in MiB, and the difference to the step before.
    pub memory: f64,
    pub increment: f64,
}

pub struct Steps<'p> {
    profile: &'p Profile,
    names: &'p FrameNames,
    /// The names of functions, then the lines of code.
    pub labels: Vec<&'p str>,
    code: Code<'p>,
    /// The number of rows of all steps.
    pub rows: usize,
}

impl<'p> Steps<'p> {
    /// `files` contains the names and texts of files. Frames in any other file have no file.
    pub fn new(
        profile: &'p Profile,
        names: &'p FrameNames,
        files: &[(&'p str, &'p str)],
        stop: Stop,
    ) -> Result<Steps<'p>> {
        let all = 0..names.count() as u32;
        let mut labels = all.map(|row| names.get(row)).try_vec()?;
        let code = Code::new(profile, files, &mut labels)?;
        let rows = rows(profile, &code, stop)?;
        Ok(Steps {
            profile,
            names,
            labels,
            code,
            rows,
        })
    }

    /// Passes all steps to `put`.
    pub fn each(&self, stop: Stop, mut put: impl FnMut(Step) -> Result<()>) -> Result<()> {
        let profile = self.profile;
        // profvis shows the memory of vectors.
        let memory = RPROF_MEMORY[..2].iter();
        let memory = memory.filter_map(|known| profile.known(known)).try_vec()?;
        let kinds = RowKinds::new(profile)?;
        let (mut number, mut before) = (0_i32, None);
        let mut space = Vec::new();
        let (mut labels, mut files, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        let mut toplevel = profile.samples.toplevel.iter().peekable();
        for (row, &stack) in profile.samples.stack.iter().enumerate() {
            let called_from = toplevel.next_if(|toplevel| toplevel.sample == row);
            let stack = profile.stacks.get(stack).unpacked(&mut space)?;
            let in_use = memory_of(&memory, row);
            let steps = steps(profile, &kinds, row);
            let Some(innermost) = stack.first() else {
                number =
                    i32::try_from(steps).map_or(i32::MAX, |steps| steps.saturating_add(number));
                continue;
            };
            labels.clear();
            files.clear();
            lines.clear();
            let mut places = stack
                .iter()
                .map(|location| self.code.places[location.row()]);
            match self.code.labels[innermost.row()] {
                -1 => drop(places.next()),
                code => labels.try_push(code)?,
            }
            let outermost = called_from.and_then(|from| {
                let file = self.code.files.get(profile.strings.get(from.filename))?;
                Some((*file, from.line))
            });
            for place in places.chain([outermost]) {
                let (file, line) = place.unwrap_or((-1, NA));
                files.try_push(file)?;
                lines.try_push(line)?;
            }
            for location in stack {
                labels.try_push(self.names.row(*location) as i32)?;
            }
            for _ in 0..steps {
                cancel::at_row(number as usize, stop)?;
                number = number.saturating_add(1);
                put(Step {
                    number,
                    labels: &labels,
                    files: &files,
                    lines: &lines,
                    memory: in_use,
                    increment: in_use - before.replace(in_use).unwrap_or(in_use),
                })?;
            }
        }
        Ok(())
    }
}

/// The number of rows of all steps.
fn rows(profile: &Profile, code: &Code, stop: Stop) -> Result<usize> {
    if profile.counts().is_none() && profile.in_use("bytes").is_some() {
        return Err(Error::Unsupported(message!(
            "The profile contains memory in use, but profvis can show only samples over time. Use `profile_page()`."
        )));
    }
    let mut rows = 0_u64;
    let kinds = RowKinds::new(profile)?;
    for (row, &stack) in profile.samples.stack.iter().enumerate() {
        cancel::at_row(row, stop)?;
        let stack = profile.stacks.get(stack);
        let has_code = stack
            .first()
            .is_some_and(|innermost| code.labels[innermost.row()] >= 0);
        let frames = stack.len() as u64 + u64::from(has_code);
        if let Some(count) = profile.counts().map(|counts| counts.column[row]) {
            if count < 0.0 {
                return Err(Error::Unsupported(message!(
                    "Sample {} has the count {count}, but profvis cannot show negative values. Use \
                     `profile_page()`.",
                    row + 1
                )));
            }
        }
        rows = rows.saturating_add(frames.saturating_mul(steps(profile, &kinds, row)));
    }
    match i32::try_from(rows) {
        Ok(rows) => Ok(rows as usize),
        Err(_) => Err(Error::Unsupported(message!(
            "The profile has {rows} frames, more than profvis can show. Use `profile_page()`."
        ))),
    }
}

/// The number of steps that a sample represents.
fn steps(profile: &Profile, kinds: &RowKinds, row: usize) -> u64 {
    let count = profile.counts().map_or(1.0, |counts| counts.column[row]);
    // A sample without a count is one step. Allocations beside the samples are no steps.
    if count.is_nan() {
        u64::from(!kinds.is_allocation(row))
    } else {
        count.round() as u64
    }
}

/// The memory in use at a sample in MiB; 0 if it is unknown.
fn memory_of(levels: &[&Values], row: usize) -> f64 {
    let bytes: f64 = levels.iter().map(|values| values.column[row]).sum();
    if bytes.is_nan() {
        0.0
    } else {
        bytes / MEBIBYTE
    }
}

/// The lines of code that locations are at, in files whose text is known.
struct Code<'f> {
    /// The index of each file by its name.
    files: HashMap<&'f str, i32>,
    /// For each location its file and line, if both are known.
    places: Vec<Option<(i32, i32)>>,
    /// For each location the index of its code among the labels, or -1.
    labels: Vec<i32>,
}

impl<'f> Code<'f> {
    /// Adds the lines of code to the labels.
    fn new(
        profile: &Profile,
        texts: &[(&'f str, &'f str)],
        labels: &mut Vec<&'f str>,
    ) -> Result<Code<'f>> {
        let mut files = HashMap::new();
        let mut starts = with_room(texts.len())?;
        for (index, (name, text)) in texts.iter().enumerate() {
            files.try_put(*name, index as i32)?;
            starts.try_push(labels.len())?;
            for line in text.lines() {
                labels.try_push(line.trim_start_matches(' '))?;
            }
        }
        starts.try_push(labels.len())?;
        let locations = profile.locations.len();
        let mut own_labels = filled(locations, -1)?;
        let mut places = with_room(locations)?;
        for location in profile.locations.ids() {
            let function = profile.function_of(location);
            let file = function.and_then(|f| files.get(profile.strings.get(f.filename)));
            let line = profile.locations.get(location).line_for_r();
            let place = file.filter(|_| line > 0).map(|file| (*file, line));
            if let Some((file, line)) = place {
                let (start, end) = (starts[file as usize], starts[file as usize + 1]);
                let at = start + line as usize - 1;
                if at < end {
                    own_labels[location.row()] = at as i32;
                }
            }
            places.try_push(place)?;
        }
        Ok(Code {
            files,
            places,
            labels: own_labels,
        })
    }
}
