//! Selects sample types: the one that is summed, and the ones that are written, with their names.
//!
//! Other tools show one type at a time and sum it over samples. The values of Rprof are therefore
//! written as the types that users of these tools expect: the number of samples, their time, and
//! the allocated memory. Levels (memory in use) have no meaningful sum and are written only
//! without aggregation.

use super::total::Total;
use crate::error::{Error, Result};
use crate::limits::memory::{TryAdd, TryCollect, TryGrow, sort_by_key};
use crate::message;
use crate::model::known_types::{
    ALLOC_SIZE, ALLOC_SPACE, COPY_SPACE, CPU, RPROF_MEMORY, SAMPLES, is_rprof_memory, is_share,
    known_type, without_alias,
};
use crate::model::{
    KnownType, Period, Profile, SampleType, Source, SourceId, SourceKind, ValueType, Values,
    is_summable, unit_of_time, whole,
};
use foldhash::fast::RandomState;
use std::collections::HashSet;

/// The sample type to sum: the requested one, else the one that the sources prefer, else the one that counts samples,
/// else the default type of a source, else the last one, as in pprof.
pub fn summed_type<'p>(profile: &'p Profile, wanted: Option<&str>) -> Result<Option<&'p Values>> {
    check_sums(profile)?;
    if let Some(name) = wanted {
        return named(profile, name).map(Some);
    }
    let mut sources = profile.sources.iter();
    let shown_first = sources.find_map(|source| source.default_type.as_deref());
    let default = || summable(profile).find(|v| Some(v.type_.name.as_str()) == shown_first);
    let last = || last_type(profile);
    let preferred = preferred_type(profile);
    Ok(preferred
        .or(profile.counts())
        .or_else(default)
        .or_else(last))
}

/// The formats whose own tools show another type than the number of samples: `perf report` adds up the periods of an
/// event, and pprof shows the default type of a file. A store keeps the type that was summed before.
const BY_DEFAULT_TYPE: [SourceKind; 3] = [
    SourceKind::PPROF,
    SourceKind::named("perf"),
    SourceKind::named("store"),
];

/// The type that the tools of all sources show, if it is the same: the default type of each, else its last one.
fn preferred_type(profile: &Profile) -> Option<&Values> {
    let mut sources = profile.sources.iter().map(|s| shown_type(profile, s));
    let first = sources.next()??;
    sources
        .all(|other| other.is_some_and(|other| std::ptr::eq(other, first)))
        .then_some(first)
}

/// The type that the tools of a source show.
fn shown_type<'p>(profile: &'p Profile, source: &Source) -> Option<&'p Values> {
    if !BY_DEFAULT_TYPE.contains(&source.kind) {
        return None;
    }
    let of_type = |type_: &ValueType| {
        let values = profile.value(&type_.name, &type_.unit)?;
        can_be_summed(values).then_some(values)
    };
    let default = source.default_type.as_deref();
    if source.types.is_empty() {
        return summable(profile).find(|v| Some(v.type_.name.as_str()) == default);
    }
    let is_default = |t: &SampleType| {
        Some(t.recorded.as_str()) == default || Some(t.type_.name.as_str()) == default
    };
    let mut declared = source.types.iter().filter(|type_| is_default(type_));
    let declared = declared.find_map(|type_| of_type(&type_.type_));
    let mut others = source.types.iter().rev().filter(|t| !is_share(&t.type_));
    declared.or_else(|| others.find_map(|t| of_type(&t.type_)))
}

/// The type that would be summed by default if this was the only source.
pub fn type_of_source<'p>(profile: &'p Profile, source: &Source) -> Option<&'p Values> {
    let default = source.default_type.as_deref();
    shown_type(profile, source)
        .or(profile.counts())
        .or_else(|| summable(profile).find(|v| Some(v.type_.name.as_str()) == default))
        .or_else(|| last_type(profile))
}

/// The names of the types that can be summed and whose values are not all 0 in samples with a stack.
pub fn types_with_values(profile: &Profile) -> Result<Vec<&str>> {
    let stacks = || profile.samples.stack.iter();
    let has_values = |values: &&Values| {
        let mut samples = values.column.iter().zip(stacks());
        samples.any(|(&value, &stack)| {
            value != 0.0 && !value.is_nan() && !profile.stacks.get(stack).is_empty()
        })
    };
    let found = summable(profile).filter(has_values);
    found.map(|values| values.type_.name.as_str()).try_vec()
}

