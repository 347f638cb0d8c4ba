//! The types of which runs have values, and the time that their samples stand for.

use crate::analysis::recorded::Recorded;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::model::known_types::{
    ALLOC_SIZE, ALLOC_SPACE, COPY_SPACE, KnownType, Role, is_share, known_type,
};
use crate::model::{Period, Profile, SampleColumn, SourceId, ValueType, Values, nanoseconds_in};

/// Of which types runs have values.
pub struct RunTypes<'p> {
    /// By type and by run.
    has: Vec<Vec<bool>>,
    values: &'p [Values],
}

/// The time of the samples of a run.
pub struct Time<'p> {
    pub name: &'p str,
    /// A column, and the nanoseconds by which its values are multiplied.
    pub values: (&'p SampleColumn<f64>, f64),
}

impl<'p> RunTypes<'p> {
    pub fn new(profile: &'p Profile) -> Result<RunTypes<'p>> {
        let mut has = Vec::new();
        for values in &profile.values {
            let mut of_type = filled(profile.sources.len(), false)?;
            for (source, value) in profile.samples.source.iter().zip(values.column.iter()) {
                of_type[source.row()] |= !value.is_nan();
            }
            has.try_push(of_type)?;
        }
        Ok(RunTypes {
            has,
            values: &profile.values,
        })
    }

    fn of(&self, run: SourceId) -> impl DoubleEndedIterator<Item = &'p Values> + use<'p, '_> {
        let all = self.values.iter().zip(&self.has);
        all.filter(move |(_, has)| has[run.row()])
            .map(|(values, _)| values)
    }

    pub fn has(&self, run: SourceId, values: &Values) -> bool {
        self.of(run).any(|own| own.type_ == values.type_)
    }

    /// How the values of a type of allocations, or of copies, were recorded in a run. If it has none, whether R's profiler has
    /// measured others.
    pub fn recorded(&self, profile: &Profile, run: SourceId, type_: (&str, &str)) -> Recorded {
        let known = known_type(type_.0, type_.1);
        if !known.is_some_and(|known| known.is_recorded() && known.role != Role::InUse) {
            return Recorded::Unknown;
        }
        let has = |known: &KnownType| self.of(run).any(|own| *known == own.type_);
        let source = &profile.sources[run.row()];
        let recorded = Recorded::of(profile, source);
        let is_here = self
            .of(run)
            .any(|own| (own.type_.name.as_str(), own.type_.unit.as_str()) == type_);
        if is_here {
            let period = source
                .period
                .as_ref()
                .and_then(|period| period.type_.as_ref());
            let is_sampled = period.is_some_and(|type_| type_.unit == ALLOC_SPACE.unit);
            return match recorded {
                Recorded::Unknown if has(&COPY_SPACE) => Recorded::Exact,
                Recorded::Unknown if is_sampled => Recorded::Sampled,
                Recorded::Sampled if has(&ALLOC_SIZE) => Recorded::Unknown,
                other => other,
            };
        }
        if has(&ALLOC_SIZE) || has(&ALLOC_SPACE) && recorded == Recorded::Sampled {
            Recorded::Sampled
        } else {
            Recorded::Unknown
        }
    }

    pub fn all(&self, profile: &Profile) -> Result<Vec<Vec<&'p ValueType>>> {
        let of_run = |run| self.of(run).map(|values| &values.type_).try_vec();
        profile.source_ids().map(of_run).try_vec_of()
    }

    /// The time of each run with values, if it is known for all of these: of its counts, if their period is known, else of
    /// its default type or of its last one, as in pprof.
    pub fn times(&self, profile: &'p Profile) -> Result<Option<Vec<Option<Time<'p>>>>> {
        let mut times = with_room(profile.sources.len())?;
        for (run, source) in profile.source_ids().zip(&profile.sources) {
            let period = source.period.as_ref();
            let of_counts = || {
                let nanoseconds = period.and_then(Period::plausible_nanoseconds)?;
                let counts = profile.counts().filter(|counts| self.has(run, counts))?;
                let type_ = period.and_then(|period| period.type_.as_ref());
                Some(Time {
                    name: type_.map_or("time", |type_| type_.name.as_str()),
                    values: (&counts.column, nanoseconds),
                })
            };
            let time_of = |values: &'p Values| {
                if is_share(&values.type_) {
                    return None;
                }
                let nanoseconds = nanoseconds_in(&values.type_.unit)?;
                Some(Time {
                    name: values.type_.name.as_str(),
                    values: (&values.column, nanoseconds),
                })
            };
            let is_default = |values: &&Values| {
                Some(values.type_.name.as_str()) == source.default_type.as_deref()
            };
            let of_default = || self.of(run).find(is_default).and_then(time_of);
            let of_last = || self.of(run).rev().find_map(time_of);
            let time = of_counts().or_else(of_default).or_else(of_last);
            // Allocations that were recorded beside the time are no other time.
            if time.is_none() && !self.of(run).all(|values| values.type_.is_memory()) {
                return Ok(None);
            }
            times.try_push(time)?;
        }
        Ok(times.iter().any(Option::is_some).then_some(times))
    }
}
