//! The samples in the order in which they were recorded.
//!
//! A page with many samples does not have the order of all of them: if it would take more than [`MOST_BITS`], the samples
//! of each source are divided into slices, and those of a slice are sorted by node. Sorted samples take a fraction, and
//! their sums remain exact, so the page selects whole slices. There are 20,000 slices of equal time, or of equally many
//! samples if their times are unknown; fewer if these would take too much.

use super::memory::Levels;
use super::samples::Samples;
use super::slices::{Slices, bits_of_runs, bits_of_value};
use crate::analysis::recorded::RowKinds;
use crate::error::Result;
use crate::formats;
use crate::json::Json;
use crate::limits::cancel;
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::model::heap::SNAPSHOT;
use crate::model::{Period, Source, SourceId, Values};

/// About how many bits all orders may take: 3 MB, or 4 MB as base64.
const MOST_BITS: f64 = 24e6;
/// The number of slices to begin with, of the longest source.
const SLICES: u64 = 20_000;
/// About how many bits the time of a sample takes.
const BITS_OF_TIME: f64 = 40.0;

/// The size of slices.
#[derive(Debug, Clone, Copy)]
struct Size {
    samples: u64,
    nanoseconds: u64,
}

/// The samples of a source in their order.
struct Ordered {
    source: SourceId,
    rows: Vec<u32>,
    /// In ascending order; empty if the time of a sample is unknown.
    times: Vec<i64>,
}

/// Writes the samples of each source whose samples have an order.
pub fn write(samples: &Samples, json: &mut Json) -> Result<()> {
    let mut all = Vec::new();
    for id in samples.profile.source_ids() {
        if let Some(ordered) = Ordered::new(samples, id)? {
            all.try_push(ordered)?;
        }
    }
    let mut bits = 0.0;
    for ordered in &all {
        bits += ordered.exact_bits(samples)?;
        if bits > MOST_BITS {
            return write_slices(samples, &all, json);
        }
    }
    for ordered in &all {
        json.object(|json| ordered.write_exactly(samples, json))?;
    }
    Ok(())
}

fn write_slices(samples: &Samples, all: &[Ordered], json: &mut Json) -> Result<()> {
    let longest = |length: &dyn Fn(&Ordered) -> u64| all.iter().map(length).max().unwrap_or(0);
    let mut size = Size {
        samples: longest(&|one| one.rows.len() as u64)
            .div_ceil(SLICES)
            .max(1),
        nanoseconds: longest(&Ordered::span).div_ceil(SLICES).max(1),
    };
    let mut slices = with_room(all.len())?;
    for ordered in all {
        slices.try_push(ordered.slices(samples, size)?)?;
    }
    let value_bits = all
        .iter()
        .map(|ordered| ordered.bits_of_values(samples))
        .try_vec()?;
    let bits = |slices: &[Slices]| {
        let mut bits = 0.0;
        for (slices, value_bits) in slices.iter().zip(&value_bits) {
            bits += slices.bits(samples.labels.len()) + value_bits * slices.runs() as f64;
            bits += BITS_OF_TIME * slices.len() as f64;
        }
        bits
    };
    while bits(&slices) > MOST_BITS && slices.iter().any(|slices| slices.len() > 1) {
        for slices in &mut slices {
            cancel::check(samples.stop)?;
            *slices = slices.halved()?;
        }
        size.samples *= 2;
        size.nanoseconds = size.nanoseconds.saturating_mul(2);
    }
    for (ordered, slices) in all.iter().zip(&slices) {
        json.object(|json| ordered.write_slices(slices, size, samples, json))?;
    }
    Ok(())
}

impl Ordered {
    /// Returns `None` for a source without samples, or whose samples have no order.
    fn new(samples: &Samples, id: SourceId) -> Result<Option<Ordered>> {
        let recorded = samples_of(samples, id)?;
        let recorded = recorded.as_slice();
        let source = &samples.profile.sources[id.row()];
        let mut ordered = Ordered {
            source: id,
            rows: Vec::new(),
            times: Vec::new(),
        };
        match by_time(samples, recorded)? {
            Some(timed) => {
                ordered.rows = timed.iter().map(|&(_, row)| row).try_vec()?;
                ordered.times = timed.iter().map(|&(time, _)| time).try_vec()?;
            }
            None if is_aggregated(samples, source, recorded) => return Ok(None),
            None => ordered.rows.try_extend(recorded)?,
        }
        Ok(Some(ordered).filter(|ordered| !ordered.rows.is_empty()))
    }

