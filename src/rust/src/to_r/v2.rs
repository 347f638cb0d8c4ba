//! Version "2.0": seven flat tables, and tables with a leading dot for what they
//! cannot hold.

use super::{Tables, beside, ids, meta, origins, problems};
use crate::arena::{Arena, Value};
use crate::tibble::{NA, NA_REAL, Tibble};
use profile_core::error::{Error, Result};
use profile_core::formats::problems::Problems;
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryCollect, TryGrow, filled, with_room};
use profile_core::model::{
    Link, Profile, RprofOptions, Source, StackId, Stacks, StringId, inexact, recorded_time,
};
use std::thread;

/// Samples between two looks at the user's wish to stop.
const SAMPLES_PER_CHECK: usize = 10_000;
/// From so many rows on a second thread pays.
const ROWS_FOR_TWO: usize = 1 << 20;

/// The seven tables, then those with a leading dot that have rows.
pub fn tables<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    noted: &Problems,
    stop: Stop,
) -> Result<Value<'call>> {
    let sources = &profile.sources;
    let mut tables = Tables::new(arena);
    tables.add("meta", meta(arena, "2.0")?)?;
    tables.add("sources", self::sources(arena, profile)?)?;
    tables.add("samples", samples(arena, profile)?)?;
    tables.add("sample_values", values(arena, profile)?)?;
    tables.add("sample_locations", frames(arena, profile, stop)?)?;
    tables.add("locations", beside::locations(arena, profile)?)?;
    tables.add("functions", beside::functions(arena, profile)?)?;
    if !profile.mappings.is_empty() {
        tables.add(".mappings", beside::mappings(arena, profile)?)?;
    }
    if sources.iter().any(|s| !s.types.is_empty()) {
        tables.add(".sample_types", beside::sample_types(arena, profile)?)?;
    }
    if sources.iter().any(|s| !s.files.is_empty()) {
        tables.add(".files", beside::files(arena, profile)?)?;
    }
    if !profile.labels.is_empty() {
        tables.add(".labels", beside::labels(arena, profile)?)?;
    }
    if sources.iter().any(|s| !s.comments.is_empty()) {
        tables.add(".comments", beside::comments(arena, profile)?)?;
    }
    origins::add(&mut tables, arena, profile)?;
    if !noted.is_empty() {
        let source = if sources.is_empty() { NA } else { 1 };
        tables.add(".problems", problems(arena, noted, Some(source))?)?;
    }
    tables.finish()
}

fn sources<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let sources = &profile.sources;
    let any = |has: fn(&Source) -> bool| sources.iter().any(has);
    let time = any(|s| s.time.is_some());
    let period = any(|s| s.period.is_some());
    let period_exact = any(|s| s.period.as_ref().is_some_and(|p| p.exact.is_some()));
    let duration = any(|s| s.duration.is_some());
    let duration_exact = any(|s| s.duration.and_then(inexact).is_some());
    let options = any(|s| s.options.is_some());
    let scope = any(|s| s.scope.is_some());
    let dropped = any(|s| s.dropped_attributes > 0);
    let payload = any(|s| s.payload.is_some());
    let mut table = Tibble::new(arena, sources.len())?;
    table.integers("source_id", ids(sources.len()))?;
    table.strings("source_type", sources.iter().map(|s| Some(s.kind.as_str())))?;
    table.strings("source_uri", sources.iter().map(|s| s.uri.as_deref()))?;
    table.doubles(
        "source_timestamp",
        sources.iter().map(|s| s.timestamp.unwrap_or(NA_REAL)),
    )?;
    if time {
        table.texts(".time_nanos", sources.iter().map(|s| s.time))?;
    }
    let periods = || sources.iter().map(|s| s.period.as_ref());
    if period {
        table.doubles(".period", periods().map(|p| p.map_or(NA_REAL, |p| p.value)))?;
    }
    if period_exact {
        table.texts(".period_exact", periods().map(|p| p?.exact))?;
    }
    if period {
        let types = || periods().map(|p| p?.type_.as_ref());
        table.strings(".period_type", types().map(|t| t.map(|t| t.name.as_str())))?;
        table.strings(".period_unit", types().map(|t| t.map(|t| t.unit.as_str())))?;
    }
    let durations = || sources.iter().map(|s| s.duration);
    if duration {
        table.doubles(
            ".duration_nanos",
            durations().map(|d| d.map_or(NA_REAL, |d| d as f64)),
        )?;
    }
    if duration_exact {
        table.texts(".duration_nanos_exact", durations().map(|d| inexact(d?)))?;
    }
    for (name, text) in TEXTS {
        if sources.iter().any(|s| text(s).is_some()) {
            table.strings(name, sources.iter().map(text))?;
        }
    }
    if scope {
        let id = |s: &Source| s.scope.map_or(NA, |id| id.row() as i32 + 1);
        table.integers(".scope_id", sources.iter().map(id))?;
    }
    if dropped {
        table.doubles(
            ".dropped_attributes_count",
            sources.iter().map(|s| f64::from(s.dropped_attributes)),
        )?;
    }
    if payload {
        let payloads = || sources.iter().map(|s| s.payload.as_ref());
        table.strings(
            ".original_payload_format",
            payloads().map(|p| Some(p?.format.as_str())),
        )?;
        table.texts(".original_payload", payloads().map(|p| Some(p?.base64())))?;
    }
    if options {
        let flag = |of: fn(RprofOptions) -> bool| sources.iter().map(move |s| s.options.map(of));
        table.logicals(".memory_profiling", flag(|o| o.memory))?;
        table.logicals(".gc_profiling", flag(|o| o.gc))?;
        table.logicals(".line_profiling", flag(|o| o.line))?;
    }
    table.finish()
}

