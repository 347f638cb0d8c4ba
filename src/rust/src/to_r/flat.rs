//! Converts the flat rows of a data set to tibbles.

use crate::arena::{Arena, RObject};
use crate::tibble::Tibble;
use profile_core::analysis::flat::{Flat, Sum, number_of, value_of};
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::model::Profile;

/// `list(samples, frames, labels)`, with the columns of the tables of a data set, except for `day`.
pub fn flat<'call>(arena: Arena<'call>, profile: &Profile, flat: &Flat) -> Result<RObject<'call>> {
    arena.list(&[
        ("samples", samples(arena, profile, flat)?),
        ("frames", frames(arena, flat)?),
        ("labels", labels(arena, profile, flat)?),
    ])
}

fn samples<'call>(arena: Arena<'call>, profile: &Profile, flat: &Flat) -> Result<RObject<'call>> {
    let sums = &flat.sums;
    let mut table = Tibble::new(arena, sums.len())?;
    let mut texts = |name, distinct: &[Option<&str>], index: &dyn Fn(&Sum) -> Option<usize>| {
        let (known, rows) = without_absent(distinct)?;
        let row = |sum| index(sum).map_or(-1, |index| rows[index]);
        let rows = sums.iter().map(row).try_vec()?;
        table.indexed_texts(name, &known, &rows)
    };
    let origin = |sum: &Sum| Some(sum.group.origin as usize);
    let origins = || flat.origins.iter();
    texts(
        "service",
        &origins().map(|o| Some(o.service)).try_vec()?,
        &origin,
    )?;
    texts("version", &origins().map(|o| o.version).try_vec()?, &origin)?;
    texts("host", &origins().map(|o| o.host).try_vec()?, &origin)?;
    let types = || flat.types.iter();
    let type_ = |sum: &Sum| Some(sum.type_);
    texts(
        "sample_type",
        &types().map(|t| Some(t.0)).try_vec()?,
        &type_,
    )?;
    texts("unit", &types().map(|t| Some(t.1)).try_vec()?, &type_)?;
    texts(
        "stack_key",
        &flat.stack_keys.iter().map(Some).try_vec()?,
        &|sum| Some(sum.group.stack as usize),
    )?;
    texts(
        "label_key",
        &flat.label_keys.iter().map(Some).try_vec()?,
        &|sum| sum.group.labels.map(|set| set as usize),
    )?;
    let traces = sums.iter().map(|sum| sum.group.trace);
    table.texts(
        "trace_id",
        traces.map(|trace| Some(profile.strings.get(trace?))),
    )?;
    let minutes = sums.iter().map(|sum| sum.group.minute);
    table.doubles(
        "minute",
        minutes.map(|m| m.map_or(f64::NAN, |m| m as f64 * 60.0)),
    )?;
    table.doubles("value", sums.iter().map(|sum| sum.value))?;
    table.doubles(
        "sample_count",
        sums.iter().map(|sum| f64::from(sum.samples)),
    )?;
    table.finish()
}

fn frames<'call>(arena: Arena<'call>, flat: &Flat) -> Result<RObject<'call>> {
    let rows = || flat.frames.iter();
    let mut table = Tibble::new(arena, flat.frames.len())?;
    table.texts(
        "service",
        rows().map(|f| Some(flat.origins[f.origin as usize].service)),
    )?;
    let stacks = rows().map(|f| f.stack as i32).try_vec()?;
    table.indexed_texts("stack_key", &flat.stack_keys.iter().try_vec()?, &stacks)?;
    table.integers("depth", rows().map(|f| f.depth as i32))?;
    let texts = &flat.frame_texts;
    let mut column = |name, distinct: &[Option<&str>]| {
        let (known, numbers) = without_absent(distinct)?;
        let rows = rows().map(|f| numbers[f.location.row()]).try_vec()?;
        table.indexed_texts(name, &known, &rows)
    };
    let names = texts.names.iter().map(|name| Some(name.as_ref()));
    column("name", &names.try_vec()?)?;
    column("file", &texts.files)?;
    column("package", &texts.packages)?;
    column("frame_type", &texts.types)?;
    table.integers("line", rows().map(|f| texts.lines[f.location.row()]))?;
    table.finish()
}

fn labels<'call>(arena: Arena<'call>, profile: &Profile, flat: &Flat) -> Result<RObject<'call>> {
    let rows = || flat.labels.iter();
    let mut table = Tibble::new(arena, flat.labels.len())?;
    table.texts(
        "service",
        rows().map(|(o, ..)| Some(flat.origins[*o as usize].service)),
    )?;
    table.texts(
        "label_key",
        rows().map(|(_, set, _)| Some(flat.label_keys.get(*set))),
    )?;
    let text = |id| profile.strings.get(id);
    table.texts("label", rows().map(|(.., label)| Some(text(label.key))))?;
    let values = rows()
        .map(|(.., label)| value_of(profile, label))
        .try_vec_of()?;
    table.texts("value", values.iter().map(|value| Some(value.as_ref())))?;
    table.doubles("number", rows().map(|(.., label)| number_of(label)))?;
    table.texts("unit", rows().map(|(.., label)| label.unit.map(text)))?;
    table.finish()
}

/// The texts that exist, and the index of each, -1 for absent ones.
fn without_absent<'t>(texts: &[Option<&'t str>]) -> Result<(Vec<&'t str>, Vec<i32>)> {
    let known = texts.iter().copied().flatten();
    let mut next = 0;
    let rows = texts.iter().map(|text| {
        let row = if text.is_some() { next } else { -1 };
        next += i32::from(text.is_some());
        row
    });
    Ok((known.try_vec()?, rows.try_vec()?))
}
