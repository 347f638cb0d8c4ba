//! One profile: its nodes and samples, and their conversion to the model.
//!
//! A sample lasts until the next one. The line that was running is recorded for each node, not for each sample:
//! `positionTicks` counts the samples of each line. Lines are assigned to the samples of a node in the order of that
//! list, so that the sums of lines are correct.

use super::nodes::{Nodes, Place, Ticks};
use crate::collections::Lists;
use crate::error::Result;
use crate::formats::json_file::{JsonKind, Reader};
use crate::formats::problems::ProblemKind;
use crate::json::Number;
use crate::limits::memory::{TryGrow, filled, owned, sort_by_key};
use crate::model::known_types::SAMPLES;
use crate::model::{
    Profile, SampleType, Source, SourceId, SourceKind, StringId, Strings, Values, nearest, seconds,
};

/// A time of at least this value (in the year 2001) is a time since 1970; smaller values are times since the start of
/// the computer.
const SINCE_1970: f64 = 1e15;

#[derive(Default)]
pub struct Run {
    pub nodes: Nodes,
    /// Ids of nodes, or their rows once these are known.
    samples: Vec<u32>,
    /// Whether samples have another form than ids of nodes, as in traces of Hermes.
    pub has_other_samples: bool,
    /// Microseconds since the previous sample.
    deltas: Vec<f64>,
    /// When each sample was taken, in old files.
    times: Vec<f64>,
    /// The line and column of each sample, in traces.
    lines: Vec<i64>,
    columns: Vec<i64>,
    /// Its own start and end, and those that events of a trace contain. They may be times of different clocks.
    span: Span,
    pub traced: Span,
    /// Whether start and end are in seconds.
    is_old: bool,
    pub comment: Option<StringId>,
}

/// When a profile began and ended, by the same clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    pub start: Option<f64>,
    pub end: Option<f64>,
}

impl Span {
    /// Adds the span of the next part.
    fn append(&mut self, part: Span) {
        self.start = self.start.or(part.start);
        self.end = part.end.or(self.end);
    }

    fn is_complete(&self) -> bool {
        self.start.is_some() && self.end.is_some()
    }
}

impl Run {
    /// Reads the fields of a profile; the object has begun.
    pub fn read_fields(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        while let Some(key) = json.key()? {
            self.field(key.as_str(), json, strings)?;
        }
        Ok(())
    }

    pub fn field(&mut self, key: &str, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        match key {
            "nodes" => {
                json.begin_array()?;
                while json.element()? {
                    self.nodes.read(json, strings)?;
                }
            }
            "head" => {
                self.is_old = true;
                self.nodes.read(json, strings)?;
            }
            "samples" => {
                json.begin_array()?;
                while json.element()? {
                    let start = json.position();
                    if json.peek()? == JsonKind::Object {
                        self.has_other_samples = true;
                        json.skip()?;
                        continue;
                    }
                    let Some(id) = json.number()?.index() else {
                        let message = crate::message!("This is not the id of a node.");
                        return Err(json.error_at(start, message));
                    };
                    self.samples.try_push(id)?;
                }
            }
            "timeDeltas" => {
                // Some events contain them twice.
                self.deltas.clear();
                numbers(json, |number| self.deltas.try_push(number.real()))?;
            }
            "timestamps" => numbers(json, |number| self.times.try_push(number.real()))?,
            "lines" => numbers(json, |number| {
                self.lines.try_push(number.whole().unwrap_or(0))
            })?,
            "columns" => numbers(json, |number| {
                self.columns.try_push(number.whole().unwrap_or(0))
            })?,
            "startTime" => self.span.start = json.number_if_any()?.map(Number::real),
            "endTime" => self.span.end = json.number_if_any()?.map(Number::real),
            _ => json.skip()?,
        }
        Ok(())
    }

    /// Adds the next part of the same profile.
    pub fn append(&mut self, part: &Run) -> Result<()> {
        let before = self.samples.len();
        self.nodes.append(&part.nodes)?;
        self.samples.try_extend(&part.samples)?;
        self.deltas.try_extend(&part.deltas)?;
        // V8 leaves lines out of a part in which none is known.
        for (all, new) in [
            (&mut self.lines, &part.lines),
            (&mut self.columns, &part.columns),
        ] {
            if !new.is_empty() {
                all.try_fill(before, 0)?;
                all.try_extend(new)?;
            }
        }
        self.span.append(part.span);
        self.traced.append(part.traced);
        Ok(())
    }

