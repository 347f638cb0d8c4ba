//! Assigns ticks to samples.
//!
//! During recording, R profiles memory, so that it writes a line to its file at every tick, even if
//! there is no call to print. Each sample is compared with its tick; a sample that does not match
//! gets no tick.
//!
//! - R >= 4.3 writes each line immediately: the sizes of its file before and after a tick are the
//!   offsets at which the line starts and ends.
//! - R <= 4.2 buffers lines: their number must equal the number of ticks.
//! - R prints an item for each context, so a sample has as many frames as its tick has contexts. R
//!   <= 4.2 truncates long lines, so that outer frames are missing.

use super::recording::{Recording, Tick};
use crate::error::Result;
use crate::formats::rprof::parse_memory;
use crate::limits::memory::TryGrow;
use crate::model::{COLLECTION, LocationId, Profile};
use memchr::memchr_iter;

/// R <= 4.2 adds no item to a line that has reached this length.
const LONG_LINE: usize = 10_000;

/// The tick of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Aligned<'a> {
    pub tick: Tick<'a>,
    /// Whether the innermost frame is [`COLLECTION`]. All other frames are the innermost contexts of the
    /// tick.
    pub gc: bool,
}

/// The tick of each sample of the profile, if it is certain, and the number of ticks for which R did
/// not write a line. `file` is the content of the file that the profile was read from.
pub fn align<'a>(
    file: &[u8],
    profile: &Profile,
    recording: &'a Recording,
) -> Result<(Vec<Option<Aligned<'a>>>, u64)> {
    let lines = sample_lines(file)?;
    let count = profile.samples.len();
    let mut aligned = Vec::new();
    aligned.try_fill(count, None)?;
    let ticks = recording.ticks().count() as u64 + recording.lost;
    let silent = if recording.lines_written_at_once {
        let unwritten = |tick: &Tick| tick.file_size.0 == tick.file_size.1;
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
            let (before, after) = tick.file_size;
            row += lines[row..].partition_point(|line| line.start < before);
            let next = lines.get(row + 1);
            let whole = lines.get(row).is_some_and(|line| line.start < after)
                && next.is_none_or(|line| line.start >= after);
            if whole {
                aligned[row] = matching(profile, row, 0, tick);
            }
        }
    } else if ticks == count as u64 {
        for (row, tick) in recording.ticks().enumerate() {
            aligned[row] = matching(profile, row, lines[row].length, tick);
        }
    }
    Ok((aligned, silent))
}

/// Returns the tick if it has the same calls as the sample. `length` is the length of the line if R
/// may have truncated it, else 0.
fn matching<'a>(
    profile: &Profile,
    row: usize,
    length: usize,
    tick: Tick<'a>,
) -> Option<Aligned<'a>> {
    if !tick.has_whole_contexts() {
        return None;
    }
    let frames = profile.stacks.get(profile.samples.stack[row]);
    let contexts = tick.contexts().count();
    let gc = contexts < frames.len() && frames.first().is_some_and(|f| is_gc(profile, f));
    let items = frames.len() - usize::from(gc);
    let cut = items < contexts && length >= LONG_LINE;
    (items == contexts || cut).then_some(Aligned { tick, gc })
}

fn is_gc(profile: &Profile, frame: LocationId) -> bool {
    profile
        .function_of(frame)
        .is_some_and(|function| profile.strings.get(function.name) == COLLECTION)
}

struct SampleLine {
    /// The offset of its start in the file.
    start: u64,
    length: usize,
}

/// The lines that start a sample: those with memory figures, which all samples of such a file have.
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
            lines.try_push(line)?;
        }
        start = end + 1;
    }
    Ok(lines)
}