/// The number of types of memory with values that are not among the `written` ones, names in the profile and units, if
/// one of these is a type of memory. Other types are not counted: they describe the same samples in another unit, such
/// as counts and times.
pub fn left_out_types(profile: &Profile, written: &[(&str, &str)]) -> Result<usize> {
    let is_memory =
        |&(name, unit): &(&str, &str)| known_type(name, unit).is_some_and(KnownType::is_memory);
    if !written.iter().any(is_memory) {
        return Ok(0);
    }
    let has_values = |&(name, unit): &(&str, &str)| {
        let values = profile.value(name, unit);
        values.is_some_and(|v| {
            v.column
                .iter()
                .any(|&value| value != 0.0 && !value.is_nan())
        })
    };
    let types = written_types(profile, true)?;
    let others = types.iter().map(|type_| (type_.key, type_.unit));
    let others = others.filter(|key| is_memory(key) && !written.contains(key));
    Ok(others.filter(has_values).count())
}

fn summable(profile: &Profile) -> impl DoubleEndedIterator<Item = &Values> {
    profile.values.iter().filter(|v| can_be_summed(v))
}

/// The last type, as in pprof, unless it is a share of others. Types of memory that R's recorder adds describe parts of the
/// allocated memory.
fn last_type(profile: &Profile) -> Option<&Values> {
    let is_recorded = profile.known(&COPY_SPACE).is_some() || profile.sources.iter().all(is_rprof);
    if let Some(allocated) = profile.known(&ALLOC_SPACE).filter(|_| is_recorded) {
        return Some(allocated);
    }
    let is_share = |values: &&Values| is_share(&values.type_);
    let mut others = summable(profile).filter(|values| !is_share(values));
    others
        .next_back()
        .or_else(|| summable(profile).find(is_share))
}

/// Checks that no sum can be infinite, also as nanoseconds, and no sum of the times between counted samples. Analyses,
/// and writers that can store any number, select their types here or as measures, so they do not check their own sums.
/// Other writers store whole numbers of 64 bits and check each number.
pub fn check_sums(profile: &Profile) -> Result<()> {
    let periods = profile
        .sources
        .iter()
        .filter_map(|source| source.period.as_ref());
    let longest = periods
        .filter_map(Period::plausible_nanoseconds)
        .fold(0.0, f64::max);
    let are_finite = |values: &Values| {
        let factor = if SAMPLES == values.type_ {
            longest
        } else {
            unit_of_time(&values.type_.unit).unwrap_or(1.0)
        };
        values.has_finite_sums(factor)
    };
    match summable(profile).find(|values| !are_finite(values)) {
        None => Ok(()),
        Some(values) => Err(Error::Unsupported(message!(
            "The values of type `{}` are too large: their sum is beyond the range of a double ({:.1e}).",
            values.type_.name,
            f64::MAX
        ))),
    }
}

fn can_be_summed(values: &Values) -> bool {
    is_summable(&values.type_.name, &values.type_.unit)
}

fn named<'p>(profile: &'p Profile, name: &str) -> Result<&'p Values> {
    let with_name = |name: &str| profile.values.iter().find(|v| v.type_.name == name);
    let values = with_name(name).or_else(|| with_name(without_alias(name)));
    let others = match listed(summable(profile).map(|v| v.type_.name.as_str())) {
        none if none.is_empty() => message!("The profile has no types that can be summed."),
        names => message!("Types that can be summed: {names}."),
    };
    match values {
        Some(values) if can_be_summed(values) => Ok(values),
        Some(_) => Err(Error::Unsupported(message!(
            "`{name}` cannot be summed: it is the memory in use at each sample, not the memory \
             allocated since the previous one. {others}"
        ))),
        None => Err(Error::Unsupported(message!(
            "The profile has no sample type `{name}`. {others}"
        ))),
    }
}

/// Names of types for a message: "`cpu`, `samples`".
fn listed<'p>(names: impl Iterator<Item = &'p str>) -> String {
    names.fold(String::new(), |list, name| {
        let between = if list.is_empty() { "" } else { ", " };
        message!("{list}{between}`{name}`")
    })
}

/// Whether a source was recorded by `Rprof()`.
pub fn is_rprof(source: &Source) -> bool {
    source.kind == SourceKind::RPROF
}

/// Whether the frames of a source without a frame type are calls of R.
pub fn has_r_frames(source: &Source) -> bool {
    is_rprof(source) || source.kind == SourceKind::PROCESS
}

const NANOSECONDS: &str = "nanoseconds";

/// A sample type as it is written.
pub struct WrittenType<'a> {
    /// Its name in the profile. Two types of the profile may be written with the same name.
    pub key: &'a str,
    pub name: &'a str,
    pub unit: &'a str,
    /// The number of nanoseconds in its unit, if its values are written as nanoseconds.
    nanoseconds: Option<f64>,
    /// The places where the value of a sample is looked up: the first one with a value is used.
    lookups: Vec<Lookup<'a>>,
}

enum Lookup<'a> {
    Stored(&'a Values),
    /// The time of the counted samples.
    Derived {
        counts: &'a Values,
        /// Nanoseconds, for each source.
        periods: Vec<f64>,
    },
}

