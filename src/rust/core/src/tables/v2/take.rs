//! Takes version "2.0" in: from tables that were checked to a profile.

use super::check::{Checked, check};
use super::origins;
use super::{Labels, SourceFacts, TablesV2};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, owned, sort_by_key};
use crate::model::{
    self, Label, Link, LocationId, Mapping, Payload, Period, Profile, RprofOptions, SampleType,
    Source, SourceFile, SourceId, SourceKind, StackCache, StackId, Strings, Symbols, Toplevel,
    Value, ValueKind, ValueType, nanoseconds, nearest, next_row, seconds,
};
use crate::tables::ids::Ids;
use crate::tables::{NA, Text, exact, take};

const SAMPLES_PER_CHECK: usize = 10_000;

/// Checks the tables and makes a profile of them.
pub fn profile_from_v2(tables: &TablesV2, stop: Stop) -> Result<Profile> {
    let mut checked = check(tables, stop)?;
    let mut profile = Profile::default();
    take_mappings(&mut profile, tables)?;
    take::functions(&mut profile, &tables.functions, &tables.function_facts)?;
    take::locations(
        &mut profile,
        &tables.locations,
        &checked.functions,
        &tables.location_facts,
        checked.beside.mappings.as_ref(),
    )?;
    for row in 0..tables.source_id.len() {
        profile.add_source(source(tables, row)?)?;
    }
    let stacks = take_stacks(&mut profile, tables, &checked, stop)?;
    for (&stack, &source) in stacks.iter().zip(tables.sample_source) {
        let source = checked.sources.row(source).unwrap_or(0) as u32;
        profile.samples.stack.try_push(stack, "samples")?;
        profile
            .samples
            .source
            .try_push(SourceId(source), "samples")?;
    }
    profile.values = std::mem::take(&mut checked.values);
    take_dotted(&mut profile, tables, &checked.sources, &checked.samples)?;
    take_sample_origins(&mut profile, tables)?;
    origins::take(&mut profile, tables, &checked.owners())?;
    Ok(profile)
}

/// The stack of each sample. Runs of rows repeat, so a run is looked up as the
/// bytes it is, before anybody looks at its locations.
fn take_stacks<'a>(
    profile: &mut Profile,
    tables: &TablesV2<'a>,
    checked: &Checked,
    stop: Stop,
) -> Result<Vec<StackId>> {
    let mut known: StackCache<'a, i32> = StackCache::default();
    let mut stacks = Vec::new();
    let mut stack: Vec<LocationId> = Vec::new();
    for (row, &(start, end)) in checked.runs.of_sample.iter().enumerate() {
        if row % SAMPLES_PER_CHECK == 0 {
            cancel::check(stop)?;
        }
        stack.clear();
        let run = match checked.runs.order {
            Some(_) => None,
            None => Some(&tables.frame_location[start..end]),
        };
        if let Some(stack) = run.and_then(|run| known.find(run)) {
            stacks.try_push(stack, "samples")?;
            continue;
        }
        for at in start..end {
            let frame = match &checked.runs.order {
                Some(order) => order[at] as usize,
                None => at,
            };
            if let Some(row) = checked.locations.row(tables.frame_location[frame]) {
                stack.try_push(LocationId(next_row(row, "locations")?), "a stack")?;
            }
        }
        let id = match run {
            Some(run) => {
                let id = profile.stacks.push(&stack)?;
                known.add(run, id)?;
                id
            }
            None => profile.stacks.intern(&stack)?,
        };
        stacks.try_push(id, "samples")?;
    }
    Ok(stacks)
}

