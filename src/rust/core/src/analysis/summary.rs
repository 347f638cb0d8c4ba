//! Where the values fall: self and total by function and by line.
//!
//! The sums are made for each distinct stack first, so the cost of the rest
//! follows the stacks. As in `utils::summaryRprof()` a function that is on a
//! stack more than once counts once, functions are told apart by name, and a
//! line's self is what falls on the innermost frame that has a line.

use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, TryPut, with_room};
use crate::model::{LocationId, Period, Profile, StringId};
use std::collections::HashMap;
use std::hash::Hash;

/// A number for each sample.
pub enum Weight<'a> {
    /// The profile has no values.
    Nothing,
    /// The values of a type; a sample without one counts as 0.
    Column(&'a [f64]),
    /// Counts times the nanoseconds between two samples of the sample's source.
    Time(&'a [f64], Vec<f64>),
}

impl Weight<'_> {
    /// The sampled time, where counts and all periods are known.
    pub fn time(profile: &Profile) -> Result<Option<Weight<'_>>> {
        let Some(counts) = profile.counts() else {
            return Ok(None);
        };
        Ok(periods(profile)?.map(|periods| Weight::Time(&counts.column, periods)))
    }

    fn of(&self, profile: &Profile, row: usize) -> Option<f64> {
        let value = match self {
            Weight::Nothing => f64::NAN,
            Weight::Column(values) => values[row],
            Weight::Time(counts, periods) => {
                counts[row] * periods[profile.samples.source[row].0 as usize]
            }
        };
        (!value.is_nan()).then_some(value)
    }

    /// The sum for each distinct stack.
    fn by_stack(&self, profile: &Profile, stop: Stop) -> Result<Vec<f64>> {
        let mut sums = Vec::new();
        sums.try_fill(profile.stacks.len(), 0.0, "sums")?;
        for (row, stack) in profile.samples.stack.iter().enumerate() {
            if row % 100_000 == 0 {
                cancel::check(stop)?;
            }
            sums[stack.0 as usize] += self.of(profile, row).unwrap_or(0.0);
        }
        Ok(sums)
    }
}

/// The nanoseconds between two samples of each source, where all are known.
pub fn periods(profile: &Profile) -> Result<Option<Vec<f64>>> {
    let mut periods = with_room(profile.sources.len(), "sources")?;
    for source in &profile.sources {
        match source.period.as_ref().and_then(Period::nanoseconds) {
            Some(period) => periods.try_push(period, "sources")?,
            None => return Ok(None),
        }
    }
    Ok(Some(periods))
}

/// One row for each function or line; for each weight its self and total.
#[derive(Debug)]
pub struct Summary<Key> {
    pub keys: Vec<Key>,
    pub self_: Vec<Vec<f64>>,
    pub total: Vec<Vec<f64>>,
}

/// By function name.
pub fn by_function(
    profile: &Profile,
    weights: &[Weight],
    stop: Stop,
) -> Result<Summary<Option<StringId>>> {
    let key = |location: LocationId| Some(profile.function_of(location).map(|f| f.name));
    summarise(profile, weights, stop, key)
}

/// A file and a line in it.
pub type Line = (StringId, i32);

/// By line, for locations that have one.
pub fn by_line(profile: &Profile, weights: &[Weight], stop: Stop) -> Result<Summary<Line>> {
    let key = |location: LocationId| {
        let line = profile.locations.get(location).line_for_r();
        let filename = profile.function_of(location)?.filename;
        (line > 0).then_some((filename, line))
    };
    summarise(profile, weights, stop, key)
}

fn summarise<Key: Eq + Hash + Copy>(
    profile: &Profile,
    weights: &[Weight],
    stop: Stop,
    key: impl Fn(LocationId) -> Option<Key>,
) -> Result<Summary<Key>> {
    // The row of each location, looked up once.
    let mut rows: HashMap<Key, u32> = HashMap::new();
    let mut keys = Vec::new();
    let mut row_of: Vec<Option<u32>> = Vec::new();
    for location in profile.locations.ids() {
        let row = match key(location) {
            None => None,
            Some(key) => {
                let next = keys.len() as u32;
                let known = rows.get(&key).copied();
                if known.is_none() {
                    rows.try_put(key, next, "a summary")?;
                    keys.try_push(key, "a summary")?;
                }
                Some(known.unwrap_or(next))
            }
        };
        row_of.try_push(row, "a summary")?;
    }
    let mut summary = Summary {
        self_: Vec::new(),
        total: Vec::new(),
        keys,
    };
    for weight in weights {
        let sums = weight.by_stack(profile, stop)?;
        let mut self_ = Vec::new();
        let mut total = Vec::new();
        let mut last_stack = Vec::new();
        self_.try_fill(summary.keys.len(), 0.0, "a summary")?;
        total.try_fill(summary.keys.len(), 0.0, "a summary")?;
        last_stack.try_fill(summary.keys.len(), u32::MAX, "a summary")?;
        for stack in profile.stacks.ids() {
            let sum = sums[stack.0 as usize];
            if sum == 0.0 {
                continue;
            }
            let mut innermost = true;
            for location in profile.stacks.get(stack) {
                let Some(row) = row_of[location.0 as usize] else {
                    continue;
                };
                let row = row as usize;
                if innermost {
                    self_[row] += sum;
                    innermost = false;
                }
                if last_stack[row] != stack.0 {
                    last_stack[row] = stack.0;
                    total[row] += sum;
                }
            }
        }
        summary.self_.try_push(self_, "a summary")?;
        summary.total.try_push(total, "a summary")?;
    }
    Ok(summary)
}

/// Which samples are counted: those with a value and a stack. Shares are shares of their
/// sum.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Counted {
    pub samples: u64,
    pub sum: f64,
    /// Samples with a value, but without a frame that it could fall on.
    pub without_stack: u64,
    pub sum_without_stack: f64,
    /// Samples that have values of other types only, or none.
    pub without_value: u64,
}

impl Counted {
    pub fn of(profile: &Profile, weight: &Weight) -> Counted {
        let mut counted = Counted::default();
        for (row, stack) in profile.samples.stack.iter().enumerate() {
            let has_stack = !profile.stacks.get(*stack).is_empty();
            match weight.of(profile, row) {
                None => counted.without_value += 1,
                Some(value) if has_stack => {
                    counted.samples += 1;
                    counted.sum += value;
                }
                Some(value) => {
                    counted.without_stack += 1;
                    counted.sum_without_stack += value;
                }
            }
        }
        counted
    }
}