    /// Nanoseconds from the first to the last sample.
    fn span(&self) -> u64 {
        match (self.times.first(), self.times.last()) {
            (Some(first), Some(last)) => last.abs_diff(*first),
            _ => 0,
        }
    }

    /// The nodes and sets of the samples, and how many that follow each other have them.
    fn runs(&self, samples: &Samples) -> Result<Vec<((u32, u32), u32)>> {
        let mut runs: Vec<((u32, u32), u32)> = Vec::new();
        for (at, &row) in self.rows.iter().enumerate() {
            cancel::at_row(at, samples.stop)?;
            let key = (samples.node(row), samples.labels.set(row));
            match runs.last_mut() {
                Some((last, run)) if *last == key => *run += 1,
                _ => runs.try_push((key, 1))?,
            }
        }
        Ok(runs)
    }

    fn exact_bits(&self, samples: &Samples) -> Result<f64> {
        let runs = self.runs(samples)?;
        let mut bits = bits_of_runs(&runs, samples.labels.len());
        bits += self.bits_of_values(samples) * self.rows.len() as f64;
        if !self.times.is_empty() {
            let source = &samples.profile.sources[self.source.row()];
            bits += BITS_OF_TIME * irregular(source, &self.times)?.sample.len() as f64;
        }
        Ok(bits)
    }

    /// About how many bits a value of each type takes, of types that have several.
    fn bits_of_values(&self, samples: &Samples) -> f64 {
        let mean = |values: &&Values| {
            let all = || self.rows.iter().map(|&row| known(values, row));
            let first = all().next().unwrap_or(0.0);
            if all().all(|value| value == first) {
                0.0
            } else {
                all().map(bits_of_value).sum::<f64>() / self.rows.len() as f64
            }
        };
        samples.types.iter().map(mean).sum()
    }

    fn slices(&self, samples: &Samples, size: Size) -> Result<Slices> {
        let keys = self
            .rows
            .iter()
            .map(|&row| (samples.node(row), samples.labels.set(row)));
        let number = |at: usize| match self.times.get(at) {
            // Slices of different sources begin at the same times.
            Some(time) => time.abs_diff(i64::MIN) / size.nanoseconds,
            None => at as u64 / size.samples,
        };
        Slices::new(keys, number, samples.stop)
    }

    fn write_exactly(&self, samples: &Samples, json: &mut Json) -> Result<()> {
        self.write_runs(&self.runs(samples)?, samples, json)?;
        json.field("values")?.array(|json| {
            let mut types = samples.types.iter().enumerate();
            types.try_for_each(|(type_, values)| write_values(type_, values, &self.rows, json))
        })?;
        if self.times.is_empty() {
            return Ok(());
        }
        let source = &samples.profile.sources[self.source.row()];
        self.write_times(irregular(source, &self.times)?, json)
    }

    fn write_slices(
        &self,
        slices: &Slices,
        size: Size,
        samples: &Samples,
        json: &mut Json,
    ) -> Result<()> {
        self.write_runs(slices.all_runs(), samples, json)?;
        let firsts = slices.firsts()?;
        json.field("slices")?.object(|json| {
            if self.times.is_empty() {
                json.field("samples")?.integer(size.samples as i64)?;
            } else {
                json.field("nanoseconds")?.number(size.nanoseconds as f64)?;
            }
            json.field("first")?.deltas(firsts.iter().copied())
        })?;
        json.field("values")?.array(|json| {
            let mut types = samples.types.iter().enumerate();
            types.try_for_each(|(type_, values)| {
                self.write_sums(type_, values, slices, samples, json)
            })
        })?;
        if self.times.is_empty() {
            return Ok(());
        }
        let source = &samples.profile.sources[self.source.row()];
        self.write_times(irregular_slices(source, &self.times, &firsts)?, json)
    }

