//! Writes a profile of the file for each source and sample type. Fields that speedscope ignores say which profiles are of one
//! source, and what its period is.
//!
//! In speedscope 1.25, a file with 100,000 samples in their order takes 7 s to open, and a file with a million samples
//! never shows a picture; the same million summed by stack takes 1.5 s (Chromium, two cores). So files with more than
//! [`MOST_IN_ORDER`] samples are summed, unless the user decides.

use super::layout::{NO_UNIT, SCHEMA, type_of};
use crate::analysis::frame_names::shown;
use crate::analysis::measures::{Measure, Measured};
use crate::analysis::rows_by_source::RowsBySource;
use crate::analysis::source_facts::{default_type, file_name};
use crate::collections::{Interner, Lists, TextList, next_row};
use crate::error::Result;
use crate::formats::losses::{LossKind, Losses};
use crate::formats::write;
use crate::json::Json;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryText, filled, owned, written};
use crate::model::{LocationId, Profile, StackId, ValueType};
use crate::text::push_integer;
use crate::text::put_json;
use std::io::Write;
use std::ptr;

/// The number of samples up to which they are written in their order.
pub const MOST_IN_ORDER: usize = 100_000;

/// Writes speedscope files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer {
    /// Whether samples with equal stacks are summed. By default they are if there are many.
    pub aggregate: Option<bool>,
}

impl write::Writer for Writer {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let measures = Measure::all(profile)?;
        let rows = RowsBySource::new(profile)?;
        let mut losses = Losses::default();
        // The profiles to write, each with the number of its samples in order and its sum.
        let mut written: Vec<(Measured, usize, f64)> = Vec::new();
        for source in profile.source_ids() {
            let before = written.len();
            for measure in &measures {
                let measured = Measured {
                    profile,
                    source,
                    rows: rows.of(source),
                    measure,
                };
                let (mut count, mut sum) = (0, 0.0);
                let left_out = measured.runs(stop, |_, value| {
                    count += 1;
                    sum += value;
                    Ok(())
                })?;
                losses.add(LossKind::NotPositive, left_out);
                if count > 0 {
                    written.try_push((measured, count, sum))?;
                }
            }
            losses.add(
                LossKind::SourceWithoutSamples,
                usize::from(written.len() == before),
            );
        }
        let count = written.iter().map(|(_, count, _)| count).sum::<usize>();
        let aggregate = self.aggregate.unwrap_or(count > MOST_IN_ORDER);
        let stacks = Stacks::new(profile, stop)?;
        let mut sums = filled(profile.stacks.len(), 0.0)?;
        // Few types, while there may be many sources.
        let is_written =
            |m: &&Measure| written.iter().any(|(other, ..)| ptr::eq(other.measure, *m));
        let used = measures.iter().filter(is_written).try_vec()?;
        let mut json = Json::new(out, stop)?;
        json.object(|json| {
            json.field("$schema")?.text(SCHEMA)?;
            json.field("exporter")?
                .text(concat!("R package profile ", env!("CARGO_PKG_VERSION")))?;
            let active = active(profile, &measures, &written)?;
            json.field("activeProfileIndex")?.integer(active as i64)?;
            json.field("shared")?.object(|json| {
                let mut frames = stacks.frames.iter();
                json.field("frames")?
                    .array(|json| frames.try_for_each(|frame| json.prepared(frame.as_bytes())))
            })?;
            json.field("profiles")?.array(|json| {
                written.iter().try_for_each(|&(measured, _, sum)| {
                    json.object(|json| {
                        write_head(measured, &used, json)?;
                        let aggregated = aggregate.then_some(&mut *sums);
                        write_profile(measured, sum, aggregated, &stacks, json, stop)
                    })
                })
            })
        })?;
        json.finish()?;
        Ok(losses)
    }
}

/// The profile that is shown first: the one with the default type of its source.
fn active(
    profile: &Profile,
    measures: &[Measure],
    written: &[(Measured, usize, f64)],
) -> Result<usize> {
    let types = measures.iter().filter_map(Measure::as_type);
    let types = types.try_vec()?;
    let is_default = |measured: &Measured| {
        let source = profile.sources.get(measured.source.row());
        let default = source.and_then(|source| default_type(source, &types));
        default.is_some_and(|name| name == measured.measure.key())
    };
    let active = written
        .iter()
        .position(|(measured, ..)| is_default(measured));
    Ok(active.unwrap_or(0))
}

/// The unit that speedscope shows.
fn shown_unit<'a>(measure: &Measure<'a>) -> &'a str {
    match measure.unit() {
        unit if unit == "bytes" || measure.nanoseconds().is_some() => unit,
        _ => NO_UNIT,
    }
}

