//! Allocations that were recorded one by one, beside samples or alone.
//!
//! `record_profile(memory = "exact")` records each vector: a source then has samples, and rows for the stacks that have
//! allocated, which are no samples and have no time. An attribute of the source says that its bytes are exact. Without it,
//! the bytes of R's profiler are lower bounds.

use super::cpu_clock::stored;
use super::source_facts::{attribute, has_option_of_memory};
use crate::error::Result;
use crate::limits::memory::{TryCollect, filled};
use crate::message;
use crate::model::known_types::{
    ALLOC_SIZE, ALLOC_SPACE, COPY_SPACE, KnownType, Role, known_type, with_role,
};
use crate::model::{Profile, Source, SourceKind, ValueType, Values};

/// What is known about the allocations of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Each allocation was recorded.
    Exact,
    /// R's profiler has measured memory at samples.
    Sampled,
    Unknown,
}

/// The attribute of a source that says how its allocations were recorded, and its value if each one was.
pub const MEMORY: &str = "profile.memory";
pub const EXACT: &str = "exact";
/// The attribute with about how much time this has taken, in nanoseconds.
pub const MEMORY_TIME: &str = "profile.memory.time";

impl Recorded {
    pub fn of(profile: &Profile, source: &Source) -> Recorded {
        if is_marked(profile, source) || source.kind == RPROFMEM {
            Recorded::Exact
        } else if has_measured(profile, source) {
            Recorded::Sampled
        } else {
            Recorded::Unknown
        }
    }
}

const RPROFMEM: SourceKind = SourceKind::named("rprofmem");

/// Whether a source says, by its attribute or by a comment, that its samples are beside exact allocations.
fn is_marked(profile: &Profile, source: &Source) -> bool {
    stored(profile, source, MEMORY) == Some(EXACT)
}

/// Whether sources have samples beside exact allocations, and none has samples with a lower bound only. Formats that store
/// neither attributes nor comments have the copies at least, which are known only if each vector was recorded.
pub fn has_exact_memory(profile: &Profile) -> bool {
    let sources = || profile.sources.iter();
    let is_sampled = |source| Recorded::of(profile, source) == Recorded::Sampled;
    !sources().any(is_sampled)
        && (sources().any(|source| is_marked(profile, source)) || has_copies(profile))
}

/// Whether copies were recorded in each source in which memory was measured at samples.
fn has_copies(profile: &Profile) -> bool {
    let Some(copies) = profile.known(&COPY_SPACE) else {
        return false;
    };
    let Some(sampled) = profile.known(&ALLOC_SIZE) else {
        return true;
    };
    let count = profile.sources.len();
    let (Ok(mut has), Ok(mut needs)) = (filled(count, false), filled(count, false)) else {
        return false;
    };
    for (row, source) in profile.samples.source.iter().enumerate() {
        has[source.row()] |= !copies.column[row].is_nan();
        needs[source.row()] |= !sampled.column[row].is_nan();
    }
    has.iter().zip(&needs).all(|(has, needs)| *has || !needs)
}

/// The comment that says for formats without attributes that the bytes are exact, unless a source has it already, and the one
/// with the time.
pub fn memory_comments(profile: &Profile) -> impl Iterator<Item = String> {
    let has_attribute = |source: &Source| attribute(profile, source, MEMORY) == Some(EXACT);
    let is_wanted = has_exact_memory(profile) && profile.sources.iter().any(has_attribute);
    let exact = is_wanted.then(|| message!("{MEMORY}: {EXACT}"));
    let time = memory_time(profile).filter(|_| is_wanted);
    let time = time.map(|time| message!("{MEMORY_TIME}: {time:.0}"));
    exact.into_iter().chain(time)
}

/// About how much time was taken by recording allocations, in nanoseconds, in all sources; `None` if that is unknown.
pub fn memory_time(profile: &Profile) -> Option<f64> {
    let times = profile.sources.iter().filter_map(|source| {
        let time: f64 = stored(profile, source, MEMORY_TIME)?.parse().ok()?;
        (time.is_finite() && time >= 0.0).then_some(time)
    });
    times.reduce(|sum, time| sum + time)
}

/// Whether each source of which R's profiler has measured memory has allocations by `Rprofmem()` beside it.
pub fn has_recorded_all(profile: &Profile) -> bool {
    let count = |is: &dyn Fn(&Source) -> bool| profile.sources.iter().filter(|s| is(s)).count();
    let sampled = count(&|source| Recorded::of(profile, source) == Recorded::Sampled);
    sampled <= count(&|source| source.kind == RPROFMEM)
}

/// The values of allocated memory: the exact ones, else the first known type that the profile has.
pub fn allocated(profile: &Profile) -> Option<&Values> {
    let exact = profile.known(&ALLOC_SPACE);
    let exact = exact.filter(|_| has_exact_memory(profile));
    let mut known = with_role(Role::Allocated, ALLOC_SPACE.unit);
    exact.or_else(|| known.find_map(|known| profile.known(known)))
}

