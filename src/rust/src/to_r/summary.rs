//! Self and total by function and by line, for `summary()` and `print()`.

use super::COLUMNS;
use crate::columns::Tibble;
use crate::slots::Slots;
use profile_core::analysis::summary::{self, Counted, Summary, Weight};
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::message;
use profile_core::model::{Profile, Values, is_summable};
use std::ffi::CStr;

/// `list(type, unit, counted, by_function, by_line, time, types)`. The tables hold self and
/// total of the wanted type, of time where it can be told, and of the bytes allocated
/// where they were recorded; `counted` has the numbers of [`Counted`] in their order.
pub fn put_summaries(
    parent: Slots,
    slot: usize,
    profile: &Profile,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<()> {
    let values = choose(profile, wanted)?;
    let first = values.map_or(Weight::Nothing, |v| Weight::Column(&v.column));
    let mut weights = [first].into_iter().try_vec(COLUMNS)?;
    let mut columns: Vec<&CStr> = [c"self", c"total"].into_iter().try_vec(COLUMNS)?;
    let time = Weight::time(profile)?;
    let nanoseconds = time.as_ref().map(|t| Counted::of(profile, t).sum);
    if let Some(time) = time {
        weights.try_push(time, COLUMNS)?;
        columns.try_extend(&[c"self_time", c"total_time"], COLUMNS)?;
    }
    if let Some(bytes) = profile.value("alloc_size", "bytes") {
        weights.try_push(Weight::Column(&bytes.column), COLUMNS)?;
        columns.try_extend(&[c"self_alloc", c"total_alloc"], COLUMNS)?;
    }
    let names = [
        c"type",
        c"unit",
        c"counted",
        c"by_function",
        c"by_line",
        c"time",
        c"types",
    ];
    let out = parent.list(slot, &names)?;
    let type_ = values.map(|v| &v.type_);
    out.strings(0, &[type_.map_or("samples", |t| &t.name)], &[0])?;
    out.strings(1, &[type_.map_or("count", |t| &t.unit)], &[0])?;
    let counted = Counted::of(profile, &weights[0]);
    out.doubles(2, 5)?.copy_from_slice(&[
        counted.samples as f64,
        counted.sum,
        counted.without_stack as f64,
        counted.sum_without_stack,
        counted.without_value as f64,
    ]);

    put_types(out, 6, profile)?;
    if let Some(nanoseconds) = nanoseconds {
        out.doubles(5, 1)?[0] = nanoseconds;
    }

    let functions = summary::by_function(profile, &weights, stop)?;
    let order = order(&functions, |key| {
        (key.map_or("", |id| profile.strings.get(id)), 0)
    })?;
    let mut header: Vec<&CStr> = [c"name"].into_iter().try_vec(COLUMNS)?;
    header.try_extend(&columns, COLUMNS)?;
    let mut table = Tibble::new(out, 3, &header, order.len())?;
    let name = |row: &usize| functions.keys[*row].map(|id| profile.strings.get(id));
    table.strings(order.iter().map(name))?;
    put_weights(&mut table, &functions, &order)?;
    table.finish()?;

    let lines = summary::by_line(profile, &weights, stop)?;
    let order = self::order(&lines, |(file, line)| (profile.strings.get(file), line))?;
    let mut header: Vec<&CStr> = [c"filename", c"line"].into_iter().try_vec(COLUMNS)?;
    header.try_extend(&columns, COLUMNS)?;
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
    if let Some(name) = wanted {
        return named(profile, name).map(Some);
    }
    let summable = || profile.values.iter().filter(|v| can_be_summed(v));
    let shown_first = profile
        .sources
        .iter()
        .find_map(|s| s.default_type.as_deref());
    let default = summable().find(|v| Some(v.type_.name.as_str()) == shown_first);
    Ok(profile
        .counts()
        .or(default)
        .or_else(|| summable().next_back()))
}

fn can_be_summed(values: &Values) -> bool {
    is_summable(&values.type_.name, &values.type_.unit)
}

fn named<'p>(profile: &'p Profile, name: &str) -> Result<&'p Values> {
    let values = profile.values.iter().find(|v| v.type_.name == name);
    let summable = profile.values.iter().filter(|v| can_be_summed(v));
    let others = match listed(summable) {
        none if none.is_empty() => message!("The profile has no type that can."),
        names => message!("Types that can: {names}."),
    };
    match values {
        Some(values) if can_be_summed(values) => Ok(values),
        Some(_) => Err(Error::Unsupported(message!(
            "`{name}` cannot be summed: it is the memory in use at each sample, not what was \
             allocated since the one before. {others}"
        ))),
        None => Err(Error::Unsupported(message!(
            "The profile has no sample type `{name}` that could be summed. {others}"
        ))),
    }
}

/// For a message: "`cpu`, `samples`".
fn listed<'p>(values: impl Iterator<Item = &'p Values>) -> String {
    values.fold(String::new(), |list, v| {
        let between = if list.is_empty() { "" } else { ", " };
        message!("{list}{between}`{}`", v.type_.name)
    })
}

/// Rows that have a value, greatest self first, then greatest total, then by
/// key, so that the order never hangs on the order in the file.
fn order<Key: Copy, Sort: Ord>(
    summary: &Summary<Key>,
    sort: impl Fn(Key) -> Sort,
) -> Result<Vec<usize>> {
    let (self_, total) = (&summary.self_[0], &summary.total[0]);
    let mut rows = (0..summary.keys.len())
        .filter(|&row| summary.total.iter().any(|t| t[row] != 0.0))
        .try_vec("a summary")?;
    let key = |row: usize| sort(summary.keys[row]);
    rows.sort_unstable_by(|&a, &b| {
        let by_self = self_[b].total_cmp(&self_[a]);
        let by_total = total[b].total_cmp(&total[a]);
        by_self.then(by_total).then_with(|| key(a).cmp(&key(b)))
    });
    Ok(rows)
}

fn put_weights<Key>(table: &mut Tibble, summary: &Summary<Key>, order: &[usize]) -> Result<()> {
    for (self_, total) in summary.self_.iter().zip(&summary.total) {
        table.doubles(order.iter().map(|&row| self_[row]))?;
        table.doubles(order.iter().map(|&row| total[row]))?;
    }
    Ok(())
}