/// Writes the name and the unit, and the sample type if the unit does not identify it: if it would be read as another
/// type, or another type in the file, of those `used`, would be read as the same type. A single time is read as `time`, as in files of other
/// tools.
fn write_head(measured: Measured, used: &[&Measure], json: &mut Json) -> Result<()> {
    let measure = measured.measure;
    let shown = shown_unit(measure);
    json.field("type")?.text("sampled")?;
    json.field("name")?.text(&name(measured)?)?;
    json.field("unit")?.text(shown)?;
    json.field("run")?
        .integer(measured.source.row() as i64 + 1)?;
    let source = measured.profile.sources.get(measured.source.row());
    if let Some(period) = source.and_then(|source| source.period.as_ref()) {
        json.field("period")?.array(|json| {
            json.number(period.value)?;
            match &period.type_ {
                Some(ValueType { name, unit }) => {
                    json.text(name)?;
                    json.text(unit)
                }
                None => Ok(()),
            }
        })?;
    }
    let is_other =
        |other: &&Measure| (other.own_name(), other.unit()) != (measure.own_name(), measure.unit());
    let mut same_unit = used.iter().filter(|other| shown_unit(other) == shown);
    let is_same = match measure.nanoseconds() {
        Some(_) => true,
        None => type_of(shown) == (measure.own_name(), measure.unit()),
    };
    if is_same && !same_unit.any(is_other) {
        Ok(())
    } else {
        json.field("sampleType")?
            .texts([measure.own_name(), measure.unit()].into_iter())
    }
}

/// `sums`: zeros for all stacks, to sum samples with equal stacks.
fn write_profile(
    measured: Measured,
    sum: f64,
    mut sums: Option<&mut [f64]>,
    stacks: &Stacks,
    json: &mut Json,
    stop: Stop,
) -> Result<()> {
    let mut each = |each: &mut dyn FnMut(StackId, f64) -> Result<()>| match &mut sums {
        Some(sums) => measured.sums(sums, stop, each).map(drop),
        None => measured.runs(stop, each).map(drop),
    };
    json.field("startValue")?.integer(0)?;
    json.field("endValue")?.number(sum)?;
    json.field("samples")?
        .array(|json| each(&mut |stack, _| json.prepared(stacks.get(stack))))?;
    json.field("weights")?
        .array(|json| each(&mut |_, value| json.number(value)))
}

/// Such as `Rprof.out: cpu`.
fn name(measured: Measured) -> Result<String> {
    let source = measured.profile.sources.get(measured.source.row());
    let uri = source.and_then(|source| source.uri.as_deref());
    let type_ = measured.measure.own_name();
    match file_name(uri.unwrap_or_default()) {
        "" => written(format_args!("run {}: {type_}", measured.source.row() + 1)),
        file => written(format_args!("{file}: {type_}")),
    }
}

/// The frames, and the text of each stack that samples have.
struct Stacks {
    /// As JSON.
    frames: Interner<TextList>,
    texts: Lists<u8>,
    /// By stack, the row of its text.
    rows: Vec<u32>,
}

impl Stacks {
    fn new(profile: &Profile, stop: Stop) -> Result<Stacks> {
        let is_used = profile.samples.used_stacks(profile.stacks.len())?;
        let mut stacks = Stacks {
            frames: Interner::default(),
            texts: Lists::default(),
            rows: filled(profile.stacks.len(), 0)?,
        };
        // By location, one more than its frame.
        let mut frames = filled(profile.locations.len(), 0)?;
        let (mut space, mut text) = (Vec::new(), Vec::new());
        for (row, stack) in profile.stacks.ids().enumerate() {
            cancel::at_row(row, stop)?;
            if !is_used[row] {
                continue;
            }
            text.clear();
            let locations = profile.stacks.get(stack).unpacked(&mut space)?;
            for &location in locations.iter().rev() {
                let frame = &mut frames[location.row()];
                if *frame == 0 {
                    let shown = frame_as_json(profile, location)?;
                    *frame = stacks.frames.intern(&shown)? + 1;
                }
                text.try_push(if text.is_empty() { b'[' } else { b',' })?;
                push_integer(&mut text, i64::from(*frame - 1))?;
            }
            text.try_extend(if text.is_empty() { b"[]" } else { b"]" })?;
            stacks.rows[row] = next_row(stacks.texts.len(), "stacks")?;
            stacks.texts.push(&text)?;
        }
        Ok(stacks)
    }

    fn get(&self, stack: StackId) -> &[u8] {
        self.texts.get(self.rows[stack.row()] as usize)
    }
}

fn frame_as_json(profile: &Profile, location: LocationId) -> Result<String> {
    let shown = shown(profile, location)?;
    let mut text = owned("{\"name\":")?;
    put_json(&mut text, &shown.name)?;
    if !shown.file.is_empty() {
        text.try_push_str(",\"file\":")?;
        put_json(&mut text, shown.file)?;
    }
    if shown.line > 0 {
        text.try_write(format_args!(",\"line\":{}", shown.line))?;
    }
    if shown.column > 0 {
        text.try_write(format_args!(",\"col\":{}", shown.column))?;
    }
    text.try_push_char('}')?;
    Ok(text)
}