    /// When it began and ended. A start is only paired with an end of the same place in the file.
    fn span(&self) -> Span {
        let (own, traced) = (self.span, self.traced);
        if own.is_complete() || !traced.is_complete() && own.start.is_some() {
            own
        } else {
            traced
        }
    }

    /// Adds the samples to a profile, as samples of a new source.
    pub fn add_to(
        mut self,
        profile: &mut Profile,
        columns: &mut Columns,
        uri: Option<&str>,
        json: &mut Reader,
    ) -> Result<()> {
        self.nodes.link(json)?;
        for id in &mut self.samples {
            *id = self.nodes.find(*id, json)?;
        }
        let source = self.source(json.source_kind(), uri)?;
        let source = profile.add_source(source)?;
        if self.samples.is_empty() {
            self.add_counts(source, profile, columns, json)
        } else {
            self.add_samples(source, profile, columns, json)
        }
    }

    fn source(&self, kind: SourceKind, uri: Option<&str>) -> Result<Source> {
        let unit = if self.is_old { 1e9 } else { 1e3 };
        let span = self.span();
        let is_recorded = |start: &f64| !self.is_old && *start >= SINCE_1970;
        let start = span.start.filter(is_recorded);
        let start = start.and_then(|start| nearest(start * unit));
        let duration = span.end.zip(span.start).map(|(end, start)| end - start);
        let mut comments = Vec::new();
        if let Some(comment) = self.comment {
            comments.try_push(comment)?;
        }
        Ok(Source {
            kind,
            uri: uri.map(owned).transpose()?,
            timestamp: start.map(seconds),
            time: start.filter(|&start| crate::model::nanoseconds(seconds(start)) != Some(start)),
            duration: duration.and_then(|d| nearest(d * unit)).filter(|&d| d > 0),
            comments,
            ..Source::default()
        })
    }

    /// The time of each sample, as far as it is known, and when the last one ended.
    fn times(&mut self, json: &mut Reader) -> Result<(Vec<f64>, Option<f64>)> {
        let span = self.span();
        let mut times = std::mem::take(&mut self.times);
        // Without a start, the first sample begins at an unknown time before the end.
        let is_known = !self.is_old && (span.start.is_some() || !times.is_empty());
        // Samples may be missing at the end of a profile of which a part is lost.
        let is_complete = !self.nodes.has_missing();
        let mut end = span.end.filter(|_| is_known && is_complete);
        if times.is_empty() {
            let mut time = span.start.unwrap_or(0.0);
            for delta in &self.deltas {
                time += delta;
                times.try_push(time)?;
            }
        }
        // Old versions of V8 write the end as an additional time.
        if times.len() == self.samples.len() + 1 {
            end = end.or(times.pop());
            times.truncate(self.samples.len());
        }
        if !times.is_empty() && times.len() != self.samples.len() {
            json.note(ProblemKind::UnequalLengths, b"");
            self.samples.truncate(times.len());
            times.truncate(self.samples.len());
        }
        Ok((times, end))
    }

    fn add_samples(
        &mut self,
        source: SourceId,
        profile: &mut Profile,
        columns: &mut Columns,
        json: &mut Reader,
    ) -> Result<()> {
        let (times, end) = self.times(json)?;
        let mut order = Vec::new();
        order.try_extend_from(0..self.samples.len())?;
        if !times.is_sorted() {
            json.note(ProblemKind::TimeBackwards, b"");
            sort_by_key(&mut order, |&row| SortedTime(times[row]))?;
        }
        let duration = |at: usize| {
            let time = *times.get(*order.get(at)?)?;
            let next = order.get(at + 1).map(|&row| times[row]);
            Some((next.or(end)? - time).max(0.0))
        };
        let mut lines = Lines::new(&self.nodes)?;
        let has_start = profile.sources[source.row()].timestamp.is_some();
        for (at, &row) in order.iter().enumerate() {
            json.check(at)?;
            let node = self.samples[row];
            let lasted = duration(at);
            let is_last = at + 1 == order.len();
            // The mark at the end, without which the sample before it would have no duration.
            if is_last && lasted == Some(0.0) && self.nodes.is_root(node, &profile.strings) {
                break;
            }
            let line = match self.lines.get(row) {
                Some(&line) => line.max(0),
                None => lines.next(node),
            };
            let column = self.columns.get(row).map_or(0, |&column| column.max(0));
            let place = Place { line, column };
            let stack = self.nodes.stack(node, place, profile, json)?;
            json.take_samples(1, profile.stacks.get(stack).len())?;
            profile.samples.source.try_push(source)?;
            profile.samples.stack.try_push(stack)?;
            let sample = profile.samples.len() - 1;
            if let Some(time) = times.get(row).filter(|_| has_start) {
                if let Some(time) = nearest(time * 1e3) {
                    profile.samples.times.try_push((sample, time))?;
                }
            }
            columns.counts.column.try_push(1.0)?;
            let lasted = lasted.unwrap_or(f64::NAN);
            columns.time.column.try_push(lasted)?;
        }
        Ok(())
    }

