//! Self and total by function and by line, for `summary()` and `print()`.

use crate::arena::{Arena, Value};
use crate::tibble::Tibble;
use profile_core::analysis::summary::{self, Counted, Summary, Weight};
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::Stop;
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::message;
use profile_core::model::{Profile, Values, is_summable};

/// What is made of weights, for errors.
const WEIGHTS: &str = "the columns of a summary";
/// The columns of self and of total of one weight.
type Columns = (&'static str, &'static str);

/// `list(type, unit, counted, by_function, by_line, time, types)`. The tables hold self and
/// total of the wanted type, of time where it can be told, and of the bytes allocated
/// where they were recorded; `counted` has the numbers of [`Counted`] in their order.
pub fn summaries<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<Value<'call>> {
    let values = choose(profile, wanted)?;
    let first = values.map_or(Weight::Nothing, |v| Weight::Column(&v.column));
    let mut weights = [first].into_iter().try_vec(WEIGHTS)?;
    let mut columns: Vec<Columns> = [("self", "total")].into_iter().try_vec(WEIGHTS)?;
    let time = Weight::time(profile)?;
    let nanoseconds = time.as_ref().map(|t| Counted::of(profile, t).sum);
    if let Some(time) = time {
        weights.try_push(time, WEIGHTS)?;
        columns.try_push(("self_time", "total_time"), WEIGHTS)?;
    }
    if let Some(bytes) = profile.value("alloc_size", "bytes") {
        weights.try_push(Weight::Column(&bytes.column), WEIGHTS)?;
        columns.try_push(("self_alloc", "total_alloc"), WEIGHTS)?;
    }
    let type_ = values.map(|v| &v.type_);
    let counted = Counted::of(profile, &weights[0]);

    let functions = summary::by_function(profile, &weights, stop)?;
    let order = order(&functions, |key| {
        (key.map_or("", |id| profile.strings.get(id)), 0)
    })?;
    let mut table = Tibble::new(arena, order.len())?;
    let name = |row: &usize| functions.keys[*row].map(|id| profile.strings.get(id));
    table.strings("name", order.iter().map(name))?;
    add_weights(&mut table, &columns, &functions, &order)?;
    let by_function = table.finish()?;

    let lines = summary::by_line(profile, &weights, stop)?;
    let order = self::order(&lines, |(file, line)| (profile.strings.get(file), line))?;
    let mut table = Tibble::new(arena, order.len())?;
    let file = |row: &usize| Some(profile.strings.get(lines.keys[*row].0));
    table.strings("filename", order.iter().map(file))?;
    table.integers("line", order.iter().map(|row| lines.keys[*row].1))?;
    add_weights(&mut table, &columns, &lines, &order)?;
    let by_line = table.finish()?;

    arena.list(&[
        ("type", arena.text(type_.map_or("samples", |t| &t.name))?),
        ("unit", arena.text(type_.map_or("count", |t| &t.unit))?),
        (
            "counted",
            arena.numbers(&[
                counted.samples as f64,
                counted.sum,
                counted.without_stack as f64,
                counted.sum_without_stack,
                counted.without_value as f64,
            ])?,
        ),
        ("by_function", by_function),
        ("by_line", by_line),
        (
            "time",
            nanoseconds.map_or(Ok(Value::null()), |time| arena.number(time))?,
        ),
        ("types", types(arena, profile)?),
    ])
}

/// All sample types, which R would have to look for in millions of rows.
fn types<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let types = || profile.values.iter().map(|v| &v.type_);
    let mut table = Tibble::new(arena, profile.values.len())?;
    table.strings("type", types().map(|t| Some(t.name.as_str())))?;
    table.strings("unit", types().map(|t| Some(t.unit.as_str())))?;
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

fn add_weights<Key>(
    table: &mut Tibble,
    columns: &[Columns],
    summary: &Summary<Key>,
    order: &[usize],
) -> Result<()> {
    let sums = summary.self_.iter().zip(&summary.total);
    for (&(self_name, total_name), (self_, total)) in columns.iter().zip(sums) {
        table.doubles(self_name, order.iter().map(|&row| self_[row]))?;
        table.doubles(total_name, order.iter().map(|&row| total[row]))?;
    }
    Ok(())
}
