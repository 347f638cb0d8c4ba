//! Version "1.0": five tables, the stacks in a list column.

use super::tables::Tables;
use crate::arena::{Arena, Value};
use crate::tibble::Tibble;
use profile_core::error::{Error, Result};
use profile_core::formats::problems::Problems;
use profile_core::formats::rprof;
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::{TryCollect, TryGrow, written};
use profile_core::message;
use profile_core::model::{Profile, SourceFile, SourceKind, Stacks, Values};
use profile_core::schema::{FUNCTIONS, LOCATIONS, META_V1, PROBLEMS, Table, Version};

const LINES: &str = "the header";

/// The five tables of version "1.0", and where they came from. A sample without
/// a count, or with a count of 0, has no place there.
pub fn tables<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    problems: &Problems,
    stop: Stop,
) -> Result<Value<'call>> {
    let Some(counts) = v1_counts(profile) else {
        return Err(Error::Lossy(message!(
            "Version \"1.0\" holds counts of samples, and no value type of this profile is one. \
             Use `version = \"2.0\"`."
        )));
    };
    let rprof = profile.sources.iter().any(|s| s.kind == SourceKind::RPROF);
    let manual = profile.sources.iter().all(|s| s.kind == SourceKind::MANUAL);
    let mut tables = Tables::new(arena);
    META_V1.write(profile, Version::One, &mut tables, stop)?;
    let mut types = Tibble::new(arena, 1)?;
    types.strings("type", [Some("samples")])?;
    types.strings("unit", [Some("count")])?;
    tables.add("sample_types", types.finish()?)?;
    tables.add("samples", samples(arena, profile, counts)?)?;
    LOCATIONS.write(profile, Version::One, &mut tables, stop)?;
    FUNCTIONS.write(profile, Version::One, &mut tables, stop)?;
    if rprof {
        tables.add(".rprof", recorded(arena, profile)?)?;
    } else if !manual {
        tables.add(".msg", message(arena, profile)?)?;
    }
    PROBLEMS.write_rows(profile, &problems.rows(None)?, Version::Two, &mut tables)?;
    tables.finish()
}

/// The counting type: `samples/count`, else the first in `count`.
fn v1_counts(profile: &Profile) -> Option<&[f64]> {
    let counts = profile.counts().or_else(|| {
        let in_counts = |v: &&Values| v.type_.unit == "count";
        profile.values.iter().find(in_counts)
    });
    match counts {
        Some(counts) => Some(&counts.column),
        None if profile.samples.is_empty() => Some(&[]),
        None => None,
    }
}

fn samples<'call>(arena: Arena<'call>, profile: &Profile, counts: &[f64]) -> Result<Value<'call>> {
    let mut frames: Vec<i32> = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    // Samples with equal stacks share a tibble; a reader need not have looked for them.
    let mut distinct = Stacks::default();
    let mut rows: Vec<i32> = Vec::new();
    for stack in profile.stacks.ids() {
        let stack = profile.stacks.get(stack);
        let row = distinct.intern(stack)?.row();
        rows.try_push(row as i32, "stacks")?;
        if row == ends.len() {
            for frame in stack {
                frames.try_push(frame.row() as i32 + 1, "stacks")?;
            }
            ends.try_push(frames.len(), "stacks")?;
        }
    }
    let mut value: Vec<i32> = Vec::new();
    let mut stack_of: Vec<i32> = Vec::new();
    for (row, (&count, stack)) in counts.iter().zip(&profile.samples.stack).enumerate() {
        if count.is_nan() || count <= 0.0 {
            continue;
        }
        if count > f64::from(i32::MAX) || count.fract() != 0.0 {
            return Err(Error::Lossy(message!(
                "Sample {} counts {count} times, which version \"1.0\" cannot hold as an integer. \
                 Use `version = \"2.0\"`.",
                row + 1
            )));
        }
        value.try_push(count as i32, "samples")?;
        stack_of.try_push(rows[stack.row()], "samples")?;
    }
    let mut samples = Tibble::new(arena, value.len())?;
    samples.integers("value", value)?;
    samples.stacks("locations", &frames, &ends, &stack_of)?;
    samples.finish()
}

/// `.rprof`: the header and the `#File` lines, as text.
fn recorded<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let headers = profile
        .sources
        .iter()
        .filter_map(rprof::header)
        .map(|header| written(format_args!("{header}"), LINES))
        .try_vec_of(LINES)?;
    let file = |file: &SourceFile| {
        let name = profile.strings.get(file.filename);
        written(format_args!("#File {}: {name}", file.number), LINES)
    };
    let files = profile.sources.iter().flat_map(|s| s.files.iter());
    let files = files.map(file).try_vec_of(LINES)?;
    let texts = |texts: &[String]| arena.texts(&texts.iter().map(String::as_str).try_vec(LINES)?);
    arena.list(&[("header", texts(&headers)?), ("files", texts(&files)?)])
}

/// `.msg`: the comments of a pprof file.
fn message<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let sources = profile.sources.iter();
    let comments = sources.flat_map(|s| s.comments.iter().map(|&c| profile.strings.get(c)));
    let comments = arena.texts(&comments.try_vec("comments")?)?;
    arena.list(&[("comment", comments)])
}
