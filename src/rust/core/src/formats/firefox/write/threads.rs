//! A thread: the samples of a source, their times, and its allocations.
//!
//! The samples have the default type of the source as weight if that is a time or bytes, else its time, else its count.
//! Allocated memory is in `nativeAllocations`, for which the viewer has a separate call tree. Times are the times of
//! the samples or, without these, are computed from their values.

use super::tables::Tables;
use super::times::{INTERVAL, elapsed, period};
use crate::analysis::measures::Measure;
use crate::analysis::source_facts::{default_type, file_name};
use crate::error::Result;
use crate::formats::losses::{LossKind, Losses};
use crate::json::Json;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, written};
use crate::model::known_types::{ALLOC_SPACE, MEMORY, SAMPLES};
use crate::model::{Profile, SourceId};

/// The type that is the weight of samples.
fn weight_of<'m, 'a>(run: &Run, measures: &'m [Measure<'a>]) -> Result<&'m Measure<'a>> {
    let mut types = Vec::new();
    let mut present = Vec::new();
    for measure in measures {
        let is_known = |&row: &usize| !measure.value(row, run.source).is_nan();
        if run.rows.iter().any(is_known) {
            present.try_push(measure)?;
            if let Some(type_) = measure.as_type() {
                types.try_push(type_)?;
            }
        }
    }
    let default = default_type(&run.profile.sources[run.source.row()], &types);
    let mut by_default = present.iter().filter(|m| default == Some(m.key()));
    let default = by_default.find(|m| m.weight_type() != COUNT);
    let time = present
        .iter()
        .find(|m| m.nanoseconds_of_samples().is_some());
    let count = present.iter().find(|m| m.unit() == "count");
    let found = default.or(time).or(count).or(present.first());
    Ok(found.copied().unwrap_or(&Measure::NONE))
}

const TIME: &str = "tracing-ms";
const BYTES: &str = "bytes";
const COUNT: &str = "samples";

impl Measure<'_> {
    fn weight_type(&self) -> &'static str {
        match (self.nanoseconds(), self.unit()) {
            (Some(_), _) => TIME,
            (None, "bytes") => BYTES,
            _ => COUNT,
        }
    }

    /// The value of a sample in the unit of the format.
    fn weight(&self, row: usize, source: SourceId) -> f64 {
        let value = self.value(row, source);
        match self.nanoseconds() {
            Some(nanoseconds) => value * nanoseconds / 1e6,
            None => value,
        }
    }
}

/// The samples of a source.
#[derive(Clone, Copy)]
pub struct Run<'m> {
    pub profile: &'m Profile,
    pub source: SourceId,
    pub rows: &'m [usize],
    /// Milliseconds after the start of the profile; `None` if they cannot be written.
    pub start: Option<f64>,
    /// The start of the profile, in nanoseconds since 1970.
    pub origin: i64,
}

/// The numbers of infinite values, and of times that are too far from the start of the profile.
struct LeftOut {
    values: usize,
    times: usize,
}

pub struct Thread<'m, 'a> {
    run: Run<'m>,
    weight: &'m Measure<'a>,
    allocated: Option<&'m Measure<'a>>,
}

