//! Writes what `Rprof()` would have written.
//!
//! A profile that came from a regular file gives that file again, byte for
//! byte: each source becomes a block, each sample a line, each `#File` line
//! stands where it stood. Others are written as near as the format allows, and
//! the [`Report`] says what it could not hold.

use super::grammar::Header;
use crate::cancel::{self, Stop};
use crate::error::{Error, Result};
use crate::memory::{Growing, TryCollect, TryGrow, TryPut, copied, sort_by_key};
use crate::message;
use crate::model::{
    LEVELS, LocationId, Profile, RprofOptions, Source, SourceFile, SourceId, StackId, StringId,
    UNKNOWN, Values,
};
use crate::save;
use crate::summary;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// `Rprof()`'s own default, for a source that does not know its interval.
const DEFAULT_INTERVAL: u64 = 20_000;
/// Lines between two looks at the user's wish to stop.
const LINES_PER_CHECK: u64 = 10_000;

/// What the file says less well than the profile.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Sources whose interval is not known: the default was written.
    pub assumed_intervals: usize,
    /// Samples without a stack, for which Rprof writes no line.
    pub empty_samples: usize,
    /// Locations with a line but without a function, which is what has a file.
    pub lines_without_function: usize,
}

pub fn write_path(profile: &Profile, path: &Path, stop: Stop) -> Result<Report> {
    let mut report = Report::default();
    save::replace(path, |out| {
        report = write(profile, out, stop)?;
        Ok(())
    })?;
    Ok(report)
}

pub fn write(profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Report> {
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(save::failed);
    let counts = Counts::of(profile)?;
    let rows = rows_by_source(profile)?;
    let mut report = Report {
        lines_without_function: lines_without_function(profile)?,
        ..Report::default()
    };
    let mut lines = 0;
    let mut files = Vec::new();
    let mut figures = Vec::new();
    let mut texts = StackTexts::new(profile)?;
    let mut next = 0;
    for id in profile.source_ids() {
        let source = &profile.sources[id.0 as usize];
        let end = next + rows[next..].partition_point(|&row| profile.samples.source[row] <= id);
        let block = Block::new(profile, source, &rows[next..end])?;
        report.assumed_intervals += usize::from(block.interval.is_none());
        figures.clear();
        writeln!(Growing(&mut figures), "{}", block.header()).map_err(save::failed)?;
        put(&figures)?;
        texts.start_block(source, block.options.line)?;
        for &row in &rows[next..end] {
            files.clear();
            texts.recorded_files(row, &mut files)?;
            let stack = profile.samples.stack[row];
            let text = texts.of(stack, &mut files)?;
            let toplevel = texts.toplevel(row, &mut files)?;
            figures.clear();
            block.figures(row, &mut figures)?;
            put(&files)?;
            let text = texts.get(text);
            if text.is_empty() && figures.is_empty() {
                report.empty_samples += 1;
                continue;
            }
            for _ in 0..counts.of_row(row)? {
                lines += 1;
                if lines % LINES_PER_CHECK == 0 {
                    cancel::check(stop)?;
                }
                put(&figures)?;
                put(text)?;
                put(&toplevel)?;
                put(b"\n")?;
            }
        }
        files.clear();
        texts.recorded_files(usize::MAX, &mut files)?;
        put(&files)?;
        next = end;
    }
    Ok(report)
}

fn lines_without_function(profile: &Profile) -> Result<usize> {
    let mut used = Vec::new();
    used.try_fill(profile.locations.len(), false, "locations")?;
    for stack in profile.stacks.ids() {
        let stack = profile.stacks.get(stack);
        stack.iter().for_each(|row| used[row.row()] = true);
    }
    let rows = profile.locations.iter().zip(used);
    let lost = rows.filter(|(l, used)| *used && l.function.is_none() && l.line_for_r() > 0);
    Ok(lost.count())
}

/// The rows of the samples, source by source, in order within each.
fn rows_by_source(profile: &Profile) -> Result<Vec<usize>> {
    let source = &profile.samples.source;
    let mut rows = Vec::new();
    rows.try_extend_from(0..source.len(), "the order of the samples")?;
    if !source.is_sorted() {
        sort_by_key(&mut rows, |&row| source[row], "the order of the samples")?;
    }
    Ok(rows)
}

/// How many lines a sample makes.
enum Counts<'a> {
    NoSamples,
    Column(&'a Values),
    /// Time, and how much of it is one sample.
    Time(&'a Values, Vec<f64>, &'a [SourceId]),
}

impl Counts<'_> {
    fn of(profile: &Profile) -> Result<Counts<'_>> {
        if let Some(counts) = profile.counts() {
            return Ok(Counts::Column(counts));
        }
        let time = profile.value("cpu", "nanoseconds");
        let periods = summary::periods(profile)?;
        match (time, periods) {
            (Some(time), Some(periods)) => Ok(Counts::Time(time, periods, &profile.samples.source)),
            _ if profile.samples.is_empty() => Ok(Counts::NoSamples),
            _ => Err(Error::Lossy(message!(
                "An Rprof file has one line for each sample, and no value type here counts \
                 samples (`samples` in `count`, or `cpu` in `nanoseconds` with a period)."
            ))),
        }
    }

    fn of_row(&self, row: usize) -> Result<u64> {
        let count = match self {
            Counts::NoSamples => 0.0,
            Counts::Column(values) => values.column[row],
            Counts::Time(values, periods, sources) => {
                (values.column[row] / periods[sources[row].0 as usize]).round()
            }
        };
        if count >= 0.0 && count.fract() == 0.0 && count < 9e15 {
            Ok(count as u64)
        } else {
            Err(Error::Lossy(message!(
                "Sample {} counts {count} times: an Rprof file holds whole numbers only.",
                row + 1
            )))
        }
    }
}

