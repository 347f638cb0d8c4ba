//! Which values are written, under which names.
//!
//! pprof shows one type at a time and sums it over samples. What Rprof records
//! becomes what pprof's users expect: a count, the time that it stands for, and
//! the memory that was allocated. Levels (memory in use) have no meaningful sum
//! and are written only where nothing is summed.

use crate::error::{Error, Result};
use crate::model::{LEVELS, Profile, Source, SourceId, Values, is_level};

const COUNT: (&str, &str) = ("samples", "count");
const TIME: (&str, &str) = ("cpu", "nanoseconds");
const ALLOCATED: (&str, &str) = ("alloc_size", "bytes");
const FREED: (&str, &str) = ("dealloc_size", "bytes");
/// What pprof's own heap profiles call memory that was allocated.
const ALLOC_SPACE: (&str, &str) = ("alloc_space", "bytes");

/// Whether a source holds what `Rprof()` recorded.
pub fn is_rprof(source: &Source) -> bool {
    source.kind == "rprof"
}

/// One sample type as it is written.
pub struct Column<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    /// Where a sample's value is looked for; the first that has one gives it.
    found: Vec<Found<'a>>,
}

enum Found<'a> {
    Stored(&'a Values),
    /// The time that the counted samples stand for.
    Derived {
        counts: &'a Values,
        /// Nanoseconds, for each source.
        periods: Vec<f64>,
    },
}

impl Column<'_> {
    /// The value of a sample; one that has none counts as 0.
    #[inline]
    pub fn value(&self, row: usize, source: SourceId) -> Result<i64> {
        for found in &self.found {
            let value = match found {
                Found::Stored(values) => values.column[row],
                Found::Derived { counts, periods } => {
                    (counts.column[row] * periods[source.row()]).round()
                }
            };
            if !value.is_nan() {
                return whole(value).ok_or_else(|| self.no_whole_number(row, value));
            }
        }
        Ok(0)
    }

    #[cold]
    fn no_whole_number(&self, row: usize, value: f64) -> Error {
        Error::Lossy(format!(
            "Sample {} has the value {value} of type `{}`; pprof holds whole numbers below 2^63 only.",
            row + 1,
            self.name
        ))
    }
}

/// The number as an integer, when it is one.
#[inline]
pub fn whole(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    ((-END..END).contains(&value) && value.trunc() == value).then_some(value as i64)
}

/// The columns in the order in which they are written.
pub fn columns(profile: &Profile, aggregate: bool) -> Vec<Column<'_>> {
    let rprof = profile.sources.iter().any(is_rprof);
    let mut columns = Vec::new();
    if rprof {
        columns.extend(derived(profile));
    }
    let raw = rprof || LEVELS.iter().all(|(n, u)| profile.value(n, u).is_some());
    for values in &profile.values {
        let type_ = (values.type_.name.as_str(), values.type_.unit.as_str());
        let known = columns.iter().any(|c| (c.name, c.unit) == type_);
        let summed = [ALLOCATED, FREED].contains(&type_) || is_level(type_.0, type_.1);
        if !(known || aggregate && raw && summed) {
            columns.push(Column {
                name: type_.0,
                unit: type_.1,
                found: vec![Found::Stored(values)],
            });
        }
    }
    restore_names(&mut columns);
    columns
}

/// Count, time and allocations of Rprof.
fn derived(profile: &Profile) -> Vec<Column<'_>> {
    let stored = |types: &[(&str, &str)]| -> Vec<Found<'_>> {
        let values = types.iter().filter_map(|(n, u)| profile.value(n, u));
        values.map(Found::Stored).collect()
    };
    let mut times = stored(&[TIME]);
    let named = profile.values.iter().any(|v| v.type_.name == TIME.0);
    if !named || !times.is_empty() {
        times.extend(time(profile));
    }
    let all = [
        (COUNT, stored(&[COUNT])),
        (TIME, times),
        (ALLOC_SPACE, stored(&[ALLOC_SPACE, ALLOCATED])),
    ];
    all.into_iter()
        .filter(|(_, found)| !found.is_empty())
        .map(|((name, unit), found)| Column { name, unit, found })
        .collect()
}

fn time(profile: &Profile) -> Option<Found<'_>> {
    let counts = profile.counts()?;
    let period = |source: &Source| {
        let period = source.period.as_ref().filter(|_| is_rprof(source))?;
        period.nanoseconds()
    };
    let periods: Vec<f64> = profile
        .sources
        .iter()
        .map(|source| period(source).unwrap_or(f64::NAN))
        .collect();
    let any = periods.iter().any(|period| !period.is_nan());
    any.then_some(Found::Derived { counts, periods })
}

/// Sample types of one name are told apart by their units on reading
/// ([`apart`]); pprof needs no such help.
fn restore_names(columns: &mut [Column]) {
    for i in 0..columns.len() {
        let (before, rest) = columns.split_at_mut(i);
        let Some(Column { name, unit, .. }) = rest.first_mut() else {
            continue;
        };
        let short = name.strip_suffix(*unit).and_then(|n| n.strip_suffix('/'));
        if let Some(short) = short {
            if before.iter().any(|c| c.name == short && c.unit != *unit) {
                *name = short;
            }
        }
    }
}

/// The name of a second sample type that is called `name`.
pub fn apart(name: &str, unit: &str) -> String {
    format!("{name}/{unit}")
}