/// Columns of `sources` that are a text each.
type TextOf = fn(&Source) -> Option<&str>;
const TEXTS: [(&str, TextOf); 5] = [
    (".default_type", |s| s.default_type.as_deref()),
    (".drop_frames", |s| s.drop_frames.as_deref()),
    (".keep_frames", |s| s.keep_frames.as_deref()),
    (".doc_url", |s| s.doc_url.as_deref()),
    (".profile_id", |s| s.profile_id.as_deref()),
];

fn samples<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let samples = &profile.samples;
    let times = || samples.times.iter();
    let nearly = times().any(|(_, time)| recorded_time(*time).1.is_some());
    let mut table = Tibble::new(arena, samples.len())?;
    table.integers("sample_id", ids(samples.len()))?;
    table.integers(
        "source_id",
        samples.source.iter().map(|s| s.row() as i32 + 1),
    )?;
    if !samples.toplevel.is_empty() {
        let mut filename = filled(samples.len(), None, "samples")?;
        let mut line = filled(samples.len(), NA, "samples")?;
        for place in &samples.toplevel {
            filename[place.sample] = Some(profile.strings.get(place.filename));
            line[place.sample] = place.line;
        }
        table.strings(".toplevel_filename", filename)?;
        table.integers(".toplevel_line", line)?;
    }
    if !samples.times.is_empty() {
        let column = table.double_slots(".timestamp")?;
        column.fill(NA_REAL);
        for (sample, time) in times() {
            column[*sample] = recorded_time(*time).0;
        }
    }
    if nearly {
        let mut column = Vec::new();
        column.try_fill(samples.len(), None, "samples")?;
        for (sample, time) in times() {
            column[*sample] = recorded_time(*time).1;
        }
        table.texts(".time_nanos", column.into_iter())?;
    }
    if !samples.links.is_empty() {
        let mut add = |name, id: fn(&Link) -> StringId| {
            let mut column = Vec::new();
            column.try_fill(samples.len(), None, "samples")?;
            for (sample, link) in &samples.links {
                let text = profile.strings.get(id(link));
                column[*sample] = Some(text).filter(|text| !text.is_empty());
            }
            table.strings(name, column)
        };
        add(".trace_id", |link| link.trace_id)?;
        add(".span_id", |link| link.span_id)?;
    }
    table.finish()
}

