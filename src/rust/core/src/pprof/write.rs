//! Writes a profile as pprof.
//!
//! Each distinct stack and set of labels is encoded once; a sample is then a
//! copy of those bytes and its values. The message leaves in pieces, so only
//! what repeats is held in memory.

use super::about;
use super::columns::{Column, columns};
use super::labels::Labels;
use super::numbers::{Numbers, Pieces, Texts};
use super::output::Output;
use super::proto::{profile as field, sample};
use super::sources;
use super::symbols;
use super::wire::{self, LONGEST_FIELD};
use crate::cancel::{self, Stop};
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::model::{Interner, Profile, StackId, next_row};
use crate::save;
use flate2::{Compression, GzBuilder};
use std::io::Write;
use std::path::Path;

/// Samples between two questions whether to stop.
const ROWS: usize = 10_000;
/// Of gzip. Level 6 takes a tenth longer for files that are a fiftieth smaller;
/// level 1 takes two thirds of the time for files larger by a third.
const LEVEL: u32 = 5;

#[derive(Debug, Clone, Copy)]
pub struct WriteOptions {
    /// Whether samples of equal stacks and labels are summed. Without it they
    /// stand in the order in which they were recorded, and all of the profile's
    /// sample types are written, those as well that have no meaningful sum.
    pub aggregate: bool,
    /// Whether labels tell the source of each sample, so that reading restores
    /// the sources. Without it they tell the number of its run only.
    pub sources: bool,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            aggregate: true,
            sources: false,
        }
    }
}

/// What the file says less well than the profile.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Sources without a sample that could tell of them; where labels do not
    /// tell sources, none is missed.
    pub untold_sources: usize,
}

/// Writes a gzip'd pprof file. It replaces an older one only when complete.
pub fn write_path(
    profile: &Profile,
    options: &WriteOptions,
    path: &Path,
    stop: Stop,
) -> Result<Report> {
    let mut report = Report::default();
    save::replace(path, |out| {
        // Without a time stamp equal profiles give equal files.
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .write(out, Compression::new(LEVEL));
        report = write(profile, options, &mut gzip, stop)?;
        gzip.finish().map(|_| ()).map_err(save::failed)
    })?;
    Ok(report)
}

/// Writes a pprof message, not compressed.
///
/// For what R's profiler recorded: sample types are `samples/count`,
/// `cpu/nanoseconds` (shown first) and `alloc_space/bytes`; R's names stand in
/// `name` and leave `system_name` empty, since pprof would take a name that is
/// both for a C++ symbol and mangle `<Anonymous>` or `%<>%`; a mapping says that
/// no symbols need to be looked up. Other profiles keep their sample types.
pub fn write(
    profile: &Profile,
    options: &WriteOptions,
    out: &mut dyn Write,
    stop: Stop,
) -> Result<Report> {
    let columns = columns(profile, options.aggregate);
    if columns.is_empty() && !profile.samples.is_empty() {
        return Err(Error::Lossy(
            "The samples have no values; pprof holds only samples that have.".to_owned(),
        ));
    }
    let mut writer = Writer {
        profile,
        columns,
        texts: Texts::new(profile.strings.len())?,
        stacks: Numbers::new(profile.stacks.len())?,
        locations: Numbers::new(profile.locations.len())?,
        lists: Pieces::default(),
        scratch: Vec::new(),
        output: Output::new(out),
    };
    writer.types()?;
    if options.aggregate {
        writer.sums(options, stop)?;
    } else {
        writer.rows(options, stop)?;
    }
    let Writer {
        columns,
        mut texts,
        locations,
        mut output,
        ..
    } = writer;
    cancel::check(stop)?;
    symbols::write(profile, &locations.rows, &mut texts, &mut output)?;
    let about = about::encode(profile, &columns, &mut texts)?;
    cancel::check(stop)?;
    for text in &texts.texts {
        output.field(field::STRING_TABLE, &[text.as_bytes()])?;
    }
    output.bytes(&about)?;
    output.flush()?;
    let untold_sources = match options.sources {
        true => sources::without_samples(profile)?,
        false => 0,
    };
    Ok(Report { untold_sources })
}

