//! Version "2.0": seven flat tables, and tables with a leading dot for what they
//! cannot hold.

use super::{ids, put_functions, put_locations, put_meta, put_problems};
use crate::columns::{NA, NA_REAL, Tibble};
use crate::r::Slots;
use profile_core::cancel::{self, Stop};
use profile_core::error::{Error, Result};
use profile_core::model::{Profile, RprofOptions, Source, StringId};
use profile_core::problems::Problems;
use std::ffi::CStr;

/// Samples between two looks at the user's wish to stop.
const SAMPLES_PER_CHECK: usize = 10_000;

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
    let mut names: Vec<&CStr> = vec![
        c"meta",
        c"sources",
        c"samples",
        c"sample_values",
        c"sample_locations",
        c"locations",
        c"functions",
    ];
    for (there, name) in [
        (has_files, c".files"),
        (!profile.labels.is_empty(), c".labels"),
        (has_comments, c".comments"),
        (!problems.is_empty(), c".problems"),
    ] {
        if there {
            names.push(name);
        }
    }
    let tables = parent.list(slot, &names)?;
    put_meta(tables, 0, "2.0")?;
    put_sources(tables, 1, profile)?;
    put_samples(tables, 2, profile)?;
    put_values(tables, 3, profile)?;
    put_frames(tables, 4, profile, stop)?;
    put_locations(tables, 5, profile)?;
    put_functions(tables, 6, profile)?;
    for (i, name) in names.iter().enumerate().skip(7) {
        match name.to_bytes() {
            b".files" => put_files(tables, i, profile)?,
            b".labels" => put_labels(tables, i, profile)?,
            b".comments" => put_comments(tables, i, profile)?,
            _ => {
                let source = if sources.is_empty() { NA } else { 1 };
                put_problems(tables, i, problems, Some(source))?;
            }
        }
    }
    Ok(())
}

fn put_sources(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let sources = &profile.sources;
    let any = |has: fn(&Source) -> bool| sources.iter().any(has);
    let period = any(|s| s.period.is_some());
    let duration = any(|s| s.duration.is_some());
    let default_type = any(|s| s.default_type.is_some());
    let options = any(|s| s.options.is_some());
    let mut names = vec![
        c"source_id",
        c"source_type",
        c"source_uri",
        c"source_timestamp",
    ];
    if period {
        names.extend([c".period", c".period_type", c".period_unit"]);
    }
    if duration {
        names.push(c".duration_nanos");
    }
    if default_type {
        names.push(c".default_type");
    }
    if options {
        names.extend([c".memory_profiling", c".gc_profiling", c".line_profiling"]);
    }
    let mut table = Tibble::new(parent, slot, &names, sources.len())?;
    table.integers(ids(sources.len()))?;
    table.strings(sources.iter().map(|s| Some(s.kind.as_str())))?;
    table.strings(sources.iter().map(|s| s.uri.as_deref()))?;
    table.doubles(sources.iter().map(|s| s.timestamp.unwrap_or(NA_REAL)))?;
    if period {
        let periods = || sources.iter().map(|s| s.period.as_ref());
        table.doubles(periods().map(|p| p.map_or(NA_REAL, |p| p.value)))?;
        table.strings(periods().map(|p| p.map(|p| p.type_.as_str())))?;
        table.strings(periods().map(|p| p.map(|p| p.unit.as_str())))?;
    }
    if duration {
        table.doubles(
            sources
                .iter()
                .map(|s| s.duration.map_or(NA_REAL, |d| d as f64)),
        )?;
    }
    if default_type {
        table.strings(sources.iter().map(|s| s.default_type.as_deref()))?;
    }
    if options {
        let flag = |of: fn(RprofOptions) -> bool| sources.iter().map(move |s| s.options.map(of));
        table.logicals(flag(|o| o.memory))?;
        table.logicals(flag(|o| o.gc))?;
        table.logicals(flag(|o| o.line))?;
    }
    table.finish()
}

fn put_samples(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let samples = &profile.samples;
    let mut names = vec![c"sample_id", c"source_id"];
    if !samples.toplevel.is_empty() {
        names.extend([c".toplevel_filename", c".toplevel_line"]);
    }
    let mut table = Tibble::new(parent, slot, &names, samples.len())?;
    table.integers(ids(samples.len()))?;
    table.integers(samples.source.iter().map(|s| s.row() as i32 + 1))?;
    if !samples.toplevel.is_empty() {
        let mut filename = vec![None; samples.len()];
        let mut line = vec![NA; samples.len()];
        for place in &samples.toplevel {
            filename[place.sample] = Some(profile.strings.get(place.filename));
            line[place.sample] = place.line;
        }
        table.strings(filename)?;
        table.integers(line)?;
    }
    table.finish()
}