fn source(tables: &TablesV2, row: usize) -> Result<Source> {
    const TABLE: &str = "sources";
    let facts = &tables.facts;
    let text = |column: &Option<Text>| -> Result<Option<String>> {
        let text = column.as_ref().and_then(|column| column.get(row));
        text.map(|text| owned(text, TABLE)).transpose()
    };
    let number = |column: Option<&[f64]>| column.map(|c| c[row]).filter(|v| !v.is_nan());
    let flag = |column| exact::flag(column, row);
    let options = match (flag(facts.memory), flag(facts.gc), flag(facts.line)) {
        (None, None, None) => None,
        (memory, gc, line) => Some(RprofOptions {
            memory: memory == Some(true),
            gc: gc == Some(true),
            line: line == Some(true),
        }),
    };
    let timestamp = Some(tables.source_timestamp[row]).filter(|v| !v.is_nan());
    let time = exact::decimal(TABLE, ".time_nanos", facts.time_nanos.as_ref(), row)?;
    let period = number(facts.period);
    let period_exact = exact::decimal(TABLE, ".period_exact", facts.period_exact.as_ref(), row)?;
    let period_unit = text(&facts.period_unit)?.unwrap_or_default();
    let period_type = text(&facts.period_type)?.map(|name| ValueType {
        name,
        unit: period_unit,
    });
    let duration = number(facts.duration);
    let duration_exact = exact::decimal(
        TABLE,
        ".duration_nanos_exact",
        facts.duration_exact.as_ref(),
        row,
    )?;
    Ok(Source {
        kind: SourceKind::of_text(tables.source_type.get(row).unwrap_or_default())?,
        uri: tables
            .source_uri
            .get(row)
            .map(|uri| owned(uri, TABLE))
            .transpose()?,
        timestamp,
        // Seconds that were edited count.
        time: time.filter(|&time| timestamp == Some(seconds(time))),
        period: period.map(|value| Period {
            value,
            exact: exact::of_double(period_exact, value),
            type_: period_type,
        }),
        duration: duration
            .and_then(|value| exact::of_double(duration_exact, value).or(nearest(value))),
        default_type: text(&facts.default_type)?,
        drop_frames: text(&facts.drop_frames)?,
        keep_frames: text(&facts.keep_frames)?,
        doc_url: text(&facts.doc_url)?,
        profile_id: text(&facts.profile_id)?.map(|mut id| {
            id.make_ascii_lowercase();
            id
        }),
        dropped_attributes: number(facts.dropped_attributes).unwrap_or(0.0) as u32,
        payload: payload(facts, row)?,
        options,
        ..Source::default()
    })
}

fn payload(facts: &SourceFacts, row: usize) -> Result<Option<Payload>> {
    let payload = facts.payload.as_ref().and_then(|column| column.get(row));
    match (
        facts
            .payload_format
            .as_ref()
            .and_then(|column| column.get(row)),
        payload,
    ) {
        (Some(format), Some(payload)) => Payload::of_base64(format, payload),
        _ => Ok(None),
    }
}

fn take_sample_origins(profile: &mut Profile, tables: &TablesV2) -> Result<()> {
    const TABLE: &str = "samples";
    let origins = &tables.origins;
    let samples = &mut profile.samples;
    for (row, &seconds) in origins.timestamp.unwrap_or_default().iter().enumerate() {
        let exact = exact::decimal(TABLE, ".time_nanos", origins.time_nanos.as_ref(), row)?;
        // Seconds that were edited count.
        let exact = exact.filter(|&time| seconds == model::seconds(time));
        if let Some(time) = exact.or_else(|| nanoseconds(seconds)) {
            samples.times.try_push((row, time), TABLE)?;
        }
    }
    if origins.trace_id.is_none() && origins.span_id.is_none() {
        return Ok(());
    }
    let text = |text: &Option<Text>, row| {
        let text = text.as_ref()?.get(row)?;
        Some(text.to_ascii_lowercase())
    };
    for row in 0..tables.sample_id.len() {
        let (trace, span) = (text(&origins.trace_id, row), text(&origins.span_id, row));
        if trace.is_none() && span.is_none() {
            continue;
        }
        let link = Link {
            trace_id: profile.strings.intern(&trace.unwrap_or_default())?,
            span_id: profile.strings.intern(&span.unwrap_or_default())?,
        };
        samples.links.try_push((row, link), TABLE)?;
    }
    Ok(())
}

fn take_mappings(profile: &mut Profile, tables: &TablesV2) -> Result<()> {
    const TABLE: &str = ".mappings";
    let Some(table) = &tables.mappings else {
        return Ok(());
    };
    for row in 0..table.mapping_id.len() {
        let address = |column, text| exact::hexadecimal(TABLE, column, Some(text), row);
        let flag = |column| exact::flag(Some(column), row) == Some(true);
        let mapping = Mapping {
            start: address("memory_start", &table.memory_start)?,
            limit: address("memory_limit", &table.memory_limit)?,
            offset: address("file_offset", &table.file_offset)?,
            filename: profile
                .strings
                .intern(table.filename.get(row).unwrap_or(""))?,
            build_id: profile
                .strings
                .intern(table.build_id.get(row).unwrap_or(""))?,
            symbols: Symbols {
                functions: flag(table.has_functions),
                filenames: flag(table.has_filenames),
                line_numbers: flag(table.has_line_numbers),
                inline_frames: flag(table.has_inline_frames),
            },
            native_id: exact::native_id(TABLE, "native_id", table.native_id.as_ref(), row)?,
        };
        profile.add_mapping(mapping)?;
    }
    Ok(())
}

