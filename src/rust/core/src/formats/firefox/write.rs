//! Writes version 66, with a thread for each source.
//!
//! The samples of a thread have the default type of the source as weight if that is a time or bytes, else its time, else its
//! count. Allocated memory is in `nativeAllocations`, for which the viewer has a call tree of its own. Its times are
//! those of the samples, or follow from their values.

mod tables;

use crate::analysis::measures::Measure;
use crate::analysis::rows_by_source::RowsBySource;
use crate::analysis::source_facts::{default_type, file_name, time};
use crate::error::Result;
use crate::formats::losses::{LossKind, Losses};
use crate::formats::write;
use crate::json::Json;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryCollect, TryGrow, written};
use crate::model::{Period, Profile, SourceId};
use std::io::Write;
use tables::Tables;

const WHAT: &str = "the output";
const VERSION: i64 = 66;
/// The version of Gecko's own form from which version 66 is made.
const GECKO_VERSION: i64 = 24;
/// Milliseconds between samples, if that is unknown.
const INTERVAL: f64 = 1.0;
/// Name and colour of the categories. Each needs a subcategory.
const CATEGORIES: [(&str, &str); 4] = [
    ("Other", "grey"),
    ("R", "blue"),
    ("Native code", "lightblue"),
    ("Garbage collection", "orange"),
];

/// The text of a source file.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

/// Writes processed profiles.
#[derive(Debug, Clone, Default)]
pub struct Writer<'a> {
    pub texts: Vec<Text<'a>>,
}

impl write::Writer for Writer<'_> {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        write_file(self, profile, out, stop)
    }
}

fn write_file(
    options: &Writer,
    profile: &Profile,
    out: &mut dyn Write,
    stop: Stop,
) -> Result<Losses> {
    let measures = Measure::all(profile)?;
    let rows = RowsBySource::new(profile)?;
    let tables = Tables::new(profile, stop)?;
    let mut losses = Losses::default();
    let times = profile.sources.iter().map(time).try_vec(WHAT)?;
    let start = times.iter().flatten().copied().min().unwrap_or(0);
    let mut written = Vec::new();
    for source in profile.source_ids() {
        let thread = Thread {
            profile,
            source,
            rows: rows.of(source),
            weight: weight_of(profile, source, rows.of(source), &measures)?,
            allocated: None,
            start: times[source.row()].map_or(0.0, |time| milliseconds(time - start)),
            origin: start,
        };
        written.try_push(thread.with_allocations(&measures), WHAT)?;
    }
    let mut json = Json::new(out, stop)?;
    json.object(|json| {
        json.field("meta")?
            .object(|json| write_meta(profile, start, &tables, json))?;
        json.field("libs")?
            .array(|json| tables.write_libs(profile, json))?;
        json.field("shared")?
            .object(|json| tables.write(profile, &options.texts, json))?;
        json.field("threads")?.array(|json| {
            for thread in &written {
                json.object(|json| thread.write(&tables, &mut losses, json, stop))?;
            }
            Ok(())
        })?;
        for empty in ["counters", "pages", "profilerOverhead"] {
            json.field(empty)?.array(|_| Ok(()))?;
        }
        Ok(())
    })?;
    json.finish()?;
    Ok(losses)
}

fn milliseconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e6
}

fn write_meta(profile: &Profile, start: i64, tables: &Tables, json: &mut Json) -> Result<()> {
    let mut periods = profile.sources.iter().filter_map(period);
    json.field("interval")?
        .number(periods.next().unwrap_or(INTERVAL))?;
    json.field("startTime")?.number(milliseconds(start))?;
    json.field("processType")?.integer(0)?;
    json.field("product")?
        .text(concat!("R package profile ", env!("CARGO_PKG_VERSION")))?;
    json.field("stackwalk")?.integer(1)?;
    json.field("debug")?.flag(false)?;
    json.field("version")?.integer(GECKO_VERSION)?;
    json.field("preprocessedProfileVersion")?.integer(VERSION)?;
    json.field("categories")?.array(|json| {
        CATEGORIES.iter().try_for_each(|(name, colour)| {
            json.object(|json| {
                json.field("name")?.text(name)?;
                json.field("color")?.text(colour)?;
                json.field("subcategories")?.texts(["Other"].into_iter())
            })
        })
    })?;
    json.field("extensions")?.object(|json| {
        json.field("length")?.integer(0)?;
        for column in ["baseURL", "id", "name"] {
            json.field(column)?.array(|_| Ok(()))?;
        }
        Ok(())
    })?;
    json.field("markerSchema")?.array(|_| Ok(()))?;
    json.field("sampleUnits")?.object(|json| {
        json.field("time")?.text("ms")?;
        json.field("eventDelay")?.text("ms")?;
        json.field("threadCPUDelta")?.text("µs")
    })?;
    json.field("symbolicated")?.flag(true)?;
    // R and native code are told apart where there are both.
    json.field("usesOnlyOneStackType")?
        .flag(!tables.has_native())?;
    json.field("sourceCodeIsNotOnSearchfox")?.flag(true)?;
    json.field("keepProfileThreadOrder")?.flag(true)?;
    json.field("initialVisibleThreads")?
        .integers(0..profile.sources.len() as i64)?;
    json.field("initialSelectedThreads")?
        .integers(0..profile.sources.len().min(1) as i64)
}

