//! Version "2.0": seven flat tables, and tables with a leading dot for what they
//! cannot hold.

use super::{COLUMNS, beside, ids, origins, put_meta, put_problems};
use crate::columns::{NA, NA_REAL, Tibble};
use crate::slots::Slots;
use profile_core::error::{Error, Result};
use profile_core::formats::problems::Problems;
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryCollect, TryGrow, filled, with_room};
use profile_core::model::{
    Link, Profile, RprofOptions, Source, StackId, Stacks, inexact, recorded_time,
};
use std::ffi::{CStr, CString};
use std::thread;

/// Samples between two looks at the user's wish to stop.
const SAMPLES_PER_CHECK: usize = 10_000;
/// From so many rows on a second thread pays.
const ROWS_FOR_TWO: usize = 1 << 20;

/// The seven tables, then those with a leading dot that have rows.
pub fn put(
    parent: Slots,
    slot: usize,
    profile: &Profile,
    problems: &Problems,
    stop: Stop,
) -> Result<()> {
    let sources = &profile.sources;
    let has_files = sources.iter().any(|s| !s.files.is_empty());
    let has_comments = sources.iter().any(|s| !s.comments.is_empty());
    let has_types = sources.iter().any(|s| !s.types.is_empty());
    let mut names: Vec<&CStr> = [
        c"meta",
        c"sources",
        c"samples",
        c"sample_values",
        c"sample_locations",
        c"locations",
        c"functions",
    ]
    .into_iter()
    .try_vec(COLUMNS)?;
    let further = origins::tables(profile);
    for (there, name) in [
        (!profile.mappings.is_empty(), c".mappings"),
        (has_types, c".sample_types"),
        (has_files, c".files"),
        (!profile.labels.is_empty(), c".labels"),
        (has_comments, c".comments"),
    ] {
        if there {
            names.try_push(name, COLUMNS)?;
        }
    }
    names.try_extend_from(further.iter().map(CString::as_c_str), COLUMNS)?;
    if !problems.is_empty() {
        names.try_push(c".problems", COLUMNS)?;
    }
    let tables = parent.list(slot, &names)?;
    put_meta(tables, 0, "2.0")?;
    put_sources(tables, 1, profile)?;
    put_samples(tables, 2, profile)?;
    put_values(tables, 3, profile)?;
    put_frames(tables, 4, profile, stop)?;
    beside::put_locations(tables, 5, profile)?;
    beside::put_functions(tables, 6, profile)?;
    for (i, name) in names.iter().enumerate().skip(7) {
        match name.to_bytes() {
            b".mappings" => beside::put_mappings(tables, i, profile)?,
            b".sample_types" => beside::put_sample_types(tables, i, profile)?,
            b".files" => beside::put_files(tables, i, profile)?,
            b".labels" => beside::put_labels(tables, i, profile)?,
            b".comments" => beside::put_comments(tables, i, profile)?,
            b".problems" => {
                let source = if sources.is_empty() { NA } else { 1 };
                put_problems(tables, i, problems, Some(source))?;
            }
            _ => origins::put(tables, i, name, profile)?,
        }
    }
    Ok(())
}

