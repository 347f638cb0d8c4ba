//! Which tick belongs to which sample.
//!
//! In a run R records memory, so that every tick makes a line in R's file, even where
//! R has no call to print. Each sample and its tick are compared; a sample that does not
//! match gets no tick.
//!
//! - R >= 4.3 writes each line at once: the sizes of its file before and after a tick
//!   are where its line starts and ends.
//! - R <= 4.2 collects lines: there must be as many of them as ticks.
//! - R prints an item for each context, so a sample has as many frames as its tick has
//!   contexts. R <= 4.2 cuts long lines, at their outer end.

use super::recording::{Recording, Tick};
use crate::error::Result;
use crate::formats::rprof::parse_memory;
use crate::limits::memory::TryGrow;
use crate::model::{LocationId, Profile};
use memchr::memchr_iter;

/// R <= 4.2 adds no item to a line that has reached this length.
const LONG_LINE: usize = 10_000;
/// What R writes instead of a call while it collects garbage.
const GC: &str = "<GC>";

/// A sample and what was recorded with it.
#[derive(Debug, Clone, Copy)]
pub struct Aligned<'a> {
    pub tick: Tick<'a>,
    /// Whether the innermost frame is R's mark that it was collecting garbage. All
    /// others are the innermost contexts of the tick.
    pub gc: bool,
}

/// For each sample of the profile what was recorded with it, if that is certain; and how
/// many ticks R has written no line for. `file` is what the profile was read from.
pub fn align<'a>(
    file: &[u8],
    profile: &Profile,
    recording: &'a Recording,
) -> Result<(Vec<Option<Aligned<'a>>>, u64)> {
    let lines = sample_lines(file)?;
    let count = profile.samples.len();
    let mut aligned = Vec::new();
    aligned.try_fill(count, None, "samples")?;
    let ticks = recording.ticks().count() as u64 + recording.lost;
    let silent = if recording.lines_written_at_once {
        let unwritten = |tick: &Tick| tick.grown.0 == tick.grown.1;
        recording.ticks().filter(unwritten).count() as u64
    } else {
        ticks.saturating_sub(lines.len() as u64)
    };
    if lines.len() != count {
        return Ok((aligned, silent));
    }
    if recording.lines_written_at_once {
        let mut row = 0;
        for tick in recording.ticks() {
            let (before, after) = tick.grown;
            row += lines[row..].partition_point(|line| line.start < before);
            let next = lines.get(row + 1);
            let whole = lines.get(row).is_some_and(|line| line.start < after)
                && next.is_none_or(|line| line.start >= after);
            if whole {
                aligned[row] = fit(profile, row, 0, tick);
            }
        }
    } else if ticks == count as u64 {
        for (row, tick) in recording.ticks().enumerate() {
            aligned[row] = fit(profile, row, lines[row].length, tick);
        }
    }
    Ok((aligned, silent))
}

/// A sample and a tick that have the same calls. `length` is that of a line that R may
/// have cut.
fn fit<'a>(profile: &Profile, row: usize, length: usize, tick: Tick<'a>) -> Option<Aligned<'a>> {
    if !tick.has_whole_contexts() {
        return None;
    }
    let frames = profile.stacks.get(profile.samples.stack[row]);
    let contexts = tick.contexts().count();
    let gc = contexts < frames.len() && frames.first().is_some_and(|&f| is_gc(profile, f));
    let items = frames.len() - usize::from(gc);
    let cut = items < contexts && length >= LONG_LINE;
    (items == contexts || cut).then_some(Aligned { tick, gc })
}

fn is_gc(profile: &Profile, frame: LocationId) -> bool {
    profile
        .function_of(frame)
        .is_some_and(|function| profile.strings.get(function.name) == GC)
}

struct SampleLine {
    /// Where in the file it starts.
    start: u64,
    length: usize,
}

/// The lines that start a sample: with memory figures, as all samples of such a file.
fn sample_lines(file: &[u8]) -> Result<Vec<SampleLine>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for end in memchr_iter(b'\n', file) {
        let line = &file[start..end];
        if parse_memory(line).is_some() {
            let line = SampleLine {
                start: start as u64,
                length: line.len(),
            };
            lines.try_push(line, "lines")?;
        }
        start = end + 1;
    }
    Ok(lines)
}