/// The sampling period in milliseconds, if it is a time.
fn period(source: &crate::model::Source) -> Option<f64> {
    let period = source.period.as_ref().and_then(Period::nanoseconds)?;
    Some(period / 1e6).filter(|&period| period > 0.0 && period.is_finite())
}

/// The type that is the weight of samples.
fn weight_of<'m, 'a>(
    profile: &'a Profile,
    source: SourceId,
    rows: &[usize],
    measures: &'m [Measure<'a>],
) -> Result<&'m Measure<'a>> {
    let mut types = Vec::new();
    let mut present = Vec::new();
    for measure in measures {
        if rows.iter().any(|&row| !measure.value(row, source).is_nan()) {
            present.try_push(measure, WHAT)?;
            if let Some(type_) = measure.as_type() {
                types.try_push(type_, WHAT)?;
            }
        }
    }
    let default = default_type(&profile.sources[source.row()], &types);
    let mut by_default = present.iter().filter(|m| default == Some(m.key()));
    let default = by_default.find(|m| m.weight_type() != COUNT);
    let time = present.iter().find(|m| m.weight_type() == TIME);
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

#[derive(Clone, Copy)]
struct Thread<'m, 'a> {
    profile: &'m Profile,
    source: SourceId,
    rows: &'m [usize],
    weight: &'m Measure<'a>,
    allocated: Option<&'m Measure<'a>>,
    /// Milliseconds after the start of the profile.
    start: f64,
    /// The start of the profile, in nanoseconds since 1970.
    origin: i64,
}

impl<'m, 'a> Thread<'m, 'a> {
    fn with_allocations(self, measures: &'m [Measure<'a>]) -> Thread<'m, 'a> {
        let is_allocated = |m: &&Measure| m.name() == "alloc_space" && m.unit() == "bytes";
        let others = measures.iter().filter(is_allocated);
        let mut others = others.filter(|m| !std::ptr::eq(*m, self.weight));
        let allocated = others.next();
        Thread { allocated, ..self }
    }

    fn write(
        &self,
        tables: &Tables,
        losses: &mut Losses,
        json: &mut Json,
        stop: Stop,
    ) -> Result<()> {
        let number = self.source.row() + 1;
        let source = self.profile.sources.get(self.source.row());
        let uri = source.and_then(|source| source.uri.as_deref());
        let name = match file_name(uri.unwrap_or_default()) {
            "" => written(format_args!("run {number}"), WHAT)?,
            name => written(format_args!("{name}"), WHAT)?,
        };
        let id = written(format_args!("{number}"), WHAT)?;
        json.field("processType")?.text("default")?;
        json.field("processStartupTime")?.number(self.start)?;
        json.field("processShutdownTime")?.null()?;
        json.field("registerTime")?.number(self.start)?;
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
        losses.add(LossKind::NotFinite, left_out);
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
        match is_counted {
            true => json.field("weight")?.null(),
            false => json.field("weight")?.array(|json| {
                self.for_each(self.weight, stop, |_, weight, _| json.number(weight))
                    .map(drop)
            }),
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
        let stacks = &self.profile.samples.stack;
        self.for_each(measure, stop, |row, _, _| match tables.stack(stacks[row]) {
            Some(stack) => json.integer(i64::from(stack)),
            None => json.null(),
        })
        .map(drop)
    }

    /// Calls `each` with the row of each sample that has a value other than 0 of this type, this value, and the time
    /// of the sample. Returns how many values are infinite.
    fn for_each(
        &self,
        measure: &Measure,
        stop: Stop,
        mut each: impl FnMut(usize, f64, f64) -> Result<()>,
    ) -> Result<usize> {
        let source = &self.profile.sources[self.source.row()];
        let interval = period(source).unwrap_or(INTERVAL);
        let counts = self.profile.counts();
        let times = &self.profile.samples.times;
        let mut known = self
            .rows
            .first()
            .map_or(0, |&first| times.partition_point(|&(row, _)| row < first));
        let mut left_out = 0;
        let mut time = self.start;
        for (count, &row) in self.rows.iter().enumerate() {
            if count % ROWS == 0 {
                cancel::check(stop)?;
            }
            while times.get(known).is_some_and(|&(other, _)| other < row) {
                known += 1;
            }
            if let Some((_, at)) = times.get(known).filter(|&&(other, _)| other == row) {
                time = milliseconds(at.saturating_sub(self.origin));
            }
            let value = measure.weight(row, self.source);
            if value.is_infinite() {
                left_out += 1;
            } else if value != 0.0 && !value.is_nan() {
                each(row, value, time)?;
            }
            // The next one follows after the time of this one, or after as many intervals as it counts.
            let weight = self.weight.weight(row, self.source);
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