impl<'m, 'a> Thread<'m, 'a> {
    pub fn new(run: Run<'m>, measures: &'m [Measure<'a>]) -> Result<Thread<'m, 'a>> {
        let weight = weight_of(&run, measures)?;
        let is_allocated = |m: &&Measure| (m.name(), m.unit()) == ALLOC_SPACE.key();
        let mut others = measures.iter().filter(|m| !std::ptr::eq(*m, weight));
        Ok(Thread {
            run,
            weight,
            allocated: others.find(is_allocated),
        })
    }

    pub fn has_samples(&self) -> bool {
        !self.run.rows.is_empty()
    }

    /// The name in the profile and the unit of each type that is written.
    pub fn types(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let measures = [Some(self.weight), self.allocated].into_iter().flatten();
        measures.map(|measure| (measure.key(), measure.unit()))
    }

    /// The number of samples that are neither weighted nor an allocation.
    fn without_value(&self) -> usize {
        let has = |measure: &Measure, row| !measure.value(row, self.run.source).is_nan();
        let is_lost = |&&row: &&usize| {
            !has(self.weight, row) && !self.allocated.is_some_and(|allocated| has(allocated, row))
        };
        self.run.rows.iter().filter(is_lost).count()
    }

    /// Whether its weights will be read as another type than they are: the format knows only counts of samples and memory
    /// of an unknown kind. The names of times do not count.
    pub fn is_read_as_other_type(&self) -> bool {
        let weight = (self.weight.name(), self.weight.unit());
        match self.weight.weight_type() {
            COUNT => weight != SAMPLES.key(),
            BYTES => weight != MEMORY,
            _ => false,
        }
    }

    /// Whether its weights have the type of the weights of another thread.
    pub fn has_weight_of(&self, other: &Thread) -> bool {
        let (one, two) = (self.weight, other.weight);
        (one.name(), one.unit()) == (two.name(), two.unit())
    }

    /// Whether its weights are written like the weights of another thread, but have another type.
    pub fn is_other_type(&self, other: &Thread) -> bool {
        let (one, two) = (self.weight, other.weight);
        // Times are converted to milliseconds.
        one.weight_type() == two.weight_type()
            && (one.name() != two.name() || one.weight_type() != TIME && one.unit() != two.unit())
    }

    pub fn write(
        &self,
        tables: &Tables,
        losses: &mut Losses,
        json: &mut Json,
        stop: Stop,
    ) -> Result<()> {
        let number = self.run.source.row() + 1;
        let source = self.run.profile.sources.get(self.run.source.row());
        let uri = source.and_then(|source| source.uri.as_deref());
        let name = match file_name(uri.unwrap_or_default()) {
            "" => written(format_args!("run {number}"))?,
            name => written(format_args!("{name}"))?,
        };
        let id = written(format_args!("{number}"))?;
        json.field("processType")?.text("default")?;
        let start = self.run.start.unwrap_or(0.0);
        json.field("processStartupTime")?.number(start)?;
        json.field("processShutdownTime")?.null()?;
        json.field("registerTime")?.number(start)?;
        json.field("unregisterTime")?.null()?;
        json.field("pausedRanges")?.array(|_| Ok(()))?;
        json.field("name")?.text(&name)?;
        json.field("isMainThread")?.flag(true)?;
        json.field("processName")?.text(&name)?;
        json.field("pid")?.text(&id)?;
        json.field("tid")?.text(&id)?;
        json.field("samples")?
            .object(|json| self.write_samples(tables, losses, json, stop))?;
        json.field("markers")?.object(|json| {
            json.field("length")?.integer(0)?;
            for column in ["category", "data", "endTime", "name", "phase", "startTime"] {
                json.field(column)?.array(|_| Ok(()))?;
            }
            Ok(())
        })?;
        match self.allocated {
            Some(allocated) => json
                .field("nativeAllocations")?
                .object(|json| self.write_allocations(allocated, tables, json, stop)),
            None => Ok(()),
        }
    }

    fn write_samples(
        &self,
        tables: &Tables,
        losses: &mut Losses,
        json: &mut Json,
        stop: Stop,
    ) -> Result<()> {
        let (mut length, mut all_one) = (0, true);
        let left_out = self.for_each(self.weight, stop, |_, weight, _| {
            length += 1;
            all_one &= weight == 1.0;
            Ok(())
        })?;
        losses.add(LossKind::NotFinite, left_out.values);
        losses.add(LossKind::FarTime, left_out.times);
        losses.add(LossKind::SampleWithoutValue, self.without_value());
        json.field("length")?.integer(length)?;
        let type_ = self.weight.weight_type();
        json.field("weightType")?.text(type_)?;
        let is_counted = type_ == COUNT && all_one;
        json.field("stack")?
            .array(|json| self.write_stacks(self.weight, tables, json, stop))?;
        json.field("timeDeltas")?.array(|json| {
            let mut last = 0.0;
            self.for_each(self.weight, stop, |_, _, time| {
                json.number(rounded(time - std::mem::replace(&mut last, time)))
            })
            .map(drop)
        })?;
        if is_counted {
            json.field("weight")?.null()
        } else {
            json.field("weight")?.array(|json| {
                self.for_each(self.weight, stop, |_, weight, _| json.number(weight))
                    .map(drop)
            })
        }
    }

    fn write_allocations(
        &self,
        allocated: &Measure,
        tables: &Tables,
        json: &mut Json,
        stop: Stop,
    ) -> Result<()> {
        let mut length = 0;
        self.for_each(allocated, stop, |_, _, _| {
            length += 1;
            Ok(())
        })?;
        json.field("length")?.integer(length)?;
        json.field("weightType")?.text(BYTES)?;
        json.field("stack")?
            .array(|json| self.write_stacks(allocated, tables, json, stop))?;
        json.field("time")?.array(|json| {
            self.for_each(allocated, stop, |_, _, time| json.number(rounded(time)))
                .map(drop)
        })?;
        json.field("weight")?.array(|json| {
            self.for_each(allocated, stop, |_, weight, _| json.number(weight))
                .map(drop)
        })
    }

    fn write_stacks(
        &self,
        measure: &Measure,
        tables: &Tables,
        json: &mut Json,
        stop: Stop,
    ) -> Result<()> {
        let stacks = &self.run.profile.samples.stack;
        self.for_each(measure, stop, |row, _, _| match tables.stack(stacks[row]) {
            Some(stack) => json.integer(i64::from(stack)),
            None => json.null(),
        })
        .map(drop)
    }

    /// Calls `each` for each sample whose value of this type is not 0, with the row of the sample, the value, and the
    /// time. Returns what cannot be written.
    fn for_each(
        &self,
        measure: &Measure,
        stop: Stop,
        mut each: impl FnMut(usize, f64, f64) -> Result<()>,
    ) -> Result<LeftOut> {
        let source = &self.run.profile.sources[self.run.source.row()];
        let interval = period(source).unwrap_or(INTERVAL);
        let counts = self.run.profile.counts();
        let times = &self.run.profile.samples.times;
        let mut known = self
            .run
            .rows
            .first()
            .map_or(0, |&first| times.partition_point(|&(row, _)| row < first));
        let mut left_out = LeftOut {
            values: 0,
            times: usize::from(self.run.start.is_none()),
        };
        let mut time = self.run.start.unwrap_or(0.0);
        for (count, &row) in self.run.rows.iter().enumerate() {
            cancel::at_row(count, stop)?;
            while times.get(known).is_some_and(|&(other, _)| other < row) {
                known += 1;
            }
            let at = times.get(known).filter(|&&(other, _)| other == row);
            if let Some(&(_, at)) = at {
                match elapsed(self.run.origin, at) {
                    Some(at) => time = at,
                    None => left_out.times += 1,
                }
            }
            let value = measure.weight(row, self.run.source);
            if value.is_infinite() {
                left_out.values += 1;
            } else if value != 0.0 && !value.is_nan() {
                each(row, value, time)?;
            }
            // The next one follows after the time of this one, or after as many intervals as it counts.
            let weight = self.weight.weight(row, self.run.source);
            let passed = match (self.weight.weight_type(), counts) {
                (TIME, _) => weight,
                (_, Some(counts)) => counts.column[row] * interval,
                _ => interval,
            };
            time += if passed > 0.0 && passed.is_finite() {
                passed
            } else {
                0.0
            };
        }
        Ok(left_out)
    }
}

/// Milliseconds rounded to nanoseconds, so that differences have few digits.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 1e6).round() / 1e6
}