fn put_sources(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let sources = &profile.sources;
    let any = |has: fn(&Source) -> bool| sources.iter().any(has);
    let time = any(|s| s.time.is_some());
    let period = any(|s| s.period.is_some());
    let period_exact = any(|s| s.period.as_ref().is_some_and(|p| p.exact.is_some()));
    let duration = any(|s| s.duration.is_some());
    let duration_exact = any(|s| s.duration.and_then(inexact).is_some());
    let options = any(|s| s.options.is_some());
    let mut names = [
        c"source_id",
        c"source_type",
        c"source_uri",
        c"source_timestamp",
    ]
    .into_iter()
    .try_vec(COLUMNS)?;
    let mut add = |there: bool, columns: &[&'static CStr]| match there {
        true => names.try_extend(columns, COLUMNS),
        false => Ok(()),
    };
    add(time, &[c".time_nanos"])?;
    add(period, &[c".period"])?;
    add(period_exact, &[c".period_exact"])?;
    add(period, &[c".period_type", c".period_unit"])?;
    add(duration, &[c".duration_nanos"])?;
    add(duration_exact, &[c".duration_nanos_exact"])?;
    for (name, text) in TEXTS {
        add(sources.iter().any(|s| text(s).is_some()), &[name])?;
    }
    let scope = any(|s| s.scope.is_some());
    let dropped = any(|s| s.dropped_attributes > 0);
    let payload = any(|s| s.payload.is_some());
    add(scope, &[c".scope_id"])?;
    add(dropped, &[c".dropped_attributes_count"])?;
    add(
        payload,
        &[c".original_payload_format", c".original_payload"],
    )?;
    add(
        options,
        &[c".memory_profiling", c".gc_profiling", c".line_profiling"],
    )?;
    let mut table = Tibble::new(parent, slot, &names, sources.len())?;
    table.integers(ids(sources.len()))?;
    table.strings(sources.iter().map(|s| Some(s.kind.as_str())))?;
    table.strings(sources.iter().map(|s| s.uri.as_deref()))?;
    table.doubles(sources.iter().map(|s| s.timestamp.unwrap_or(NA_REAL)))?;
    if time {
        table.texts(sources.iter().map(|s| s.time))?;
    }
    let periods = || sources.iter().map(|s| s.period.as_ref());
    if period {
        table.doubles(periods().map(|p| p.map_or(NA_REAL, |p| p.value)))?;
    }
    if period_exact {
        table.texts(periods().map(|p| p?.exact))?;
    }
    if period {
        let types = || periods().map(|p| p?.type_.as_ref());
        table.strings(types().map(|t| t.map(|t| t.name.as_str())))?;
        table.strings(types().map(|t| t.map(|t| t.unit.as_str())))?;
    }
    let durations = || sources.iter().map(|s| s.duration);
    if duration {
        table.doubles(durations().map(|d| d.map_or(NA_REAL, |d| d as f64)))?;
    }
    if duration_exact {
        table.texts(durations().map(|d| inexact(d?)))?;
    }
    for (_, text) in TEXTS {
        if sources.iter().any(|s| text(s).is_some()) {
            table.strings(sources.iter().map(text))?;
        }
    }
    if scope {
        table.integers(
            sources
                .iter()
                .map(|s| s.scope.map_or(NA, |id| id.row() as i32 + 1)),
        )?;
    }
    if dropped {
        table.doubles(sources.iter().map(|s| f64::from(s.dropped_attributes)))?;
    }
    if payload {
        let payloads = || sources.iter().map(|s| s.payload.as_ref());
        table.strings(payloads().map(|p| Some(p?.format.as_str())))?;
        table.texts(payloads().map(|p| Some(p?.base64())))?;
    }
    if options {
        let flag = |of: fn(RprofOptions) -> bool| sources.iter().map(move |s| s.options.map(of));
        table.logicals(flag(|o| o.memory))?;
        table.logicals(flag(|o| o.gc))?;
        table.logicals(flag(|o| o.line))?;
    }
    table.finish()
}

/// Columns of `sources` that are a text each.
type TextOf = fn(&Source) -> Option<&str>;
const TEXTS: [(&CStr, TextOf); 5] = [
    (c".default_type", |s| s.default_type.as_deref()),
    (c".drop_frames", |s| s.drop_frames.as_deref()),
    (c".keep_frames", |s| s.keep_frames.as_deref()),
    (c".doc_url", |s| s.doc_url.as_deref()),
    (c".profile_id", |s| s.profile_id.as_deref()),
];

