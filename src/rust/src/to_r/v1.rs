//! Version "1.0": five tables, the stacks in a list column.

use super::{COLUMNS, put_meta, put_problems, start_functions, start_locations};
use crate::columns::Tibble;
use crate::slots::Slots;
use profile_core::error::{Error, Result};
use profile_core::formats::problems::Problems;
use profile_core::formats::rprof;
use profile_core::limits::memory::{TryCollect, TryGrow, written};
use profile_core::message;
use profile_core::model::{Profile, SourceFile, Stacks, Values};
use std::ffi::CStr;

const LINES: &str = "the header";

/// The five tables of version "1.0", and where they came from. A sample without
/// a count, or with a count of 0, has no place there.
pub fn put(parent: Slots, slot: usize, profile: &Profile, problems: &Problems) -> Result<()> {
    let Some(counts) = v1_counts(profile) else {
        return Err(Error::Lossy(message!(
            "Version \"1.0\" holds counts of samples, and no value type of this profile is one. \
             Use `version = \"2.0\"`."
        )));
    };
    let rprof = profile.sources.iter().any(|s| s.kind == "rprof");
    let manual = profile.sources.iter().all(|s| s.kind == "manual");
    let origin = match (rprof, manual) {
        (true, _) => Some(c".rprof"),
        (false, true) => None,
        (false, false) => Some(c".msg"),
    };
    let mut names: Vec<&CStr> = [
        c"meta",
        c"sample_types",
        c"samples",
        c"locations",
        c"functions",
    ]
    .into_iter()
    .chain(origin)
    .try_vec(COLUMNS)?;
    if !problems.is_empty() {
        names.try_push(c".problems", COLUMNS)?;
    }
    let tables = parent.list(slot, &names)?;
    put_meta(tables, 0, "1.0")?;
    let mut types = Tibble::new(tables, 1, &[c"type", c"unit"], 1)?;
    types.strings([Some("samples")])?;
    types.strings([Some("count")])?;
    types.finish()?;
    put_samples(tables, 2, profile, counts)?;
    start_locations(tables, 3, profile, &[])?.finish()?;
    start_functions(tables, 4, profile, &[])?.finish()?;
    if !problems.is_empty() {
        put_problems(tables, names.len() - 1, problems, None)?;
    }
    if rprof {
        put_rprof(tables, 5, profile)
    } else if manual {
        Ok(())
    } else {
        let message = tables.list(5, &[c"comment"])?;
        let comments = profile
            .sources
            .iter()
            .flat_map(|s| s.comments.iter().map(|&c| profile.strings.get(c)))
            .try_vec("comments")?;
        let rows = (0..comments.len() as i32).try_vec("comments")?;
        message.strings(0, &comments, &rows)
    }
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

fn put_samples(parent: Slots, slot: usize, profile: &Profile, counts: &[f64]) -> Result<()> {
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
    let mut samples = Tibble::new(parent, slot, &[c"value", c"locations"], value.len())?;
    samples.integers(value)?;
    samples.stacks(&frames, &ends, &stack_of)?;
    samples.finish()
}

/// `.rprof`: the header and the `#File` lines, as text.
fn put_rprof(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let rprof = parent.list(slot, &[c"header", c"files"])?;
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
    for (slot, texts) in [(0, &headers), (1, &files)] {
        let texts = texts.iter().map(String::as_str).try_vec(LINES)?;
        let rows = (0..texts.len() as i32).try_vec(LINES)?;
        rprof.strings(slot, &texts, &rows)?;
    }
    Ok(())
}