impl Lookup<'_> {
    #[inline]
    fn number(&self, row: usize, source: SourceId) -> f64 {
        match self {
            Lookup::Stored(values) => values.column[row],
            Lookup::Derived { counts, periods } => counts.column[row] * periods[source.row()],
        }
    }
}

impl<'a> WrittenType<'a> {
    /// The unit of [`Self::value()`].
    pub fn unit_of_value(&self) -> &'a str {
        match self.nanoseconds {
            Some(_) => NANOSECONDS,
            None => self.unit,
        }
    }

    /// Whether the values are the increase of memory in use at samples.
    pub fn is_sampled_memory(&self) -> bool {
        let is_sampled = |lookup: &Lookup| matches!(lookup, Lookup::Stored(values) if ALLOC_SIZE == values.type_);
        self.lookups.first().is_some_and(is_sampled)
    }

    /// The value of a sample as a whole number; 0 if it has none.
    #[inline]
    pub fn value(&self, row: usize, source: SourceId) -> Result<i64> {
        for lookup in &self.lookups {
            let value = match (lookup, self.nanoseconds) {
                (Lookup::Stored(values), Some(factor)) => (values.column[row] * factor).round(),
                (Lookup::Stored(values), None) => {
                    if let Some(exact) = values.exact(row) {
                        return Ok(exact);
                    }
                    values.column[row]
                }
                (derived, _) => derived.number(row, source).round(),
            };
            if !value.is_nan() {
                return whole(value).ok_or_else(|| self.no_whole_number(row, value));
            }
        }
        Ok(0)
    }

    /// The value of a sample, for formats that store any number; NaN if it has none.
    #[inline]
    pub fn number(&self, row: usize, source: SourceId) -> f64 {
        for lookup in &self.lookups {
            let value = lookup.number(row, source);
            if !value.is_nan() {
                return value;
            }
        }
        f64::NAN
    }

    /// The value of a sample, which need not be a whole number; 0 if it has none.
    #[inline]
    pub fn total(&self, row: usize, source: SourceId) -> Total {
        for lookup in &self.lookups {
            if let Lookup::Stored(values) = lookup {
                if let Some(exact) = values.exact(row) {
                    return Total::from_whole(exact);
                }
            }
            let value = lookup.number(row, source);
            if !value.is_nan() {
                return Total::from_value(value);
            }
        }
        Total::default()
    }

    fn has_fractions(&self) -> bool {
        let has_fractions = |lookup: &Lookup| match lookup {
            Lookup::Stored(values) => values.column.iter().any(|value| value.fract().abs() > 0.0),
            Lookup::Derived { .. } => false,
        };
        self.lookups.iter().any(has_fractions)
    }

    /// Whether a sample has a value of this type.
    pub fn has(&self, row: usize, source: SourceId) -> bool {
        !self.number(row, source).is_nan()
    }

    #[cold]
    fn no_whole_number(&self, row: usize, value: f64) -> Error {
        Error::Lossy(message!(
            "Sample {} has the value {value} of type `{}`; pprof, OpenTelemetry and callgrind can only \
             store whole numbers below 2^63.",
            row + 1,
            self.name
        ))
    }
}

/// One of the types that are written: the one with this name, else the one that the sources prefer, else the one that
/// counts samples, else the default one.
pub fn chosen_type<'p>(profile: &'p Profile, wanted: Option<&str>) -> Result<WrittenType<'p>> {
    check_sums(profile)?;
    let mut types = written_types(profile, true)?;
    let name = match wanted {
        Some(name) => Some(name),
        None if preferred_type(profile).is_none()
            && types.iter().any(|t| (t.key, t.unit) == SAMPLES.key()) =>
        {
            Some(SAMPLES.name)
        }
        None => summed_type(profile, None)?.map(|values| values.type_.name.as_str()),
    };
    let with_name = |name: &str| types.iter().position(|t| t.key == name);
    let found = name.and_then(|name| with_name(name).or_else(|| with_name(without_alias(name))));
    if let Some(at) = found {
        return Ok(types.swap_remove(at));
    }
    let names = listed(types.iter().map(|type_| type_.key));
    Err(Error::Unsupported(match name {
        Some(name) if !names.is_empty() => {
            message!("The profile has no sample type `{name}` that can be written. Types: {names}.")
        }
        _ => message!("The profile has no sample types that can be written."),
    }))
}