    /// Samples of files that only count them.
    fn add_counts(
        &mut self,
        source: SourceId,
        profile: &mut Profile,
        columns: &mut Columns,
        json: &mut Reader,
    ) -> Result<()> {
        let lines = Lines::new(&self.nodes)?;
        for node in self.nodes.rows() {
            json.check(node as usize)?;
            let mut rest = self.nodes.hits(node);
            let mut counts = Vec::new();
            for ticks in lines.of(node) {
                rest = rest.saturating_sub(ticks.ticks.max(0));
                counts.try_push((ticks.line.max(0), ticks.ticks))?;
            }
            counts.try_push((0, rest))?;
            for (line, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                let place = Place { line, column: 0 };
                let stack = self.nodes.stack(node, place, profile, json)?;
                json.take_samples(1, profile.stacks.get(stack).len())?;
                profile.samples.source.try_push(source)?;
                profile.samples.stack.try_push(stack)?;
                columns.time.column.try_push(f64::NAN)?;
                if columns.counts.push(count)? {
                    json.problems.nearly(count, json.position() as usize);
                }
            }
        }
        Ok(())
    }
}

/// The lines of the samples of each node.
struct Lines {
    of_node: Lists<u32>,
    ticks: Vec<Ticks>,
    /// By node, the number of its lines that were already used.
    used: Vec<u32>,
}

impl Lines {
    fn new(nodes: &Nodes) -> Result<Lines> {
        let group_of = nodes.ticks.iter().map(|ticks| ticks.node as usize);
        Ok(Lines {
            of_node: Lists::grouped(nodes.rows().len(), group_of)?,
            ticks: crate::limits::memory::copied(&nodes.ticks)?,
            used: filled(nodes.rows().len(), 0)?,
        })
    }

    fn of(&self, node: u32) -> impl Iterator<Item = &Ticks> {
        let rows = self.of_node.get(node as usize).iter();
        rows.filter_map(|&row| self.ticks.get(row as usize))
    }

    /// The line of the next sample of a node; 0 if it is unknown.
    fn next(&mut self, node: u32) -> i64 {
        let rows = self.of_node.get(node as usize);
        let used = &mut self.used[node as usize];
        while let Some(&row) = rows.get(*used as usize) {
            let ticks = &mut self.ticks[row as usize];
            if ticks.ticks > 0 {
                ticks.ticks -= 1;
                return ticks.line.max(0);
            }
            *used += 1;
        }
        0
    }
}

/// The values of the samples of all profiles of a file.
pub struct Columns {
    counts: Values,
    time: Values,
}

impl Columns {
    pub fn new() -> Result<Columns> {
        Ok(Columns {
            counts: Values::absent_known(&SAMPLES, 0)?,
            time: Values::absent("time", "microseconds", 0)?,
        })
    }

    /// Adds the columns to a profile. Files may have no times.
    pub fn add_to(self, profile: &mut Profile) -> Result<()> {
        let has_times = self.time.column.iter().any(|time| !time.is_nan());
        let time = has_times.then_some(self.time);
        for values in [Some(self.counts), time].into_iter().flatten() {
            for source in &mut profile.sources {
                let name = owned(&values.type_.name)?;
                let unit = owned(&values.type_.unit)?;
                source.types.try_push(SampleType::new(name, unit, &[])?)?;
            }
            profile.values.try_push(values)?;
        }
        Ok(())
    }
}

/// A time by which samples are sorted.
#[derive(Clone, Copy, PartialEq)]
pub struct SortedTime(pub f64);

impl Eq for SortedTime {}

impl PartialOrd for SortedTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortedTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

fn numbers(json: &mut Reader, mut each: impl FnMut(Number) -> Result<()>) -> Result<()> {
    if json.peek()? != JsonKind::Array {
        return json.skip();
    }
    json.begin_array()?;
    while json.element()? {
        each(json.number()?)?;
    }
    Ok(())
}
