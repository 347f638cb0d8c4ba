//! Converts the flat rows of a data set to tibbles. Texts are factors, since they repeat and other software converts
//! factors several times faster than character vectors.

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
    let rows = || flat.sums.iter();
    let mut table = Tibble::new(arena, flat.sums.len())?;
    let origins = || flat.origins.iter();
    let services = origins().map(|o| Some(o.service)).try_vec()?;
    let versions = origins().map(|o| o.version).try_vec()?;
    let hosts = origins().map(|o| o.host).try_vec()?;
    let origin_of_row = || rows().map(|sum| Some(sum.group.origin as usize));
    table.factor("service", &services, origin_of_row())?;
    table.factor("version", &versions, origin_of_row())?;
    table.factor("host", &hosts, origin_of_row())?;
    let runs = origins().map(|o| Some(flat.runs.get(o.run))).try_vec()?;
    table.factor("run", &runs, origin_of_row())?;
    let starts = rows().map(|sum| flat.origins[sum.group.origin as usize].start);
    table.doubles(
        "run_start",
        starts.map(|s| s.map_or(f64::NAN, |s| s as f64)),
    )?;
    let types = flat.types.iter().map(|t| Some(t.0)).try_vec()?;
    let units = flat.types.iter().map(|t| Some(t.1)).try_vec()?;
    table.factor("sample_type", &types, rows().map(|sum| Some(sum.type_)))?;
    table.factor("unit", &units, rows().map(|sum| Some(sum.type_)))?;
    let origin_of = |sum: &Sum| flat.origins[sum.group.origin as usize];
    let periods = rows().map(|sum| origin_of(sum).period);
    table.doubles(
        "sampling_period",
        periods.map(|p| p.map_or(f64::NAN, |(period, _)| period as f64)),
    )?;
    let sampled = || origins().map(|o| o.period.and_then(|(_, type_)| type_));
    let names = sampled().map(|t| t.map(|(name, _)| name)).try_vec()?;
    table.factor("sampling_type", &names, origin_of_row())?;
    let units = sampled().map(|t| t.map(|(_, unit)| unit)).try_vec()?;
    table.factor("sampling_unit", &units, origin_of_row())?;
    let defaults = rows().map(|sum| origin_of(sum).default_type);
    table.factor("default_type", &types, defaults)?;
    let stacks = rows().map(|sum| Some(sum.group.stack as usize));
    table.factor(
        "stack_key",
        &flat.stack_keys.iter().map(Some).try_vec()?,
        stacks,
    )?;
    let sets = rows().map(|sum| sum.group.labels.map(|set| set as usize));
    table.factor(
        "label_key",
        &flat.label_keys.iter().map(Some).try_vec()?,
        sets,
    )?;
    let traces = rows().map(|sum| Some(profile.strings.get(sum.group.trace?)));
    table.texts("trace_id", traces)?;
    let minutes = rows().map(|sum| sum.group.minute);
    table.doubles(
        "minute",
        minutes.map(|m| m.map_or(f64::NAN, |m| m as f64 * 60.0)),
    )?;
    table.doubles("value", rows().map(|sum| sum.value))?;
    table.doubles("sample_count", rows().map(|sum| f64::from(sum.samples)))?;
    table.finish()
}

fn frames<'call>(arena: Arena<'call>, flat: &Flat) -> Result<RObject<'call>> {
    let rows = || flat.frames.iter();
    let mut table = Tibble::new(arena, flat.frames.len())?;
    let origins = flat.origins.iter();
    let services = origins.map(|origin| Some(origin.service)).try_vec()?;
    table.factor(
        "service",
        &services,
        rows().map(|f| Some(f.origin as usize)),
    )?;
    table.factor(
        "stack_key",
        &flat.stack_keys.iter().map(Some).try_vec()?,
        rows().map(|f| Some(f.stack as usize)),
    )?;
    table.integers("depth", rows().map(|f| f.depth as i32))?;
    let texts = &flat.frame_texts;
    let names = texts.names.iter().map(|name| Some(name.as_ref()));
    let locations = || rows().map(|f| Some(f.location.row()));
    let keys = flat.frame_keys.iter().map(|key| Some(key.as_str()));
    table.factor("frame_key", &keys.try_vec()?, locations())?;
    table.factor("name", &names.try_vec()?, locations())?;
    table.factor("file", &texts.files, locations())?;
    table.factor("package", &texts.packages, locations())?;
    table.factor("frame_type", &texts.types, locations())?;
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