/// The types in the order in which they are written: the order of the file that the profile was read from, if it has
/// one; otherwise, the types that users of pprof expect come first.
pub fn written_types(profile: &Profile, aggregate: bool) -> Result<Vec<WrittenType<'_>>> {
    let rprof = profile.sources.iter().any(is_rprof);
    let mut written = if rprof { derived(profile)? } else { Vec::new() };
    let types = types(profile)?;
    let raw = rprof
        || RPROF_MEMORY
            .iter()
            .all(|known| profile.known(known).is_some());
    for Type { type_, recorded } in &types {
        let key = (type_.name.as_str(), type_.unit.as_str());
        let known = written.iter().any(|w| (w.key, w.unit) == key);
        if !(known || aggregate && raw && is_rprof_memory(key.0, key.1)) {
            let values = profile.value(key.0, key.1);
            let type_ = WrittenType {
                key: key.0,
                name: recorded,
                unit: key.1,
                nanoseconds: None,
                lookups: values.map(Lookup::Stored).into_iter().try_vec()?,
            };
            written.try_push(type_)?;
        }
    }
    if profile
        .sources
        .iter()
        .any(|source| !source.types.is_empty())
    {
        let is =
            |t: &Type, w: &WrittenType| (t.recorded, t.type_.unit.as_str()) == (w.name, w.unit);
        let place = |w: &WrittenType| types.iter().position(|t| is(t, w)).unwrap_or(types.len());
        sort_by_key(&mut written, place)?;
    }
    Ok(written)
}

/// The types that are written in formats that store whole numbers: times with fractions, such as the seconds of py-spy and the
/// milliseconds of dotnet-trace, become nanoseconds.
pub fn whole_types(profile: &Profile, aggregate: bool) -> Result<Vec<WrittenType<'_>>> {
    let mut types = written_types(profile, aggregate)?;
    for at in 0..types.len() {
        let is_taken = types
            .iter()
            .any(|other| (other.name, other.unit) == (types[at].name, NANOSECONDS));
        if !is_taken && types[at].has_fractions() {
            types[at].nanoseconds = unit_of_time(types[at].unit);
        }
    }
    Ok(types)
}

struct Type<'a> {
    type_: &'a ValueType,
    /// Its name in the file that it was read from.
    recorded: &'a str,
}

/// The sample types that have values; types that sources declare come first. If the profile has no samples, the types
/// of the sources.
fn types(profile: &Profile) -> Result<Vec<Type<'_>>> {
    let mut types: Vec<Type> = Vec::new();
    let mut known: HashSet<_, RandomState> = HashSet::default();
    let mut add = |type_, recorded| -> Result<()> {
        if known.try_add(type_)? {
            types.try_push(Type { type_, recorded })?;
        }
        Ok(())
    };
    let mut stored: HashSet<_, RandomState> = HashSet::default();
    for values in &profile.values {
        stored.try_add(&values.type_)?;
    }
    for SampleType { type_, recorded } in profile.sources.iter().flat_map(|s| &s.types) {
        if stored.is_empty() || stored.contains(type_) {
            add(type_, recorded)?;
        }
    }
    for values in &profile.values {
        add(&values.type_, &values.type_.name)?;
    }
    Ok(types)
}

/// The types for sources of Rprof: count, time and allocated memory. Allocations that were recorded one by one are not
/// added to the lower bound of `Rprof()`, which counts the same memory.
fn derived(profile: &Profile) -> Result<Vec<WrittenType<'_>>> {
    let stored = |types: &[&KnownType]| -> Result<Vec<Lookup<'_>>> {
        let values = types.iter().filter_map(|known| profile.known(known));
        values.map(Lookup::Stored).try_vec()
    };
    let mut times = stored(&[&CPU])?;
    let named = profile.values.iter().any(|v| v.type_.name == CPU.name);
    if !named || !times.is_empty() {
        if let Some(time) = time(profile)? {
            times.try_push(time)?;
        }
    }
    let recorded = stored(&[&ALLOC_SPACE])?;
    let at_least = stored(&[&ALLOC_SIZE])?;
    let [recorded, at_least] = if recorded.is_empty() {
        [at_least, recorded]
    } else {
        [recorded, at_least]
    };
    let all = [
        (SAMPLES, stored(&[&SAMPLES])?),
        (CPU, times),
        (ALLOC_SPACE, recorded),
        (ALLOC_SIZE, at_least),
    ];
    all.into_iter()
        .filter(|(_, lookups)| !lookups.is_empty())
        .map(|(known, lookups)| WrittenType {
            key: known.name,
            name: known.name,
            unit: known.unit,
            nanoseconds: None,
            lookups,
        })
        .try_vec()
}

fn time(profile: &Profile) -> Result<Option<Lookup<'_>>> {
    let Some(counts) = profile.counts() else {
        return Ok(None);
    };
    let period = |source: &Source| {
        let period = source.period.as_ref().filter(|_| is_rprof(source))?;
        period.plausible_nanoseconds()
    };
    let periods = profile
        .sources
        .iter()
        .map(|source| period(source).unwrap_or(f64::NAN))
        .try_vec()?;
    let any = periods.iter().any(|period| !period.is_nan());
    Ok(any.then_some(Lookup::Derived { counts, periods }))
}