/// Whether values describe allocations that were recorded one by one.
pub fn is_recorded(type_: &ValueType) -> bool {
    known_type(&type_.name, &type_.unit).is_some_and(KnownType::is_recorded)
}

/// Tells samples from allocations that were recorded one by one: a row of these has no value of any other type.
pub struct RowKinds<'p> {
    recorded: Vec<&'p Values>,
    sampled: Vec<&'p Values>,
    unknown: Vec<&'p Values>,
}

impl<'p> RowKinds<'p> {
    pub fn new(profile: &'p Profile) -> Result<RowKinds<'p>> {
        let all = |wanted: Option<bool>| {
            let kind = |type_: &ValueType| {
                known_type(&type_.name, &type_.unit).map(KnownType::is_recorded)
            };
            let values = profile.values.iter();
            values.filter(move |values| kind(&values.type_) == wanted)
        };
        Ok(RowKinds {
            recorded: all(Some(true)).try_vec()?,
            sampled: all(Some(false)).try_vec()?,
            unknown: all(None).try_vec()?,
        })
    }

    /// Whether a row is an allocation and no sample.
    #[inline]
    pub fn is_allocation(&self, row: usize) -> bool {
        has_value(&self.recorded, row)
            && !has_value(&self.sampled, row)
            && !has_value(&self.unknown, row)
    }

    /// Whether nothing is missing in a row without a value: an allocation has no time, a sample has allocated nothing, and
    /// not each allocation is a copy. `is_recorded`: whether the value describes allocations.
    #[inline]
    pub fn is_other(&self, row: usize, is_recorded: bool) -> bool {
        if is_recorded {
            has_value(&self.sampled, row) || has_value(&self.recorded, row)
        } else {
            self.is_allocation(row)
        }
    }
}

fn has_value(all: &[&Values], row: usize) -> bool {
    all.iter().any(|values| !values.column[row].is_nan())
}

/// Whether R's profiler has recorded memory in this source, according to its options, or to the comment that describes them
/// in formats without options.
fn has_measured(profile: &Profile, source: &Source) -> bool {
    let options = source.options.filter(|_| source.kind == SourceKind::RPROF);
    let is_commented = || {
        let mut comments = source.comments.iter().map(|&id| profile.strings.get(id));
        comments.any(has_option_of_memory)
    };
    options.map_or_else(is_commented, |options| options.memory)
}

/// Removes values of 0 that formats contain for missing ones: of samples in rows of allocations, and the other way round.
pub fn separate_rows(profile: &mut Profile) -> Result<()> {
    if !has_exact_memory(profile) {
        return Ok(());
    }
    let (recorded, sampled): (Vec<_>, Vec<_>) = {
        let rows = 0..profile.values.len();
        let is = |row: &usize| is_recorded(&profile.values[*row].type_);
        (
            rows.clone().filter(is).try_vec()?,
            rows.filter(|row| !is(row)).try_vec()?,
        )
    };
    for (kind, other) in [(&recorded, &sampled), (&sampled, &recorded)] {
        for row in 0..profile.samples.len() {
            let is_empty = |of: &[usize]| {
                let mut values = of.iter().map(|&at| profile.values[at].column[row]);
                values.all(|value| value.is_nan() || value == 0.0)
            };
            if is_empty(kind) && !is_empty(other) {
                for &at in kind {
                    profile.values[at].column.each()?[row] = f64::NAN;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::profile;
    use crate::model::known_types::SAMPLES;
    use crate::model::{Attribute, AttributeValue, RprofOptions, ValueKind};

    const NONE: f64 = f64::NAN;

    fn set(profile: &mut Profile, known: &KnownType, column: &[f64]) {
        let at = profile
            .values
            .iter()
            .position(|values| *known == values.type_);
        let at = at.unwrap_or_else(|| {
            let count = profile.samples.len();
            profile
                .values
                .push(Values::absent_known(known, count).unwrap());
            profile.values.len() - 1
        });
        let values = profile.values[at].column.each().unwrap();
        values.copy_from_slice(column);
    }

    /// A sample, an allocation, a sample in whose row is an allocation as well, and a row of another type.
    fn recorded() -> Profile {
        let mut profile = profile(&[("f", 1.0); 4]);
        set(&mut profile, &SAMPLES, &[1.0, NONE, 1.0, NONE]);
        set(&mut profile, &ALLOC_SPACE, &[NONE, 8.0, 8.0, NONE]);
        set(&mut profile, &COPY_SPACE, &[NONE, NONE, 8.0, NONE]);
        let mut other = Values::absent("new_pages", "count", 4).unwrap();
        other.column.each().unwrap()[3] = 1.0;
        profile.values.push(other);
        profile
    }

    fn mark(profile: &mut Profile, source: usize) {
        set_attribute(profile, source, MEMORY, EXACT);
    }

    fn set_attribute(profile: &mut Profile, source: usize, key: &str, value: &str) {
        let key = profile.strings.intern(key).unwrap();
        let text = profile.strings.intern(value).unwrap();
        let kind = ValueKind::String;
        let attribute = Attribute::new(key, AttributeValue { kind, text });
        profile.sources[source].attributes.push(attribute);
    }

    fn measure(profile: &mut Profile, source: usize) {
        profile.sources[source].kind = SourceKind::RPROF;
        profile.sources[source].options = Some(RprofOptions {
            memory: true,
            ..RprofOptions::default()
        });
    }

    #[test]
    fn rows_of_allocations_are_no_samples() {
        let profile = recorded();
        let kinds = RowKinds::new(&profile).unwrap();
        let rows = |is: &dyn Fn(usize) -> bool| (0..4).map(is).collect::<Vec<_>>();
        assert_eq!(
            rows(&|row| kinds.is_allocation(row)),
            [false, true, false, false]
        );
        assert_eq!(
            rows(&|row| kinds.is_other(row, false)),
            [false, true, false, false]
        );
        assert_eq!(
            rows(&|row| kinds.is_other(row, true)),
            [true, true, true, false]
        );
    }

    #[test]
    fn bytes_are_exact_if_no_source_has_only_a_lower_bound() {
        let mut profile = recorded();
        profile.values.retain(|values| COPY_SPACE != values.type_);
        set(&mut profile, &ALLOC_SIZE, &[4.0, NONE, 4.0, NONE]);
        measure(&mut profile, 0);
        assert!(!has_exact_memory(&profile));
        assert!(allocated(&profile).is_some_and(|values| ALLOC_SIZE == values.type_));
        assert!(!has_recorded_all(&profile));
        assert_eq!(memory_comments(&profile).next(), None);
        mark(&mut profile, 0);
        assert!(has_exact_memory(&profile));
        assert!(allocated(&profile).is_some_and(|values| ALLOC_SPACE == values.type_));
        let comments = |profile: &Profile| memory_comments(profile).collect::<Vec<_>>();
        assert_eq!(comments(&profile), ["profile.memory: exact"]);
        assert_eq!(memory_time(&profile), None);
        set_attribute(&mut profile, 0, MEMORY_TIME, "2500");
        assert_eq!(
            comments(&profile),
            ["profile.memory: exact", "profile.memory.time: 2500"]
        );
        profile.add_source(Source::default()).unwrap();
        assert!(has_exact_memory(&profile));
        measure(&mut profile, 1);
        assert!(!has_exact_memory(&profile));
        assert_eq!(memory_comments(&profile).next(), None);
    }

    #[test]
    fn the_time_of_recording_is_summed() {
        let mut profile = recorded();
        let others = profile.sources.len();
        for value in ["100", "50", "-1", "NaN", "a"] {
            let source = profile.add_source(Source::default()).unwrap();
            set_attribute(&mut profile, source.row(), MEMORY_TIME, value);
        }
        assert_eq!(memory_time(&profile), Some(150.0));
        profile.sources.truncate(others);
        let comment = profile.strings.intern("profile.memory.time: 7").unwrap();
        profile.sources[0].comments.push(comment);
        assert_eq!(memory_time(&profile), Some(7.0));
    }

    #[test]
    fn copies_show_that_bytes_are_exact() {
        let mut profile = recorded();
        assert!(has_exact_memory(&profile));
        set(&mut profile, &ALLOC_SIZE, &[4.0, NONE, 4.0, NONE]);
        assert!(has_exact_memory(&profile));
        // A source without copies.
        let other = profile.add_source(Source::default()).unwrap();
        profile.samples.source.each().unwrap()[0] = other;
        assert!(!has_exact_memory(&profile));
        assert_eq!(memory_comments(&profile).next(), None);
    }

    #[test]
    fn zeros_of_the_other_kind_are_removed() {
        let mut profile = recorded();
        set(&mut profile, &SAMPLES, &[1.0, 0.0, 1.0, 0.0]);
        set(&mut profile, &ALLOC_SPACE, &[0.0, 8.0, 8.0, 0.0]);
        set(&mut profile, &COPY_SPACE, &[0.0, 0.0, 8.0, 0.0]);
        profile.values.pop();
        separate_rows(&mut profile).unwrap();
        let shown = |known: &KnownType| {
            format!(
                "{:?}",
                profile
                    .known(known)
                    .unwrap()
                    .column
                    .iter()
                    .collect::<Vec<_>>()
            )
        };
        assert_eq!(shown(&SAMPLES), "[1.0, NaN, 1.0, 0.0]");
        assert_eq!(shown(&ALLOC_SPACE), "[NaN, 8.0, 8.0, 0.0]");
        assert_eq!(shown(&COPY_SPACE), "[NaN, 0.0, 8.0, 0.0]");
        // Of other profiles, nothing is.
        let mut other = profile;
        other.values.retain(|values| COPY_SPACE != values.type_);
        set(&mut other, &SAMPLES, &[1.0, 0.0, 1.0, 0.0]);
        separate_rows(&mut other).unwrap();
        let counts = other.counts().unwrap().column.iter().copied();
        assert_eq!(counts.collect::<Vec<_>>(), [1.0, 0.0, 1.0, 0.0]);
    }
}
