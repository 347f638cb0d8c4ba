//! Gives a profile to R: from the model to the tables of each version.

mod beside;
mod flat;
mod origins;
mod schema;
mod summary;
mod v1;
mod v2;

pub use flat::flat;
pub use schema::schema;
pub use summary::summary;

use crate::arena::{Arena, Value};
use crate::tibble::{NA, NA_REAL, Tibble};
use profile_core::error::{Place, Result};
use profile_core::formats::Losses;
use profile_core::formats::problems::{Problem, Problems};
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::{TryCollect, TryGrow, owned, written};
use profile_core::model::{Profile, StringId, integer_for_r};

const PROBLEMS: &str = "the problems of the input";

/// `list(tables, counts)`, the second of problems; it is empty for a regular file.
pub fn result<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    problems: &Problems,
    version: &str,
    stop: Stop,
) -> Result<Value<'call>> {
    let tables = tables(arena, profile, problems, version, stop)?;
    let counts = counts(arena, problems)?;
    arena.list(&[("tables", tables), ("counts", counts)])
}

/// The tables of a version.
pub fn tables<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    problems: &Problems,
    version: &str,
    stop: Stop,
) -> Result<Value<'call>> {
    if version == "1.0" {
        v1::tables(arena, profile, problems)
    } else {
        v2::tables(arena, profile, problems, stop)
    }
}

/// A list of tables in the making.
struct Tables<'call> {
    arena: Arena<'call>,
    tables: Vec<(&'static str, Value<'call>)>,
}

impl<'call> Tables<'call> {
    fn new(arena: Arena<'call>) -> Tables<'call> {
        Tables {
            arena,
            tables: Vec::new(),
        }
    }

    fn add(&mut self, name: &'static str, table: Value<'call>) -> Result<()> {
        self.tables.try_push((name, table), "a list of tables")
    }

    fn finish(self) -> Result<Value<'call>> {
        self.arena.list(&self.tables)
    }
}

fn meta<'call>(arena: Arena<'call>, version: &str) -> Result<Value<'call>> {
    let mut table = Tibble::new(arena, 1)?;
    table.strings("key", [Some("version")])?;
    table.strings("value", [Some(version)])?;
    table.finish()
}

fn ids(count: usize) -> impl Iterator<Item = i32> {
    (1..).take(count)
}

/// The columns of `locations` that both versions have.
fn locations<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Tibble<'call>> {
    let all = || profile.locations.iter();
    let mut table = Tibble::new(arena, all().len())?;
    table.integers("location_id", ids(all().len()))?;
    let function = all().map(|l| l.function.map_or(NA, |f| f.row() as i32 + 1));
    table.integers("function_id", function)?;
    table.integers("line", all().map(|l| l.line.map_or(NA, integer_for_r)))?;
    Ok(table)
}

/// The columns of `functions` that both versions have.
fn functions<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Tibble<'call>> {
    let all = || profile.functions.iter();
    let text = |id: StringId| Some(profile.strings.get(id));
    let mut table = Tibble::new(arena, all().len())?;
    table.integers("function_id", ids(all().len()))?;
    table.strings("name", all().map(|f| text(f.name)))?;
    table.strings("system_name", all().map(|f| text(f.system_name)))?;
    table.strings("filename", all().map(|f| text(f.filename)))?;
    table.integers("start_line", all().map(|f| integer_for_r(f.start_line)))?;
    Ok(table)
}

fn counts<'call>(arena: Arena<'call>, problems: &Problems) -> Result<Value<'call>> {
    let counts = problems.counts();
    let mut table = Tibble::new(arena, counts.len())?;
    table.strings("problem", counts.iter().map(|(kind, _)| Some(kind.key())))?;
    table.doubles("count", counts.iter().map(|(_, count)| *count as f64))?;
    table.logicals("lost", counts.iter().map(|(kind, _)| Some(kind.lost())))?;
    let descriptions = counts.iter().map(|(kind, _)| Some(kind.describe()));
    table.strings("description", descriptions)?;
    table.finish()
}

/// What a writer could not store, with a row for each kind.
pub fn losses<'call>(arena: Arena<'call>, losses: &Losses) -> Result<Value<'call>> {
    let mut table = Tibble::new(arena, losses.iter().count())?;
    table.strings("loss", losses.iter().map(|(kind, _)| Some(kind.key())))?;
    table.doubles("count", losses.iter().map(|(_, count)| count as f64))?;
    let descriptions = losses.iter().map(|(kind, _)| Some(kind.describe()));
    table.strings("description", descriptions)?;
    table.finish()
}

/// `source` is the id of the first source of the input; version "1.0" has none.
fn problems<'call>(
    arena: Arena<'call>,
    problems: &Problems,
    source: Option<i32>,
) -> Result<Value<'call>> {
    let kept = problems.kept();
    let mut table = Tibble::new(arena, kept.len())?;
    if let Some(source) = source {
        table.integers("source_id", kept.iter().map(|_| source))?;
    }
    let line = |p: &Problem| match p.place {
        Place::Line(n) => n as f64,
        Place::Byte(_) | Place::Sample(_) | Place::Field(_) => NA_REAL,
    };
    table.doubles("line", kept.iter().map(line))?;
    let byte = |p: &Problem| match p.place {
        Place::Byte(n) => n as f64,
        Place::Line(_) | Place::Sample(_) | Place::Field(_) => NA_REAL,
    };
    table.doubles("byte", kept.iter().map(byte))?;
    table.strings("problem", kept.iter().map(|p| Some(p.kind.key())))?;
    table.logicals("lost", kept.iter().map(|p| Some(p.kind.lost())))?;
    table.strings("description", kept.iter().map(|p| Some(p.kind.describe())))?;
    // A field of JSON has neither line nor byte.
    let text = |p: &Problem| match &p.place {
        Place::Field(path) if p.text.is_empty() => owned(path, PROBLEMS),
        Place::Field(path) => written(format_args!("{path}: {}", p.text), PROBLEMS),
        _ => owned(&p.text, PROBLEMS),
    };
    let texts = kept.iter().map(text).try_vec_of(PROBLEMS)?;
    table.strings("text", texts.iter().map(|text| Some(text.as_str())))?;
    table.finish()
}