    fn write_runs(
        &self,
        runs: &[((u32, u32), u32)],
        samples: &Samples,
        json: &mut Json,
    ) -> Result<()> {
        json.field("source")?.integer(self.source.row() as i64)?;
        json.field("node")?
            .deltas(runs.iter().map(|((node, _), _)| *node))?;
        json.field("run")?
            .integers(runs.iter().map(|(_, run)| i64::from(*run)))?;
        if let Some(levels) = Levels::of(samples.profile) {
            levels.write(&self.rows, json)?;
        }
        if samples.labels.is_empty() {
            return Ok(());
        }
        let sets = runs.iter().map(|((_, set), _)| i64::from(*set));
        json.field("set")?.integers(sets)
    }

    /// Writes the sums of a type in each run of slices, as the value of its first sample.
    fn write_sums(
        &self,
        type_: usize,
        values: &Values,
        slices: &Slices,
        samples: &Samples,
        json: &mut Json,
    ) -> Result<()> {
        let first = known(values, self.rows[0]);
        if self.rows.iter().all(|&row| known(values, row) == first) {
            return write_values(type_, values, &self.rows, json);
        }
        let mut sums = filled(slices.runs(), 0.0)?;
        let mut runs = slices.finder();
        for (at, &row) in self.rows.iter().enumerate() {
            cancel::at_row(at, samples.stop)?;
            let key = (samples.node(row), samples.labels.set(row));
            if let Some(run) = runs.run_of(at, key) {
                sums[run] += known(values, row);
            }
        }
        let mut reached = 0;
        let firsts = slices.all_runs().iter().map(|(_, run)| {
            reached += run;
            reached - run
        });
        let firsts = firsts.try_vec()?;
        let sums = || firsts.iter().zip(&sums).filter(|(_, sum)| **sum != 0.0);
        json.object(|json| {
            json.field("type")?.integer(type_ as i64)?;
            json.field("constant")?.number(0.0)?;
            json.field("sample")?
                .deltas(sums().map(|(first, _)| *first))?;
            json.field("value")?.numbers(sums().map(|(_, sum)| *sum))
        })
    }

    fn write_times(&self, times: Times, json: &mut Json) -> Result<()> {
        json.field("times")?.object(|json| {
            json.field("start")?.number(self.times[0] as f64 / 1e9)?;
            json.field("step")?.number(times.step)?;
            json.field("sample")?.deltas(times.sample.iter().copied())?;
            json.field("at")?.numbers(times.at.iter().copied())?;
            if times.each.iter().all(|&each| each == times.step) {
                return Ok(());
            }
            json.field("each")?.numbers(times.each.iter().copied())
        })
    }
}

/// The value of a sample; samples without one count as 0.
fn known(values: &Values, row: u32) -> f64 {
    Some(values.column[row as usize])
        .filter(|value| !value.is_nan())
        .unwrap_or(0.0)
}

/// The rows of a source that are samples: allocations that were recorded beside them have no place in their order. If it has
/// allocations only, these.
fn samples_of(samples: &Samples, id: SourceId) -> Result<Vec<u32>> {
    let kinds = RowKinds::new(samples.profile)?;
    let rows = samples.rows(id).iter().copied();
    let sampled = rows.filter(|&row| !kinds.is_allocation(row as usize));
    let sampled = sampled.try_vec()?;
    if sampled.is_empty() {
        return samples.rows(id).iter().copied().try_vec();
    }
    Ok(sampled)
}

/// The times of samples, in ascending order, and their rows, if all samples have a time.
fn by_time(samples: &Samples, rows: &[u32]) -> Result<Option<Vec<(i64, u32)>>> {
    let times = &samples.profile.samples.times;
    let mut timed = with_room(rows.len())?;
    for &row in rows {
        let Ok(at) = times.binary_search_by_key(&(row as usize), |(row, _)| *row) else {
            return Ok(None);
        };
        timed.try_push((times[at].1, row))?;
    }
    timed.sort_unstable();
    Ok(Some(timed))
}

/// Whether samples may be sums of equal ones, so that their order is meaningless. This is assumed for formats whose
/// files are aggregated, for snapshots, and if a sample has a count that is not 1.
fn is_aggregated(samples: &Samples, source: &Source, rows: &[u32]) -> bool {
    let is_once = |counts: &Values| rows.iter().all(|&row| counts.column[row as usize] == 1.0);
    let format = formats::named(source.kind.as_str());
    format.is_some_and(|format| format.is_aggregated)
        || source.kind == SNAPSHOT
        || !samples.profile.counts().is_none_or(is_once)
}

