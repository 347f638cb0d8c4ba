//! Writes files in the format of `Rprof()`.
//!
//! A profile that was read from a regular file is written as that file, byte for
//! byte: each source becomes a block, each sample a line, and each `#File` line
//! keeps its position. Other profiles are written as exactly as the format allows,
//! and the [`Losses`] describe what it could not store.

use super::texts::StackTexts;
use crate::analysis::recorded::RowKinds;
use crate::analysis::rows_by_source::RowsBySource;
use crate::analysis::source_facts::periods;
use crate::error::{Error, Result};
use crate::formats::losses::{LossKind, Losses};
use crate::formats::write;
use crate::io::save;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{Growing, TryCollect, TryGrow};
use crate::message;
use crate::model::known_types::{CPU, RPROF_MEMORY};
use crate::model::{
    LocationId, Profile, RprofOptions, SampleColumn, Source, SourceId, Values, is_nearly_whole,
};
use crate::rprof_header::{Header, interval};
use crate::text::push_number;
use std::io::Write;

/// The default of `Rprof()`, for sources without an interval.
const DEFAULT_INTERVAL: u64 = 20_000;
/// Ids of samples are integers of R.
const MOST_LINES: u64 = i32::MAX as u64;

/// Writes Rprof files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer;

impl write::Writer for Writer {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(save::failed);
        let counts = Counts::of(profile)?;
        counts.check_sum(profile.samples.len())?;
        let rows = RowsBySource::new(profile)?;
        let kinds = RowKinds::new(profile)?;
        let used = Used::new(profile)?;
        let mut losses = Losses::default();
        losses.add(LossKind::Line, used.lost_lines);
        let mut lines = 0;
        let mut files = Vec::new();
        let mut figures = Vec::new();
        let mut texts = StackTexts::new(profile)?;
        for id in profile.source_ids() {
            let source = &profile.sources[id.0 as usize];
            let rows = rows.of(id);
            let block = Block::new(profile, id, rows, &used)?;
            match interval(source) {
                None => losses.add(LossKind::AssumedInterval, 1),
                Some(interval) if !is_nearly_whole(interval) => {
                    losses.add(LossKind::RoundedInterval, 1);
                }
                Some(_) => {}
            }
            figures.clear();
            writeln!(Growing(&mut figures), "{}", block.header).map_err(save::failed)?;
            put(&figures)?;
            texts.start_block(source, block.header)?;
            for &row in rows {
                if kinds.is_allocation(row) {
                    losses.add(LossKind::Allocation, 1);
                    continue;
                }
                files.clear();
                texts.recorded_files(row, &mut files)?;
                let stack = profile.samples.stack[row];
                let text = texts.of(stack, &mut files)?;
                let toplevel = texts.toplevel(row, &mut files)?;
                figures.clear();
                block.add_figures(row, &mut figures, &mut losses)?;
                put(&files)?;
                let text = texts.get(text);
                if text.is_empty() && figures.is_empty() {
                    losses.add(LossKind::EmptySample, 1);
                    continue;
                }
                let (count, exact) = counts.lines(row)?;
                losses.add(LossKind::RoundedCount, usize::from(!exact));
                for _ in 0..count {
                    lines += 1;
                    cancel::at_row(lines as usize, stop)?;
                    put(&figures)?;
                    put(text)?;
                    put(&toplevel)?;
                    put(b"\n")?;
                }
            }
            files.clear();
            texts.recorded_files(usize::MAX, &mut files)?;
            put(&files)?;
        }
        losses.add(LossKind::ChangedName, texts.changed_names());
        Ok(losses)
    }
}

/// Which stacks have lines, and how many lines cannot be written.
struct Used {
    lost_lines: usize,
    /// By stack: whether a frame has a file or a line.
    has_lines: Vec<bool>,
}

impl Used {
    fn new(profile: &Profile) -> Result<Used> {
        let mut used = Vec::new();
        used.try_fill(profile.locations.len(), false)?;
        let lines = profile.locations.ids().map(|id| has_line(profile, id));
        let lines = lines.try_vec()?;
        let mut has_lines = Vec::new();
        let mut space = Vec::new();
        for stack in profile.stacks.ids() {
            let stack = profile.stacks.get(stack).unpacked(&mut space)?;
            stack.iter().for_each(|row| used[row.row()] = true);
            let has = stack.iter().any(|row| lines[row.row()]);
            has_lines.try_push(has)?;
        }
        let rows = profile.locations.iter().zip(used);
        let lost = rows.filter(|(location, used)| {
            let line = location.line_for_r();
            let cannot_be = location.line.is_some_and(|exact| exact != i64::from(line));
            *used && (cannot_be || location.function.is_none() && line > 0)
        });
        Ok(Used {
            lost_lines: lost.count(),
            has_lines,
        })
    }
}

/// How the number of lines of a sample is determined.
enum Counts<'a> {
    NoSamples,
    Column(&'a Values),
    /// From its time, the period of each source, and the source of each sample.
    Time(&'a Values, Vec<f64>, &'a SampleColumn<SourceId>),
}