/// The header of a source's block as `Rprof()` wrote it; `None` when the source
/// is no Rprof source or does not know its interval.
pub fn header(source: &Source) -> Option<Header> {
    let options = source.options?;
    Some(Header {
        memory: options.memory,
        gc: options.gc,
        line: options.line,
        interval: Some(interval(source)?),
    })
}

/// Microseconds between two samples.
fn interval(source: &Source) -> Option<u64> {
    let nanoseconds = source.period.as_ref()?.nanoseconds()?;
    Some((nanoseconds / 1e3).round() as u64)
}

/// What the header of a block says, and the figures before its samples.
struct Block<'a> {
    options: RprofOptions,
    interval: Option<u64>,
    levels: Vec<&'a Values>,
}

impl<'a> Block<'a> {
    fn new(profile: &'a Profile, source: &Source, rows: &[usize]) -> Result<Block<'a>> {
        let mut options = source.options.unwrap_or_else(|| RprofOptions {
            line: rows
                .iter()
                .any(|&row| has_places(profile, profile.samples.stack[row])),
            ..RprofOptions::default()
        });
        let levels = LEVELS.iter();
        let levels = levels
            .filter_map(|(name, unit)| profile.value(name, unit))
            .try_vec("sample values")?;
        options.memory &= levels.len() == LEVELS.len() || rows.is_empty();
        Ok(Block {
            options,
            interval: interval(source),
            levels,
        })
    }

    fn header(&self) -> Header {
        Header {
            memory: self.options.memory,
            gc: self.options.gc,
            line: self.options.line,
            interval: Some(self.interval.unwrap_or(DEFAULT_INTERVAL)),
        }
    }

    /// `:small:large:nodes:duplications:`, where the sample has all of them.
    fn figures(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if !self.options.memory || self.levels.iter().any(|v| v.column[row].is_nan()) {
            return Ok(());
        }
        // The first two are recorded in cells of 8 bytes.
        for (values, size) in self.levels.iter().zip([8.0, 8.0, 1.0, 1.0]) {
            out.try_push(b':', "a line")?;
            push_number(out, (values.column[row] / size) as u64)?;
        }
        out.try_push(b':', "a line")
    }
}

fn has_places(profile: &Profile, stack: StackId) -> bool {
    profile.stacks.get(stack).iter().any(|&location| {
        let line = profile.locations.get(location).line_for_r();
        let file = profile.function_of(location).map(|f| f.filename);
        line > 0 || file.is_some_and(|f| !profile.strings.get(f).is_empty())
    })
}

/// Decimal digits; the formatting machinery would cost more than all the rest.
fn push_number(out: &mut Vec<u8>, mut value: u64) -> Result<()> {
    let start = out.len();
    loop {
        out.try_push(b'0' + (value % 10) as u8, "a line")?;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out[start..].reverse();
    Ok(())
}

/// The text of each distinct stack, made once as long as file numbers keep their
/// meaning: within a block, in a regular file.
struct StackTexts<'a> {
    profile: &'a Profile,
    line: bool,
    text: Vec<u8>,
    /// For each stack where its text stands, and the epoch it was made in.
    known: Vec<(usize, usize, u32)>,
    /// How often the file numbers have changed their meaning.
    epoch: u32,
    numbers: HashMap<StringId, u32>,
    filenames: HashMap<u32, StringId>,
    highest: u32,
    /// `#File` lines of the source that are still to be written.
    recorded: std::vec::IntoIter<SourceFile>,
}

impl<'a> StackTexts<'a> {
    fn new(profile: &'a Profile) -> Result<StackTexts<'a>> {
        let mut known = Vec::new();
        known.try_fill(profile.stacks.len(), (0, 0, 0), "stacks")?;
        Ok(StackTexts {
            profile,
            line: false,
            text: Vec::new(),
            known,
            epoch: 0,
            numbers: HashMap::new(),
            filenames: HashMap::new(),
            highest: 0,
            recorded: Vec::new().into_iter(),
        })
    }

    fn start_block(&mut self, source: &Source, line: bool) -> Result<()> {
        self.line = line;
        self.epoch += 1;
        self.text.clear();
        self.numbers.clear();
        self.filenames.clear();
        self.highest = 0;
        let files = match line {
            true => copied(&source.files, "files")?,
            false => Vec::new(),
        };
        for file in &files {
            self.highest = self.highest.max(file.number);
        }
        self.recorded = files.into_iter();
        Ok(())
    }

    /// The `#File` lines that stood before this sample in the source.
    fn recorded_files(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        while let Some(file) = self.recorded.as_slice().first().copied() {
            if file.before > row {
                break;
            }
            self.recorded.next();
            self.define(file.filename, file.number, out)?;
        }
        Ok(())
    }

    fn define(&mut self, filename: StringId, number: u32, out: &mut Vec<u8>) -> Result<()> {
        // A number that stands for another file from here on: what was written
        // with it means something else now.
        if let Some(old) = self.filenames.try_put(number, filename, "files")? {
            if old != filename && self.numbers.get(&old) == Some(&number) {
                self.numbers.remove(&old);
                self.epoch += 1;
            }
        }
        self.numbers.try_put(filename, number, "files")?;
        out.try_extend(b"#File ", "a line")?;
        push_number(out, u64::from(number))?;
        out.try_extend(b": ", "a line")?;
        out.try_extend(self.profile.strings.get(filename).as_bytes(), "a line")?;
        out.try_push(b'\n', "a line")
    }

    /// The stack's text as a range for [`StackTexts::get`]; `#File` lines that
    /// it needs first go to `files`.
    fn of(&mut self, stack: StackId, files: &mut Vec<u8>) -> Result<(usize, usize)> {
        let (start, end, epoch) = self.known[stack.0 as usize];
        if epoch == self.epoch {
            return Ok((start, end));
        }
        let mut text = std::mem::take(&mut self.text);
        let start = text.len();
        for &location in self.profile.stacks.get(stack) {
            self.item(location, &mut text, files)?;
        }
        self.known[stack.0 as usize] = (start, text.len(), self.epoch);
        self.text = text;
        Ok((start, self.text.len()))
    }

    /// The place that the outermost frame of a sample was called from.
    fn toplevel(&mut self, row: usize, files: &mut Vec<u8>) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let all = &self.profile.samples.toplevel;
        if let (Ok(found), true) = (all.binary_search_by_key(&row, |t| t.sample), self.line) {
            self.place(all[found].filename, all[found].line, &mut text, files)?;
        }
        Ok(text)
    }