fn put_samples(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let samples = &profile.samples;
    let mut names = [c"sample_id", c"source_id"].into_iter().try_vec(COLUMNS)?;
    if !samples.toplevel.is_empty() {
        names.try_extend(&[c".toplevel_filename", c".toplevel_line"], COLUMNS)?;
    }
    let times = || samples.times.iter();
    let nearly = times().any(|(_, time)| recorded_time(*time).1.is_some());
    if !samples.times.is_empty() {
        names.try_push(c".timestamp", COLUMNS)?;
    }
    if nearly {
        names.try_push(c".time_nanos", COLUMNS)?;
    }
    if !samples.links.is_empty() {
        names.try_extend(&[c".trace_id", c".span_id"], COLUMNS)?;
    }
    let mut table = Tibble::new(parent, slot, &names, samples.len())?;
    table.integers(ids(samples.len()))?;
    table.integers(samples.source.iter().map(|s| s.row() as i32 + 1))?;
    if !samples.toplevel.is_empty() {
        let mut filename = filled(samples.len(), None, "samples")?;
        let mut line = filled(samples.len(), NA, "samples")?;
        for place in &samples.toplevel {
            filename[place.sample] = Some(profile.strings.get(place.filename));
            line[place.sample] = place.line;
        }
        table.strings(filename)?;
        table.integers(line)?;
    }
    if !samples.times.is_empty() {
        let column = table.double_slots()?;
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
        table.texts(column.into_iter())?;
    }
    if !samples.links.is_empty() {
        for id in [|l: &Link| l.trace_id, |l: &Link| l.span_id] {
            let mut column = Vec::new();
            column.try_fill(samples.len(), None, "samples")?;
            for (sample, link) in &samples.links {
                let text = profile.strings.get(id(link));
                column[*sample] = Some(text).filter(|text| !text.is_empty());
            }
            table.strings(column)?;
        }
    }
    table.finish()
}

fn put_values(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let values = &profile.values;
    let mut names = [c"sample_id", c"type", c"unit", c"value"]
        .into_iter()
        .try_vec(COLUMNS)?;
    let exact = values.iter().any(|v| !v.exact.is_empty());
    if exact {
        names.try_push(c".value_exact", COLUMNS)?;
    }
    let rows = values
        .iter()
        .map(|v| v.column.iter().filter(|x| !x.is_nan()).count())
        .sum();
    let mut table = Tibble::new(parent, slot, &names, rows)?;
    let mut type_of: Vec<i32> = with_room(rows, "sample values")?;
    let sample_id = table.integer_slots()?;
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
    table.indexed(&types, &type_of)?;
    let units = values.iter().map(|v| v.type_.unit.as_str());
    let units = units.try_vec("sample types")?;
    table.indexed(&units, &type_of)?;
    let value = table.double_slots()?;
    for ((slot, &type_), &id) in value.iter_mut().zip(&type_of).zip(sample_id.iter()) {
        *slot = values[type_ as usize].column[id as usize - 1];
    }
    if exact {
        let number = |(&type_, &id): (&i32, &i32)| values[type_ as usize].exact(id as usize - 1);
        table.texts(type_of.iter().zip(sample_id.iter()).map(number))?;
    }
    table.finish()
}

/// `sample_locations`: every sample's stack written out, the largest table. Most of
/// the time goes to new pages of memory, which two threads get in half of it.
fn put_frames(parent: Slots, slot: usize, profile: &Profile, stop: Stop) -> Result<()> {
    let names = [c"sample_id", c"depth", c"location_id"];
    let length = |stack: &StackId| profile.stacks.get(*stack).len();
    let (first, second) = profile.samples.stack.split_at(profile.samples.len() / 2);
    let rows: usize = first.iter().map(length).sum();
    let all = rows + second.iter().map(length).sum::<usize>();
    let mut table = Tibble::new(parent, slot, &names, all)?;
    let sample_id = table.integer_slots()?.split_at_mut(rows);
    let depth = table.integer_slots()?.split_at_mut(rows);
    let location_id = table.integer_slots()?.split_at_mut(rows);
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