/// The samples whose time is not the previous one plus steps, their nanoseconds since the start, and the step from there.
struct Times {
    step: f64,
    sample: Vec<u32>,
    at: Vec<f64>,
    each: Vec<f64>,
}

impl Times {
    fn new(source: &Source, times: &[i64]) -> Times {
        let period = source.period.as_ref().and_then(Period::nanoseconds);
        let last = since(times, times.len() - 1);
        let mean = last / (times.len() - 1).max(1) as f64;
        Times {
            step: period.filter(|&step| step > 0.0).unwrap_or(mean.max(1.0)),
            sample: Vec::new(),
            at: Vec::new(),
            each: Vec::new(),
        }
    }

    /// When a sample is expected.
    fn expected(&self, sample: u32) -> f64 {
        match (self.sample.last(), self.at.last(), self.each.last()) {
            (Some(&from), Some(&begin), Some(&each)) => begin + f64::from(sample - from) * each,
            _ => f64::NEG_INFINITY,
        }
    }

    fn is_expected(&self, sample: u32, time: f64) -> bool {
        (time - self.expected(sample)).abs() <= self.step / 2.0
    }

    fn add(&mut self, sample: u32, at: f64, each: f64) -> Result<()> {
        self.sample.try_push(sample)?;
        self.at.try_push(at)?;
        self.each.try_push(each)
    }
}

/// Nanoseconds from the first sample to another; the difference may exceed the range of the type.
fn since(times: &[i64], sample: usize) -> f64 {
    (i128::from(times[sample]) - i128::from(times[0])) as f64
}

/// The times of samples that differ from the expected ones by more than half a step: regular samples need one.
fn irregular(source: &Source, times: &[i64]) -> Result<Times> {
    let mut irregular = Times::new(source, times);
    let step = irregular.step;
    for sample in 0..times.len() {
        let time = since(times, sample);
        if !irregular.is_expected(sample as u32, time) {
            irregular.add(sample as u32, time, step)?;
        }
    }
    Ok(irregular)
}

/// The same for the first samples of slices. If the samples of a slice do not fit before the next one, their steps are
/// shorter; if they end earlier, there is a gap.
fn irregular_slices(source: &Source, times: &[i64], firsts: &[u32]) -> Result<Times> {
    let mut irregular = Times::new(source, times);
    let step = irregular.step;
    let next = firsts[1..].iter().map(|&next| Some(next)).chain([None]);
    for (&first, next) in firsts.iter().zip(next) {
        let time = since(times, first as usize);
        let each = match next {
            Some(next) => {
                let (room, count) = (since(times, next as usize) - time, f64::from(next - first));
                let fits = count * step <= room + step / 2.0;
                if fits { step } else { room / count }
            }
            None => step,
        };
        let follows = irregular.each.last() == Some(&each) && irregular.is_expected(first, time);
        if !follows {
            irregular.add(first, time, each)?;
        }
    }
    Ok(irregular)
}

/// Writes the values of a type, except those that equal a constant: the first value or 0, whichever is
/// more frequent. Samples without a value count as 0. Writes nothing if all are 0.
fn write_values(type_: usize, values: &Values, rows: &[u32], json: &mut Json) -> Result<()> {
    let all = rows.iter().map(|&row| known(values, row));
    let first = all.clone().next().unwrap_or(0.0);
    let count = |wanted: f64| all.clone().filter(|&value| value == wanted).count();
    let constant = if count(first) >= count(0.0) {
        first
    } else {
        0.0
    };
    let others = (0..).zip(all).filter(|&(_, value)| value != constant);
    if constant == 0.0 && others.clone().next().is_none() {
        return Ok(());
    }
    json.object(|json| {
        json.field("type")?.integer(type_ as i64)?;
        json.field("constant")?.number(constant)?;
        if others.clone().next().is_none() {
            return Ok(());
        }
        json.field("sample")?
            .deltas(others.clone().map(|(row, _)| row))?;
        json.field("value")?.numbers(others.map(|(_, value)| value))
    })
}