    fn get(&self, (start, end): (usize, usize)) -> &[u8] {
        &self.text[start..end]
    }

    fn item(
        &mut self,
        location: LocationId,
        text: &mut Vec<u8>,
        files: &mut Vec<u8>,
    ) -> Result<()> {
        let line = self.profile.locations.get(location).line_for_r();
        let function = self.profile.function_of(location);
        let strings = &self.profile.strings;
        if let (Some(function), true) = (function, self.line) {
            if line > 0 || !strings.get(function.filename).is_empty() {
                self.place(function.filename, line, text, files)?;
            }
        }
        let name = function.map_or(UNKNOWN, |f| strings.get(f.name));
        text.try_push(b'"', "a line")?;
        text.try_extend(name.as_bytes(), "a line")?;
        text.try_extend(b"\" ", "a line")
    }

    fn place(
        &mut self,
        filename: StringId,
        line: i32,
        text: &mut Vec<u8>,
        files: &mut Vec<u8>,
    ) -> Result<()> {
        let number = match self.numbers.get(&filename) {
            Some(number) => *number,
            None => {
                // Its line may stand further on; a number that is taken until
                // then is no use.
                let ahead = self.recorded.as_slice();
                let free = |f: &&SourceFile| {
                    !self.filenames.contains_key(&f.number)
                        && ahead.iter().filter(|g| g.number == f.number).count() == 1
                };
                let recorded = ahead.iter().find(|f| f.filename == filename);
                let number = match recorded.filter(free) {
                    Some(file) => file.number,
                    None => {
                        self.highest = self.highest.saturating_add(1);
                        self.highest
                    }
                };
                self.define(filename, number, files)?;
                number
            }
        };
        push_number(text, u64::from(number))?;
        text.try_push(b'#', "a line")?;
        push_number(text, line.max(0) as u64)?;
        text.try_push(b' ', "a line")
    }
}