struct Writer<'a, 'o> {
    profile: &'a Profile,
    columns: Vec<Column<'a>>,
    texts: Texts<'a>,
    stacks: Numbers,
    locations: Numbers,
    /// The encoded list of locations of each stack that has a number.
    lists: Pieces,
    scratch: Vec<u8>,
    output: Output<'o>,
}

impl<'a> Writer<'a, '_> {
    fn types(&mut self) -> Result<()> {
        for column in &self.columns {
            let type_ = about::value_type(&mut self.texts, column.name, column.unit)?;
            self.output.field(field::SAMPLE_TYPE, &[&type_])?;
        }
        Ok(())
    }

    /// The samples as they were recorded.
    fn rows(&mut self, options: &WriteOptions, stop: Stop) -> Result<()> {
        let samples = &self.profile.samples;
        let mut labels = Labels::new(self.profile, options)?;
        let mut values = Vec::with_capacity(self.columns.len());
        for (row, (&stack, &source)) in samples.stack.iter().zip(&samples.source).enumerate() {
            if row % ROWS == 0 {
                cancel::check(stop)?;
            }
            let set = labels.of(row, source, stack, &mut self.texts)?;
            values.clear();
            for column in &self.columns {
                values.push(column.value(row, source)?);
            }
            self.sample(stack, labels.sets.get(set), &values)?;
        }
        Ok(())
    }

    /// Samples of equal stacks and labels in one, in the order of the first.
    fn sums(&mut self, options: &WriteOptions, stop: Stop) -> Result<()> {
        let samples = &self.profile.samples;
        let width = self.columns.len();
        let mut labels = Labels::new(self.profile, options)?;
        let mut keys: Vec<(StackId, u32)> = Vec::new();
        let mut sums: Vec<i64> = Vec::new();
        let mut index = Interner::default();
        for (row, (&stack, &source)) in samples.stack.iter().zip(&samples.source).enumerate() {
            if row % ROWS == 0 {
                cancel::check(stop)?;
            }
            let key = (stack, labels.of(row, source, stack, &mut self.texts)?);
            let hash = index.hash(key);
            let sum = match index.find(hash, |row| keys[row as usize] == key) {
                Some(sum) => sum as usize,
                None => {
                    let sum = next_row(keys.len(), "samples")?;
                    keys.try_push(key, "samples")?;
                    sums.try_fill(keys.len() * width, 0, "sample values")?;
                    index.insert(hash, sum)?;
                    sum as usize
                }
            };
            for (i, column) in self.columns.iter().enumerate() {
                let value = column.value(row, source)?;
                let sum = &mut sums[sum * width + i];
                *sum = sum.checked_add(value).ok_or_else(|| {
                    Error::Lossy(format!(
                        "The sum of type `{}` passes 2^63 at sample {}; pprof holds no larger numbers.",
                        column.name,
                        row + 1
                    ))
                })?;
            }
        }
        for (row, &(stack, set)) in keys.iter().enumerate() {
            if row % ROWS == 0 {
                cancel::check(stop)?;
            }
            let values = &sums[row * width..(row + 1) * width];
            self.sample(stack, labels.sets.get(set), values)?;
        }
        Ok(())
    }

    fn sample(&mut self, stack: StackId, labels: &[u8], values: &[i64]) -> Result<()> {
        let list = self.list(stack)?;
        self.scratch.clear();
        wire::put_repeated(
            &mut self.scratch,
            sample::VALUE,
            values.iter().map(|&value| value as u64),
        );
        let parts = [self.lists.get(list), &self.scratch, labels];
        self.output.field(field::SAMPLE, &parts)
    }

    /// The encoded locations of a stack: its number in `lists`.
    fn list(&mut self, stack: StackId) -> Result<u32> {
        let (number, new) = self.stacks.of(stack.0)?;
        if !new {
            return Ok(number - 1);
        }
        let frames = self.profile.stacks.get(stack);
        let mut ids = Vec::new();
        ids.try_fill(frames.len(), 0, "a stack")?;
        for (id, frame) in ids.iter_mut().zip(frames) {
            *id = u64::from(self.locations.of(frame.0)?.0);
        }
        let mut list = Vec::new();
        list.try_reserve(LONGEST_FIELD * (ids.len() + 1))
            .map_err(|_| Error::Memory("a stack"))?;
        wire::put_repeated(&mut list, sample::LOCATION_ID, ids.into_iter());
        self.lists.push(&list)
    }
}
