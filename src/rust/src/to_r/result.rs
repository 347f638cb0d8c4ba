//! Converts a profile that was read or computed, problems found while reading, and information that
//! could not be written.

use super::tables::Tables;
use super::v1;
use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::error::Result;
use profile_core::formats::Losses;
use profile_core::formats::problems::Problems;
use profile_core::limits::cancel::Stop;
use profile_core::model::Profile;
use profile_core::schema::{PROBLEMS, TABLES, Version};

/// `list(tables, counts)`: the tables of a version, and how often each kind of problem occurred.
pub fn result<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    problems: &Problems,
    version: &str,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    let tables = tables(arena, profile, problems, version, lazy, stop)?;
    let counts = counts(arena, problems)?;
    arena.list(&[("tables", tables), ("counts", counts)])
}

/// The tables of a version. Optional tables are omitted if they have no rows. `lazy`: whether
/// columns of samples are computed when their values are needed.
pub fn tables<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    problems: &Problems,
    version: &str,
    lazy: bool,
    stop: Stop,
) -> Result<RObject<'call>> {
    if version == "1.0" {
        return v1::tables(arena, profile, problems, stop);
    }
    let mut tables = Tables::new(arena, lazy);
    for table in TABLES {
        table.write(profile, Version::Two, &mut tables, stop)?;
    }
    let source = (!profile.sources.is_empty()).then_some(0);
    let problems = problems.rows(Some(source))?;
    PROBLEMS.write_rows(profile, &problems, Version::Two, &mut tables)?;
    tables.finish()
}

/// How often each kind of problem was found.
pub fn counts<'call>(arena: Arena<'call>, problems: &Problems) -> Result<RObject<'call>> {
    let counts = problems.counts();
    let mut table = Tibble::new(arena, counts.len())?;
    table.texts("problem", counts.iter().map(|(kind, _)| Some(kind.key())))?;
    table.doubles("count", counts.iter().map(|(_, count)| *count as f64))?;
    table.logicals("lost", counts.iter().map(|(kind, _)| Some(kind.lost())))?;
    let descriptions = counts.iter().map(|(kind, _)| Some(kind.describe()));
    table.texts("description", descriptions)?;
    table.finish()
}

/// The information that a writer could not store: a row for each kind.
pub fn losses<'call>(arena: Arena<'call>, losses: &Losses) -> Result<RObject<'call>> {
    let mut table = Tibble::new(arena, losses.iter().count())?;
    table.texts("loss", losses.iter().map(|(kind, _)| Some(kind.key())))?;
    table.doubles("count", losses.iter().map(|(_, count)| count as f64))?;
    let descriptions = losses.iter().map(|(kind, _)| Some(kind.describe()));
    table.texts("description", descriptions)?;
    table.finish()
}
