//! Converts the figures of runs to R objects.

use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::analysis::runs::Runs;
use profile_core::error::Result;

/// `list(groups, figures, runs, type, unit)`: tibbles with a row for each group, each group of
/// a run, and each run. `group` and `run` are row numbers.
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
    let (type_, unit) = runs.type_;
    arena.list(&[
        ("groups", named.finish()?),
        ("figures", figures.finish()?),
        ("runs", sums.finish()?),
        ("type", arena.text(type_)?),
        ("unit", arena.text(unit)?),
    ])
}