impl Counts<'_> {
    fn of(profile: &Profile) -> Result<Counts<'_>> {
        if let Some(counts) = profile.counts() {
            return Ok(Counts::Column(counts));
        }
        let time = profile.known(&CPU);
        let periods = periods(profile)?;
        match (time, periods) {
            (Some(time), Some(periods)) => Ok(Counts::Time(time, periods, &profile.samples.source)),
            _ if profile.samples.is_empty() => Ok(Counts::NoSamples),
            _ => Err(Error::Lossy(message!(
                "An Rprof file has one line for each sample, but no value of this profile \
                 counts samples (`samples` in `count`, or `cpu` in `nanoseconds` with a period)."
            ))),
        }
    }

    /// Checks that there are not more lines than a profile can have samples, so that the file can be read again.
    fn check_sum(&self, rows: usize) -> Result<()> {
        let lines = (0..rows).filter_map(|row| self.lines(row).ok());
        let lines = lines.fold(0_u64, |sum, (count, _)| sum.saturating_add(count));
        if lines > MOST_LINES {
            Err(Error::Lossy(message!(
                "An Rprof file has one line for each sample, which would be {lines} lines. The limit is {MOST_LINES}."
            )))
        } else {
            Ok(())
        }
    }

    /// The number of lines, and whether it represents the value exactly.
    fn lines(&self, row: usize) -> Result<(u64, bool)> {
        let (count, exact) = match self {
            Counts::NoSamples => (0.0, true),
            Counts::Column(values) => (values.column[row], true),
            Counts::Time(values, periods, sources) => {
                let count = values.column[row] / periods[sources[row].0 as usize];
                (count.round(), is_nearly_whole(count))
            }
        };
        if count >= 0.0 && count.fract() == 0.0 && count < 9e15 {
            Ok((count as u64, exact))
        } else {
            Err(Error::Lossy(message!(
                "Sample {} has the count {count}, but Rprof files contain only whole numbers that are not negative.",
                row + 1
            )))
        }
    }
}

/// Microseconds between two samples, as a header contains them.
fn whole_interval(id: SourceId, source: &Source) -> Result<u64> {
    let Some(interval) = interval(source) else {
        return Ok(DEFAULT_INTERVAL);
    };
    let rounded = interval.round();
    let is_nothing = rounded == 0.0 && interval != 0.0;
    if is_nothing || !(0.0..=u64::MAX as f64).contains(&rounded) {
        return Err(Error::Lossy(message!(
            "Source {} has a period of {interval} microseconds, but Rprof files contain only whole numbers.",
            id.0 + 1
        )));
    }
    Ok(rounded as u64)
}

/// The header of a block, and the columns with the memory figures of its samples.
struct Block<'a> {
    header: Header,
    figures: Vec<&'a Values>,
}

impl<'a> Block<'a> {
    fn new(profile: &'a Profile, id: SourceId, rows: &[usize], used: &Used) -> Result<Block<'a>> {
        let source = &profile.sources[id.0 as usize];
        let RprofOptions { memory, gc, line } = source.options.unwrap_or_default();
        let figures = RPROF_MEMORY.iter();
        let figures = figures.filter_map(|known| profile.known(known));
        let figures = figures.try_vec()?;
        let has_all = figures.len() == RPROF_MEMORY.len();
        let has_figures = |row: usize| figures.iter().all(|v| !v.column[row].is_nan());
        let samples = &profile.samples;
        let has_lines = |row: usize| {
            used.has_lines[samples.stack[row].0 as usize]
                || samples
                    .toplevel
                    .binary_search_by_key(&row, |t| t.sample)
                    .is_ok()
        };
        // Figures and lines that samples have are written, regardless of the recorded options.
        let any = |has: &dyn Fn(usize) -> bool| rows.iter().any(|&row| has(row));
        let header = Header {
            memory: memory && (has_all || rows.is_empty()) || has_all && any(&has_figures),
            gc,
            line: line || !source.files.is_empty() || any(&has_lines),
            interval: Some(whole_interval(id, source)?),
        };
        Ok(Block { header, figures })
    }

    /// Appends `:small:large:nodes:duplications:`, if the sample has all of them.
    fn add_figures(&self, row: usize, out: &mut Vec<u8>, losses: &mut Losses) -> Result<()> {
        let figures = self.figures.iter().filter(|v| !v.column[row].is_nan());
        match figures.count() {
            0 => return Ok(()),
            count if count < RPROF_MEMORY.len() => {
                losses.add(LossKind::PartialFigures, 1);
                return Ok(());
            }
            _ => {}
        }
        let mut exact = true;
        // The first two are recorded in cells of 8 bytes.
        for (values, size) in self.figures.iter().zip([8.0, 8.0, 1.0, 1.0]) {
            let figure = values.column[row] / size;
            if !(0.0..=u64::MAX as f64).contains(&figure) {
                return Err(Error::Lossy(message!(
                    "Sample {} has the value {} of type `{}`, but Rprof files contain only numbers \
                     from 0 to 2^64.",
                    row + 1,
                    values.column[row],
                    values.type_.name
                )));
            }
            // Most are whole: `fract()` and `round()` are calls of functions.
            let mut whole = figure as u64;
            if whole as f64 != figure {
                exact = false;
                whole = figure.round() as u64;
            }
            out.try_push(b':')?;
            push_number(out, whole)?;
        }
        losses.add(LossKind::RoundedFigures, usize::from(!exact));
        out.try_push(b':')
    }
}

/// Whether a location has a file or a line that a line reference can represent.
fn has_line(profile: &Profile, location: LocationId) -> bool {
    let file = profile.function_of(location).map(|f| f.filename);
    profile.locations.get(location).line_for_r() > 0 && file.is_some()
        || file.is_some_and(|f| !profile.strings.get(f).is_empty())
}
