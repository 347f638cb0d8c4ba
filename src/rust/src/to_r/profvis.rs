//! Creates the data frame that profvis draws: a row for each frame of each step, innermost first.
//!
//! For each function, profvis shows the line that called it, so each frame has the file and the line of the next
//! outer one. The line that was running in the innermost function is a separate row, with its code as label.

use super::frames::take;
use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::analysis::frame_names::FrameNames;
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::{self, ROWS, Stop};
use profile_core::limits::memory::{TryCollect, TryGrow, TryPut, filled, with_room};
use profile_core::message;
use profile_core::model::known_types::RPROF_MEMORY;
use profile_core::model::{Profile, Values};
use std::collections::HashMap;

const MEBIBYTE: f64 = (1 << 20) as f64;

/// `files` contains the names and texts of files. Frames in any other file have no file.
pub fn profvis<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    files: &[(&str, &str)],
    stop: Stop,
) -> Result<RObject<'call>> {
    let samples = &profile.samples;
    let names = FrameNames::new(profile)?;
    let all = 0..names.count() as u32;
    let mut labels = all.map(|row| names.get(row)).try_vec()?;
    let lines = Lines::new(profile, files, &mut labels)?;
    let rows = rows(profile, &lines, stop)?;
    // profvis shows the memory of vectors.
    let memory = RPROF_MEMORY[..2].iter();
    let memory = memory.filter_map(|known| profile.known(known));
    let memory = memory.try_vec()?;
    let filenames = files.iter().map(|(name, _)| *name).try_vec()?;
    let mut table = Tibble::new(arena, rows)?;
    let mut times = table.integer_slots("time")?;
    let mut depths = table.integer_slots("depth")?;
    let mut labels = arena.text_slots(&labels, rows)?;
    table.add("label", labels.vector)?;
    let mut filenums = table.integer_slots("filenum")?;
    let mut linenums = table.integer_slots("linenum")?;
    let mut allocated = table.double_slots("memalloc")?;
    let mut increments = table.double_slots("meminc")?;
    let mut paths = arena.text_slots(&filenames, rows)?;
    table.add("filename", paths.vector)?;
    let (mut step, mut before) = (0_i32, None);
    let mut space = Vec::new();
    let (mut own_labels, mut own_files, mut own_lines) = (Vec::new(), Vec::new(), Vec::new());
    let mut toplevel = samples.toplevel.iter().peekable();
    for (row, &stack) in samples.stack.iter().enumerate() {
        let called_from = toplevel.next_if(|toplevel| toplevel.sample == row);
        let stack = profile.stacks.get(stack).unpacked(&mut space)?;
        let in_use = memory_of(&memory, row);
        let steps = steps(profile, row);
        if stack.is_empty() {
            step = i32::try_from(steps).map_or(i32::MAX, |steps| steps.saturating_add(step));
            continue;
        }
        own_labels.clear();
        own_files.clear();
        own_lines.clear();
        let mut places = stack
            .iter()
            .map(|location| lines.of_location[location.row()]);
        let innermost = stack
            .first()
            .map_or(-1, |location| lines.code[location.row()]);
        match innermost {
            -1 => drop(places.next()),
            code => own_labels.try_push(code)?,
        }
        let outermost = called_from.and_then(|from| {
            let file = lines.files.get(profile.strings.get(from.filename))?;
            Some((*file, from.line))
        });
        for place in places.chain([outermost]) {
            let (file, line) = place.unwrap_or((-1, NA));
            own_files.try_push(file)?;
            own_lines.try_push(line)?;
        }
        for location in stack {
            own_labels.try_push(names.row(*location) as i32)?;
        }
        let rows = own_labels.len();
        for _ in 0..steps {
            if step % ROWS as i32 == 0 {
                cancel::check(stop)?;
            }
            step = step.saturating_add(1);
            take(&mut times, rows).fill(step);
            let outermost_is_1 = (1..=rows as i32).rev();
            let slots = take(&mut depths, rows).iter_mut();
            slots
                .zip(outermost_is_1)
                .for_each(|(slot, depth)| *slot = depth);
            labels.fill(&own_labels)?;
            paths.fill(&own_files)?;
            take(&mut linenums, rows).copy_from_slice(&own_lines);
            let slots = take(&mut filenums, rows).iter_mut();
            for (slot, file) in slots.zip(&own_files) {
                *slot = if *file < 0 { NA } else { file + 1 };
            }
            take(&mut allocated, rows).fill(in_use);
            let increments = take(&mut increments, rows);
            increments.fill(0.0);
            if let Some(first) = increments.first_mut() {
                *first = in_use - before.replace(in_use).unwrap_or(in_use);
            }
        }
    }
    table.finish()
}

/// The number of rows of all steps.
fn rows(profile: &Profile, lines: &Lines, stop: Stop) -> Result<usize> {
    if profile.counts().is_none() && profile.in_use("bytes").is_some() {
        return Err(Error::Unsupported(message!(
            "The profile contains memory in use, but profvis can show only samples over time. Use `profile_page()`."
        )));
    }
    let mut rows = 0_u64;
    for (row, &stack) in profile.samples.stack.iter().enumerate() {
        if row % ROWS == 0 {
            cancel::check(stop)?;
        }
        let stack = profile.stacks.get(stack);
        let has_code = stack
            .first()
            .is_some_and(|innermost| lines.code[innermost.row()] >= 0);
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
        rows = rows.saturating_add(frames.saturating_mul(steps(profile, row)));
    }
    match i32::try_from(rows) {
        Ok(rows) => Ok(rows as usize),
        Err(_) => Err(Error::Unsupported(message!(
            "The profile has {rows} frames, more than profvis can show. Use `profile_page()`."
        ))),
    }
}

/// The number of steps that a sample represents.
fn steps(profile: &Profile, row: usize) -> u64 {
    let count = profile.counts().map_or(1.0, |counts| counts.column[row]);
    // A sample without a count is one step.
    if count.is_nan() {
        1
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

/// The lines of locations in files whose text is known.
struct Lines<'f> {
    /// The index of each file by its name.
    files: HashMap<&'f str, i32>,
    /// For each location its file and line, if both are known.
    of_location: Vec<Option<(i32, i32)>>,
    /// For each location the index of its code among the labels, or -1.
    code: Vec<i32>,
}

impl<'f> Lines<'f> {
    /// Adds the lines of code to the labels.
    fn new(
        profile: &Profile,
        texts: &[(&'f str, &'f str)],
        labels: &mut Vec<&'f str>,
    ) -> Result<Lines<'f>> {
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
        let mut code = filled(locations, -1)?;
        let mut of_location = with_room(locations)?;
        for location in profile.locations.ids() {
            let function = profile.function_of(location);
            let file = function.and_then(|f| files.get(profile.strings.get(f.filename)));
            let line = profile.locations.get(location).line_for_r();
            let place = file.filter(|_| line > 0).map(|file| (*file, line));
            if let Some((file, line)) = place {
                let (start, end) = (starts[file as usize], starts[file as usize + 1]);
                let at = start + line as usize - 1;
                if at < end {
                    code[location.row()] = at as i32;
                }
            }
            of_location.try_push(place)?;
        }
        Ok(Lines {
            files,
            of_location,
            code,
        })
    }
}