fn take_dotted(
    profile: &mut Profile,
    tables: &TablesV2,
    sources: &Ids,
    samples: &Ids,
) -> Result<()> {
    if let Some(places) = &tables.places {
        for sample in 0..places.line.len() {
            let (Some(filename), line) = (places.filename.get(sample), places.line[sample]) else {
                continue;
            };
            let filename = profile.strings.intern(filename)?;
            profile.samples.toplevel.try_push(
                Toplevel {
                    sample,
                    filename,
                    line: line.max(0),
                },
                "samples",
            )?;
        }
    }
    if let Some(files) = &tables.files {
        for row in 0..files.source_id.len() {
            let file = SourceFile {
                number: files.number[row].max(0) as u32,
                filename: profile
                    .strings
                    .intern(files.filename.get(row).unwrap_or(""))?,
                // A sample that was filtered away leaves its file to the next.
                before: samples
                    .row(files.sample_id[row])
                    .unwrap_or_else(|| next_sample(tables, files.sample_id[row])),
            };
            if let Some(source) = sources.row(files.source_id[row]) {
                profile.sources[source].files.try_push(file, "files")?;
            }
        }
    }
    if let Some(labels) = &tables.labels {
        for row in 0..labels.sample_id.len() {
            let mut intern = |text: Option<&str>| match text {
                Some(text) => profile.strings.intern(text).map(Some),
                None => Ok(None),
            };
            let key = labels.key.get(row).unwrap_or("");
            let label = Label {
                sample: samples.row(labels.sample_id[row]).unwrap_or(0),
                str: intern(labels.str.get(row))?,
                unit: intern(labels.unit.get(row))?,
                num: label_number(labels, row)?,
                other: label_value(labels, row, &mut profile.strings)?,
                key: profile.strings.intern(key)?,
            };
            profile.labels.try_push(label, "labels")?;
        }
        sort_by_key(&mut profile.labels, |label| label.sample, "labels")?;
    }
    if let Some(comments) = &tables.comments {
        for (row, &id) in comments.source_id.iter().enumerate() {
            if let (Some(source), Some(comment)) = (sources.row(id), comments.comment.get(row)) {
                let comment = profile.strings.intern(comment)?;
                profile.sources[source]
                    .comments
                    .try_push(comment, "comments")?;
            }
        }
    }
    if let Some(types) = &tables.sample_types {
        let text = |text: &Text, row| owned(text.get(row).unwrap_or_default(), "sample types");
        for (row, &id) in types.source_id.iter().enumerate() {
            let type_ = SampleType {
                type_: ValueType {
                    name: text(&types.type_, row)?,
                    unit: text(&types.unit, row)?,
                },
                recorded: text(&types.recorded, row)?,
            };
            if let Some(source) = sources.row(id) {
                profile.sources[source]
                    .types
                    .try_push(type_, "sample types")?;
            }
        }
    }
    Ok(())
}

fn label_value(labels: &Labels, row: usize, strings: &mut Strings) -> Result<Option<Value>> {
    let (Some(type_), Some(value)) = (&labels.type_, &labels.value) else {
        return Ok(None);
    };
    let Some(kind) = type_.get(row).and_then(ValueKind::of_name) else {
        return Ok(None);
    };
    let text = strings.intern(value.get(row).unwrap_or(""))?;
    Ok(Some(Value { kind, text }))
}

fn label_number(labels: &Labels, row: usize) -> Result<Option<i64>> {
    let value = labels.num[row];
    if value.is_nan() {
        return Ok(None);
    }
    let exact = exact::decimal(".labels", "num_exact", labels.num_exact.as_ref(), row)?;
    Ok(Some(exact::of_double(exact, value).unwrap_or(value as i64)))
}

/// The row of the first sample with a greater id; NA is the end.
fn next_sample(tables: &TablesV2, id: i32) -> usize {
    let end = tables.sample_id.len();
    if id == NA {
        return end;
    }
    tables
        .sample_id
        .iter()
        .position(|&other| other > id)
        .unwrap_or(end)
}
