//! Converts the figures of runs to R objects.

use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::analysis::recorded::Recorded;
use profile_core::analysis::runs::Runs;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryText};
use profile_core::model::ValueType;
use profile_core::model::known_types::clock_of;

/// `list(groups, figures, runs, type, unit)`: tibbles with a row for each group, each group of
/// a run, and each run. `group` and `run` are row numbers. `types` lists the types of which a run has values, `name` is
/// the one that is summed, `clock` which time it is, `memory` says whether all types are memory, and
/// `recorded` how allocations were recorded, if they are summed.
pub fn runs<'call>(arena: Arena<'call>, runs: &Runs) -> Result<RObject<'call>> {
    let groups = || runs.groups.iter();
    let mut named = Tibble::new(arena, runs.groups.len())?;
    named.texts("name", groups().map(|group| group.name))?;
    named.texts("filename", groups().map(|group| group.filename))?;
    named.integers("line", groups().map(|group| group.line.unwrap_or(NA)))?;
    named.texts("package", groups().map(|group| group.package))?;
    let rows = || runs.figures.iter();
    let mut figures = Tibble::new(arena, runs.figures.len())?;
    // Rows are counted from 1 in R, and there are less than 2^31 of them.
    figures.integers("group", rows().map(|row| row.group as i32 + 1))?;
    figures.integers("run", rows().map(|row| row.run.row() as i32 + 1))?;
    figures.doubles("self", rows().map(|row| row.self_))?;
    figures.doubles("total", rows().map(|row| row.total))?;
    let all = || runs.counted.iter();
    let mut sums = Tibble::new(arena, runs.counted.len())?;
    sums.doubles("samples", all().map(|counted| counted.samples as f64))?;
    sums.doubles("sum", all().map(|counted| counted.sum))?;
    let periods = runs.periods.iter();
    sums.doubles("period", periods.map(|period| period.unwrap_or(f64::NAN)))?;
    let types = runs.types.iter().map(|types| listed(types)).try_vec_of()?;
    sums.texts("types", types.iter().map(|text| Some(text.as_str())))?;
    sums.texts("name", runs.names.iter().copied())?;
    let clocks = runs.names.iter().map(|name| name.and_then(clock_of));
    sums.texts("clock", clocks)?;
    let is_memory = |types: &Vec<&ValueType>| types.iter().all(|type_| type_.is_memory());
    sums.logicals(
        "memory",
        runs.types.iter().map(|types| Some(is_memory(types))),
    )?;
    let recorded = runs.recorded.iter().map(|recorded| match recorded {
        Recorded::Exact => Some("exact"),
        Recorded::Sampled => Some("sampled"),
        Recorded::Unknown => None,
    });
    sums.texts("recorded", recorded)?;
    let (type_, unit) = runs.type_;
    arena.list(&[
        ("groups", named.finish()?),
        ("figures", figures.finish()?),
        ("runs", sums.finish()?),
        ("type", arena.text(type_)?),
        ("unit", arena.text(unit)?),
    ])
}

/// Such as "`cpu` (nanoseconds), `samples` (count)".
fn listed(types: &[&ValueType]) -> Result<String> {
    let mut text = String::new();
    for ValueType { name, unit } in types {
        let comma = if text.is_empty() { "" } else { ", " };
        text.try_write(format_args!("{comma}`{name}` ({unit})"))?;
    }
    Ok(text)
}