fn values<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let values = &profile.values;
    let exact = values.iter().any(|v| !v.exact.is_empty());
    let rows = values
        .iter()
        .map(|v| v.column.iter().filter(|x| !x.is_nan()).count())
        .sum();
    let mut table = Tibble::new(arena, rows)?;
    let mut type_of: Vec<i32> = with_room(rows, "sample values")?;
    let sample_id = table.integer_slots("sample_id")?;
    let mut at = 0;
    for sample in 0..profile.samples.len() {
        for (type_, values) in values.iter().enumerate() {
            if !values.column[sample].is_nan() {
                sample_id[at] = sample as i32 + 1;
                type_of.try_push(type_ as i32, "sample values")?;
                at += 1;
            }
        }
    }
    let types = values.iter().map(|v| v.type_.name.as_str());
    let types = types.try_vec("sample types")?;
    table.indexed("type", &types, &type_of)?;
    let units = values.iter().map(|v| v.type_.unit.as_str());
    let units = units.try_vec("sample types")?;
    table.indexed("unit", &units, &type_of)?;
    let value = table.double_slots("value")?;
    for ((slot, &type_), &id) in value.iter_mut().zip(&type_of).zip(sample_id.iter()) {
        *slot = values[type_ as usize].column[id as usize - 1];
    }
    if exact {
        let number = |(&type_, &id): (&i32, &i32)| values[type_ as usize].exact(id as usize - 1);
        table.texts(
            ".value_exact",
            type_of.iter().zip(sample_id.iter()).map(number),
        )?;
    }
    table.finish()
}

/// `sample_locations`: every sample's stack written out, the largest table. Most of
/// the time goes to new pages of memory, which two threads get in half of it.
fn frames<'call>(arena: Arena<'call>, profile: &Profile, stop: Stop) -> Result<Value<'call>> {
    let length = |stack: &StackId| profile.stacks.get(*stack).len();
    let (first, second) = profile.samples.stack.split_at(profile.samples.len() / 2);
    let rows: usize = first.iter().map(length).sum();
    let all = rows + second.iter().map(length).sum::<usize>();
    let mut table = Tibble::new(arena, all)?;
    let sample_id = table.integer_slots("sample_id")?.split_at_mut(rows);
    let depth = table.integer_slots("depth")?.split_at_mut(rows);
    let location_id = table.integer_slots("location_id")?.split_at_mut(rows);
    let frames = |stacks, first_id, sample_id, depth, location_id| Frames {
        stacks,
        first_id,
        sample_id,
        depth,
        location_id,
    };
    let next = 1 + first.len() as i32;
    let first = frames(first, 1, sample_id.0, depth.0, location_id.0);
    let second = frames(second, next, sample_id.1, depth.1, location_id.1);
    if all < ROWS_FOR_TWO {
        first.fill(&profile.stacks, stop)?;
        second.fill(&profile.stacks, stop)?;
        return table.finish();
    }
    thread::scope(|scope| {
        // Only this thread may ask R whether to stop.
        let stacks = &profile.stacks;
        let fill = move || second.fill(stacks, &|| false);
        let worker = thread::Builder::new().spawn_scoped(scope, fill);
        let worker = worker.map_err(|_| Error::Memory("a thread"))?;
        let filled = first.fill(stacks, stop);
        match worker.join() {
            Ok(second) => filled.and(second),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    table.finish()
}

/// Part of `sample_locations`.
struct Frames<'a> {
    stacks: &'a [StackId],
    first_id: i32,
    sample_id: &'a mut [i32],
    depth: &'a mut [i32],
    location_id: &'a mut [i32],
}

impl Frames<'_> {
    fn fill(self, stacks: &Stacks, stop: Stop) -> Result<()> {
        let Frames {
            mut sample_id,
            mut depth,
            mut location_id,
            ..
        } = self;
        for (i, (id, &stack)) in (self.first_id..).zip(self.stacks).enumerate() {
            if i % SAMPLES_PER_CHECK == 0 {
                cancel::check(stop)?;
            }
            let frames = stacks.get(stack);
            let (ids, rest) = sample_id.split_at_mut(frames.len());
            ids.fill(id);
            sample_id = rest;
            let (depths, rest) = depth.split_at_mut(frames.len());
            for (slot, value) in depths.iter_mut().zip(1..) {
                *slot = value;
            }
            depth = rest;
            let (locations, rest) = location_id.split_at_mut(frames.len());
            for (slot, frame) in locations.iter_mut().zip(frames) {
                *slot = frame.row() as i32 + 1;
            }
            location_id = rest;
        }
        Ok(())
    }
}
