//! Converts the result of `summary()` to R objects: tables of self and total values.

use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::analysis::summary::{Figures, SelfTotal, Summary};
use profile_core::analysis::threads::Threads;
use profile_core::analysis::types_with_values;
use profile_core::analysis::weights::Counted;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::Profile;

/// `list(by_function, by_line, type, unit, types, counted, whole, without_symbol, other_types,
/// alloc_type, exact_memory, time, used, threads, processors, at_least,
/// sum_at_least, since_previous)`. `types` contains all sample types; finding them in
/// R would mean searching millions of rows.
pub fn summary<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    summary: &Summary,
) -> Result<RObject<'call>> {
    let functions = &summary.functions;
    let mut table = Tibble::new(arena, functions.keys.len())?;
    table.texts("name", functions.keys.iter().copied())?;
    add_figures(&mut table, functions, summary)?;
    let by_function = table.finish()?;

    let lines = &summary.lines;
    let mut table = Tibble::new(arena, lines.keys.len())?;
    table.texts("filename", lines.keys.iter().map(|(file, _)| Some(*file)))?;
    table.integers("line", lines.keys.iter().map(|(_, line)| *line))?;
    add_figures(&mut table, lines, summary)?;
    let by_line = table.finish()?;

    let types = || profile.values.iter().map(|values| &values.type_);
    let mut table = Tibble::new(arena, profile.values.len())?;
    table.texts("type", types().map(|type_| Some(type_.name.as_str())))?;
    table.texts("unit", types().map(|type_| Some(type_.unit.as_str())))?;
    let types = table.finish()?;

    let time = summary.time.map(|time| arena.number(time));
    let used = summary.used.map(|used| arena.number(used));
    let processors = summary.threads.as_ref().and_then(|all| all.processors);
    let processors = processors.map(|count| arena.number(count));
    let (type_, unit) = summary.type_;
    arena.list(&[
        ("by_function", by_function),
        ("by_line", by_line),
        ("type", arena.text(type_)?),
        ("unit", arena.text(unit)?),
        ("types", types),
        ("counted", counted(arena, &summary.counted)?),
        ("whole", arena.number(summary.counted.whole.get())?),
        ("without_symbol", arena.number(summary.without_symbol)?),
        (
            "other_types",
            other_types(arena, profile, &summary.counted)?,
        ),
        (
            "alloc_type",
            match summary.alloc_type {
                Some(name) => arena.text(name)?,
                None => RObject::null(),
            },
        ),
        ("exact_memory", arena.flag(summary.has_exact_memory)?),
        ("time", time.unwrap_or(Ok(RObject::null()))?),
        ("used", used.unwrap_or(Ok(RObject::null()))?),
        ("threads", threads(arena, summary.threads.as_ref())?),
        ("processors", processors.unwrap_or(Ok(RObject::null()))?),
        (
            "at_least",
            arena.flag(summary.measured_memory.is_lower_bound)?,
        ),
        ("sum_at_least", arena.flag(summary.measured.is_lower_bound)?),
        (
            "since_previous",
            arena.flag(summary.measured.since_previous)?,
        ),
    ])
}

/// A row for R, one for each library, and one for threads that have ended, if there are any: `library`, `threads`, and `cpu`
/// in seconds.
fn threads<'call>(arena: Arena<'call>, threads: Option<&Threads>) -> Result<RObject<'call>> {
    let Some(all) = threads else {
        return Ok(RObject::null());
    };
    let mut rows = Vec::new();
    rows.try_push((Some("R"), NA, all.r))?;
    for one in &all.others {
        rows.try_push((Some(one.name.as_str()), one.count as i32, one.cpu))?;
    }
    if all.ended > 0.0 {
        rows.try_push((None, NA, all.ended))?;
    }
    let rows = rows.iter();
    let mut table = Tibble::new(arena, rows.len())?;
    table.texts("library", rows.clone().map(|row| row.0))?;
    table.integers("threads", rows.clone().map(|row| row.1))?;
    table.doubles("cpu", rows.map(|row| row.2 / 1e9))?;
    table.finish()
}

/// If all values of the summed type are 0: the names of the types that have other values.
pub fn other_types<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    counted: &Counted,
) -> Result<RObject<'call>> {
    if counted.samples == 0 || counted.whole.get() > 0.0 {
        return Ok(RObject::null());
    }
    arena.texts(&types_with_values(profile)?)
}

pub fn counted<'call>(arena: Arena<'call>, counted: &Counted) -> Result<RObject<'call>> {
    let number = |value| arena.number(value);
    arena.list(&[
        ("samples", number(counted.samples as f64)?),
        ("sum", number(counted.sum)?),
        ("without_stack", number(counted.without_stack as f64)?),
        ("sum_without_stack", number(counted.sum_without_stack)?),
        ("without_value", number(counted.without_value as f64)?),
    ])
}

fn add_figures<Key>(table: &mut Tibble, figures: &Figures<Key>, summary: &Summary) -> Result<()> {
    // If the whole is 0, shares are 0.
    let whole = summary.counted.whole.get();
    let share = |value: &f64| if whole > 0.0 { value / whole } else { 0.0 };
    let SelfTotal { self_, total } = &figures.values;
    table.doubles("self", self_.iter().copied())?;
    table.doubles("total", total.iter().copied())?;
    table.doubles("self_share", self_.iter().map(share))?;
    table.doubles("total_share", total.iter().map(share))?;
    if let Some(SelfTotal { self_, total }) = &figures.time {
        table.doubles("self_time", self_.iter().copied())?;
        table.doubles("total_time", total.iter().copied())?;
    }
    if let Some(SelfTotal { self_, total }) = &figures.allocated {
        table.doubles("self_alloc", self_.iter().copied())?;
        table.doubles("total_alloc", total.iter().copied())?;
    }
    Ok(())
}
