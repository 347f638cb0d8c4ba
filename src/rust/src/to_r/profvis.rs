//! Creates the data frame that profvis draws, see `core/src/analysis/steps.rs`.

use super::frames::take;
use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::analysis::frame_names::FrameNames;
use profile_core::analysis::steps::Steps;
use profile_core::error::Result;
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::TryCollect;
use profile_core::model::Profile;

/// `files` contains the names and texts of files.
pub fn profvis<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    files: &[(&str, &str)],
    stop: Stop,
) -> Result<RObject<'call>> {
    let names = FrameNames::new(profile)?;
    let steps = Steps::new(profile, &names, files, stop)?;
    let filenames = files.iter().map(|(name, _)| *name).try_vec()?;
    let mut table = Tibble::new(arena, steps.rows)?;
    let mut times = table.integer_slots("time")?;
    let mut depths = table.integer_slots("depth")?;
    let mut labels = arena.text_slots(&steps.labels, steps.rows)?;
    table.add("label", labels.vector)?;
    let mut filenums = table.integer_slots("filenum")?;
    let mut linenums = table.integer_slots("linenum")?;
    let mut allocated = table.double_slots("memalloc")?;
    let mut increments = table.double_slots("meminc")?;
    let mut paths = arena.text_slots(&filenames, steps.rows)?;
    table.add("filename", paths.vector)?;
    steps.each(stop, |step| {
        let rows = step.labels.len();
        take(&mut times, rows).fill(step.number);
        let outermost_is_1 = (1..=rows as i32).rev();
        for (slot, depth) in take(&mut depths, rows).iter_mut().zip(outermost_is_1) {
            *slot = depth;
        }
        labels.fill(step.labels)?;
        paths.fill(step.files)?;
        take(&mut linenums, rows).copy_from_slice(step.lines);
        for (slot, &file) in take(&mut filenums, rows).iter_mut().zip(step.files) {
            *slot = if file < 0 { NA } else { file + 1 };
        }
        take(&mut allocated, rows).fill(step.memory);
        let increments = take(&mut increments, rows);
        increments.fill(0.0);
        if let Some(first) = increments.first_mut() {
            *first = step.increment;
        }
        Ok(())
    })?;
    table.finish()
}