fn put_values(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let values = &profile.values;
    let names = [c"sample_id", c"type", c"unit", c"value"];
    let rows = values
        .iter()
        .map(|v| v.column.iter().filter(|x| !x.is_nan()).count())
        .sum();
    let mut table = Tibble::new(parent, slot, &names, rows)?;
    let mut type_of: Vec<i32> = Vec::new();
    type_of
        .try_reserve_exact(rows)
        .map_err(|_| Error::Memory("sample_values"))?;
    let sample_id = table.integer_slots()?;
    let mut at = 0;
    for sample in 0..profile.samples.len() {
        for (type_, values) in values.iter().enumerate() {
            if !values.column[sample].is_nan() {
                sample_id[at] = sample as i32 + 1;
                type_of.push(type_ as i32);
                at += 1;
            }
        }
    }
    let types: Vec<&str> = values.iter().map(|v| v.type_.name.as_str()).collect();
    table.indexed(&types, &type_of)?;
    let units: Vec<&str> = values.iter().map(|v| v.type_.unit.as_str()).collect();
    table.indexed(&units, &type_of)?;
    let value = table.double_slots()?;
    for ((slot, &type_), &id) in value.iter_mut().zip(&type_of).zip(sample_id.iter()) {
        *slot = values[type_ as usize].column[id as usize - 1];
    }
    table.finish()
}

/// `sample_locations`: every sample's stack written out, the largest table.
fn put_frames(parent: Slots, slot: usize, profile: &Profile, stop: Stop) -> Result<()> {
    let names = [c"sample_id", c"depth", c"location_id"];
    let stacks = &profile.stacks;
    let of_samples = &profile.samples.stack;
    let rows = of_samples.iter().map(|&s| stacks.get(s).len()).sum();
    let mut table = Tibble::new(parent, slot, &names, rows)?;
    let mut sample_id = table.integer_slots()?;
    let mut depth = table.integer_slots()?;
    let mut location_id = table.integer_slots()?;
    for (sample, &stack) in of_samples.iter().enumerate() {
        if sample % SAMPLES_PER_CHECK == 0 {
            cancel::check(stop)?;
        }
        let frames = stacks.get(stack);
        let (ids, rest) = sample_id.split_at_mut(frames.len());
        ids.fill(sample as i32 + 1);
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
    table.finish()
}

fn put_files(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let names = [c"source_id", c"number", c"filename", c"sample_id"];
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.files.iter().map(move |file| (id, file)))
    };
    let mut table = Tibble::new(parent, slot, &names, all().count())?;
    table.integers(all().map(|(id, _)| id))?;
    table.integers(all().map(|(_, f)| i32::try_from(f.number).unwrap_or(NA)))?;
    table.strings(all().map(|(_, f)| Some(profile.strings.get(f.filename))))?;
    let end = profile.samples.len();
    let sample = |before: usize| if before < end { before as i32 + 1 } else { NA };
    table.integers(all().map(|(_, f)| sample(f.before)))?;
    table.finish()
}

fn put_labels(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let names = [c"sample_id", c"key", c"str", c"num", c"unit"];
    let labels = &profile.labels;
    let text = |id: Option<StringId>| id.map(|id| profile.strings.get(id));
    let mut table = Tibble::new(parent, slot, &names, labels.len())?;
    table.integers(labels.iter().map(|l| l.sample as i32 + 1))?;
    table.strings(labels.iter().map(|l| text(Some(l.key))))?;
    table.strings(labels.iter().map(|l| text(l.str)))?;
    table.doubles(labels.iter().map(|l| l.num.map_or(NA_REAL, |n| n as f64)))?;
    table.strings(labels.iter().map(|l| text(l.unit)))?;
    table.finish()
}

fn put_comments(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let all = || {
        let sources = profile.sources.iter().zip(1..);
        sources.flat_map(|(source, id)| source.comments.iter().map(move |c| (id, c.as_str())))
    };
    let mut table = Tibble::new(parent, slot, &[c"source_id", c"comment"], all().count())?;
    table.integers(all().map(|(id, _)| id))?;
    table.strings(all().map(|(_, c)| Some(c)))?;
    table.finish()
}
