//! Gives a profile to R: from the model to the tables of each version.

mod beside;
mod flat;
mod origins;
mod schema;
mod summary;
mod v1;
mod v2;

pub use flat::put_flat;
pub use schema::put_schema;
pub use summary::put_summaries;

use crate::columns::{NA, NA_REAL, Tibble};
use crate::slots::Slots;
use profile_core::error::{Place, Result};
use profile_core::formats::problems::{Problem, Problems};
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::{TryCollect, TryGrow, owned, written};
use profile_core::model::{Profile, StringId, integer_for_r};
use std::ffi::CStr;

const PROBLEMS: &str = "the problems of the input";
/// What is made of names of columns, for errors.
const COLUMNS: &str = "the columns of a table";

/// `list(tables, problem_counts)`; the second is empty for a regular file.
pub fn put_result(
    pair: Slots,
    slot: usize,
    profile: &Profile,
    problems: &Problems,
    version: &str,
    stop: Stop,
) -> Result<()> {
    let both = pair.list(slot, &[c"tables", c"counts"])?;
    put_tables(both, 0, profile, problems, version, stop)?;
    put_counts(both, 1, problems)
}

/// The tables of a version.
pub fn put_tables(
    parent: Slots,
    slot: usize,
    profile: &Profile,
    problems: &Problems,
    version: &str,
    stop: Stop,
) -> Result<()> {
    if version == "1.0" {
        v1::put(parent, slot, profile, problems)
    } else {
        v2::put(parent, slot, profile, problems, stop)
    }
}

fn put_meta(parent: Slots, slot: usize, version: &str) -> Result<()> {
    let mut table = Tibble::new(parent, slot, &[c"key", c"value"], 1)?;
    table.strings([Some("version")])?;
    table.strings([Some(version)])?;
    table.finish()
}

fn ids(count: usize) -> impl Iterator<Item = i32> {
    (1..).take(count)
}

/// The columns of `locations` that both versions have, in a tibble for more.
fn start_locations<'call>(
    parent: Slots<'call>,
    slot: usize,
    profile: &Profile,
    further: &[&'static CStr],
) -> Result<Tibble<'call>> {
    let mut names = [c"location_id", c"function_id", c"line"]
        .into_iter()
        .try_vec(COLUMNS)?;
    names.try_extend(further, COLUMNS)?;
    let all = || profile.locations.iter();
    let mut table = Tibble::new(parent, slot, &names, all().len())?;
    table.integers(ids(all().len()))?;
    table.integers(all().map(|l| l.function.map_or(NA, |f| f.row() as i32 + 1)))?;
    table.integers(all().map(|l| l.line.map_or(NA, integer_for_r)))?;
    Ok(table)
}

/// The columns of `functions` that both versions have, in a tibble for more.
fn start_functions<'call>(
    parent: Slots<'call>,
    slot: usize,
    profile: &Profile,
    further: &[&'static CStr],
) -> Result<Tibble<'call>> {
    let mut names = [
        c"function_id",
        c"name",
        c"system_name",
        c"filename",
        c"start_line",
    ]
    .into_iter()
    .try_vec(COLUMNS)?;
    names.try_extend(further, COLUMNS)?;
    let all = || profile.functions.iter();
    let text = |id: StringId| Some(profile.strings.get(id));
    let mut table = Tibble::new(parent, slot, &names, all().len())?;
    table.integers(ids(all().len()))?;
    table.strings(all().map(|f| text(f.name)))?;
    table.strings(all().map(|f| text(f.system_name)))?;
    table.strings(all().map(|f| text(f.filename)))?;
    table.integers(all().map(|f| integer_for_r(f.start_line)))?;
    Ok(table)
}

fn put_counts(parent: Slots, slot: usize, problems: &Problems) -> Result<()> {
    let counts = problems.counts();
    let names = [c"problem", c"count", c"lost", c"description"];
    let mut table = Tibble::new(parent, slot, &names, counts.len())?;
    table.strings(counts.iter().map(|(kind, _)| Some(kind.key())))?;
    table.doubles(counts.iter().map(|(_, count)| *count as f64))?;
    table.logicals(counts.iter().map(|(kind, _)| Some(kind.lost())))?;
    table.strings(counts.iter().map(|(kind, _)| Some(kind.describe())))?;
    table.finish()
}

/// `source` is the id of the first source of the input; version "1.0" has none.
pub(super) fn put_problems(
    parent: Slots,
    slot: usize,
    problems: &Problems,
    source: Option<i32>,
) -> Result<()> {
    let names = [
        c"source_id",
        c"line",
        c"byte",
        c"problem",
        c"lost",
        c"description",
        c"text",
    ];
    let kept = problems.kept();
    let names = &names[usize::from(source.is_none())..];
    let mut table = Tibble::new(parent, slot, names, kept.len())?;
    if let Some(source) = source {
        table.integers(kept.iter().map(|_| source))?;
    }
    table.doubles(kept.iter().map(|p| match p.place {
        Place::Line(n) => n as f64,
        Place::Byte(_) | Place::Sample(_) | Place::Field(_) => NA_REAL,
    }))?;
    table.doubles(kept.iter().map(|p| match p.place {
        Place::Byte(n) => n as f64,
        Place::Line(_) | Place::Sample(_) | Place::Field(_) => NA_REAL,
    }))?;
    table.strings(kept.iter().map(|p| Some(p.kind.key())))?;
    table.logicals(kept.iter().map(|p| Some(p.kind.lost())))?;
    table.strings(kept.iter().map(|p| Some(p.kind.describe())))?;
    // A field of JSON has neither line nor byte.
    let text = |p: &Problem| match &p.place {
        Place::Field(path) if p.text.is_empty() => owned(path, PROBLEMS),
        Place::Field(path) => written(format_args!("{path}: {}", p.text), PROBLEMS),
        _ => owned(&p.text, PROBLEMS),
    };
    let texts = kept.iter().map(text).try_vec_of(PROBLEMS)?;
    table.strings(texts.iter().map(|text| Some(text.as_str())))?;
    table.finish()
}
