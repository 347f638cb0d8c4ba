//! Self and total by function and by line, for `summary()` and `print()`.

use crate::columns::Tibble;
use crate::r::Slots;
use profile_core::cancel::Stop;
use profile_core::error::{Error, Result};
use profile_core::model::{Profile, Values};
use profile_core::summary::{self, Summary, Weight};
use std::ffi::CStr;

/// `list(type, unit, sum, by_function, by_line, time, types)`. The tables hold self and total
/// of the wanted type, of time where it can be told, and of the bytes allocated
/// where they were recorded.
pub fn put_summaries(
    parent: Slots,
    slot: usize,
    profile: &Profile,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<()> {
    let values = choose(profile, wanted)?;
    let mut weights = vec![Weight::Column(values.map_or(&[], |v| &v.column))];
    let mut columns: Vec<&CStr> = vec![c"self", c"total"];
    let time = Weight::time(profile);
    let nanoseconds = time.as_ref().map(|t| summary::sum_with_frames(profile, t));
    if let Some(time) = time {
        weights.push(time);
        columns.extend([c"self_time", c"total_time"]);
    }
    if let Some(bytes) = profile.value("alloc_size", "bytes") {
        weights.push(Weight::Column(&bytes.column));
        columns.extend([c"self_alloc", c"total_alloc"]);
    }
    let names = [
        c"type",
        c"unit",
        c"sum",
        c"by_function",
        c"by_line",
        c"time",
        c"types",
    ];
    let out = parent.list(slot, &names)?;
    let type_ = values.map(|v| &v.type_);
    out.strings(0, &[type_.map_or("samples", |t| &t.name)], &[0])?;
    out.strings(1, &[type_.map_or("count", |t| &t.unit)], &[0])?;
    out.doubles(2, 1)?[0] = summary::sum_with_frames(profile, &weights[0]);

    put_types(out, 6, profile)?;
    if let Some(nanoseconds) = nanoseconds {
        out.doubles(5, 1)?[0] = nanoseconds;
    }

    let functions = summary::by_function(profile, &weights, stop)?;
    let order = order(&functions, |key| {
        (key.map_or("", |id| profile.strings.get(id)).to_owned(), 0)
    });
    let mut header: Vec<&CStr> = vec![c"name"];
    header.extend(&columns);
    let mut table = Tibble::new(out, 3, &header, order.len())?;
    let name = |row: &usize| functions.keys[*row].map(|id| profile.strings.get(id));
    table.strings(order.iter().map(name))?;
    put_weights(&mut table, &functions, &order)?;
    table.finish()?;

    let lines = summary::by_line(profile, &weights, stop)?;
    let order = self::order(&lines, |(file, line)| {
        (profile.strings.get(file).to_owned(), line)
    });
    let mut header: Vec<&CStr> = vec![c"filename", c"line"];
    header.extend(&columns);
    let mut table = Tibble::new(out, 4, &header, order.len())?;
    let file = |row: &usize| Some(profile.strings.get(lines.keys[*row].0));
    table.strings(order.iter().map(file))?;
    table.integers(order.iter().map(|row| lines.keys[*row].1))?;
    put_weights(&mut table, &lines, &order)?;
    table.finish()
}

/// All sample types, which R would have to look for in millions of rows.
fn put_types(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let types = || profile.values.iter().map(|v| &v.type_);
    let mut table = Tibble::new(parent, slot, &[c"type", c"unit"], profile.values.len())?;
    table.strings(types().map(|t| Some(t.name.as_str())))?;
    table.strings(types().map(|t| Some(t.unit.as_str())))?;
    table.finish()
}

/// The sample type to sum: the one asked for, else the one that counts samples,
/// else a viewer's default, else the last, as pprof has it.
fn choose<'p>(profile: &'p Profile, wanted: Option<&str>) -> Result<Option<&'p Values>> {
    let named = |name: &str| profile.values.iter().find(|v| v.type_.name == name);
    match wanted {
        Some(name) => match named(name) {
            Some(values) => Ok(Some(values)),
            None => Err(Error::Unsupported(format!(
                "There is no sample type `{name}`; there is {}.",
                profile
                    .values
                    .iter()
                    .map(|v| format!("`{}`", v.type_.name))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
        },
        None => Ok(profile
            .counts()
            .or_else(|| {
                let default = profile
                    .sources
                    .iter()
                    .find_map(|s| s.default_type.as_deref());
                default.and_then(named)
            })
            .or(profile.values.last())),
    }
}

/// Rows that have a value, greatest self first, then greatest total, then by
/// key, so that the order never hangs on the order in the file.
fn order<Key: Copy, Sort: Ord>(summary: &Summary<Key>, sort: impl Fn(Key) -> Sort) -> Vec<usize> {
    let (self_, total) = (&summary.self_[0], &summary.total[0]);
    let mut rows: Vec<usize> = (0..summary.keys.len())
        .filter(|&row| summary.total.iter().any(|t| t[row] != 0.0))
        .collect();
    rows.sort_by_cached_key(|&row| sort(summary.keys[row]));
    rows.sort_by(|&a, &b| {
        let by_self = self_[b].total_cmp(&self_[a]);
        by_self.then(total[b].total_cmp(&total[a]))
    });
    rows
}

fn put_weights<Key>(table: &mut Tibble, summary: &Summary<Key>, order: &[usize]) -> Result<()> {
    for (self_, total) in summary.self_.iter().zip(&summary.total) {
        table.doubles(order.iter().map(|&row| self_[row]))?;
        table.doubles(order.iter().map(|&row| total[row]))?;
    }
    Ok(())
}
