//! The weights of samples in a summary or a call tree: their values, summed for each distinct
//! stack.

use super::differences::{BaseSamples, Whole};
use super::recorded::{RowKinds, is_recorded};
use super::source_facts::periods_of_counts;
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, filled};
use crate::model::known_types::SAMPLES;
use crate::model::{Profile, SampleColumn, SourceId, ValueType, Values};

/// Name and unit of the type that is summed; `samples` and `count` if the profile has no values.
pub fn type_of(values: Option<&Values>) -> (&str, &str) {
    values.map_or(SAMPLES.key(), |values| {
        let ValueType { name, unit } = &values.type_;
        (name, unit)
    })
}

/// The number of samples that are counted (those with a value and a stack), and of those that are
/// not.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Counted {
    pub samples: u64,
    pub sum: f64,
    pub whole: Whole,
    /// Samples with a value, but without a frame.
    pub without_stack: u64,
    pub sum_without_stack: f64,
    /// Samples that have only values of other types, or none. Allocations are no samples without a time, and samples are no
    /// allocations without an amount.
    pub without_value: u64,
}

/// A number for each sample.
pub enum Weight<'p> {
    /// The profile has no such values.
    Nothing,
    /// The values of a type; a sample without one counts as 0.
    Column(&'p Values),
    /// For each source the values of a type, and the nanoseconds by which they are multiplied: the time between two samples
    /// for counts, the unit for times.
    Time(Vec<Option<(&'p SampleColumn<f64>, f64)>>),
}

impl<'p> Weight<'p> {
    pub fn column(values: Option<&'p Values>) -> Weight<'p> {
        values.map_or(Weight::Nothing, Weight::Column)
    }

    /// The sampled time, if counts and all periods are known.
    pub fn time(profile: &'p Profile) -> Result<Weight<'p>> {
        let Some(counts) = profile.counts() else {
            return Ok(Weight::Nothing);
        };
        let Some(periods) = periods_of_counts(profile)? else {
            return Ok(Weight::Nothing);
        };
        let of_source = periods
            .into_iter()
            .map(|period| Some((&counts.column, period)));
        of_source.try_vec().map(Weight::Time)
    }

    /// The number of a sample; NaN if it has none.
    #[inline]
    pub fn of(&self, profile: &Profile, row: usize) -> f64 {
        match self {
            Weight::Nothing => f64::NAN,
            Weight::Column(values) => values.column[row],
            Weight::Time(of_source) => match of_source[profile.samples.source[row].row()] {
                Some((values, nanoseconds)) => values[row] * nanoseconds,
                None => f64::NAN,
            },
        }
    }
}

impl Weight<'_> {
    /// Whether the numbers describe allocations that were recorded one by one.
    fn is_recorded(&self) -> bool {
        matches!(self, Weight::Column(values) if is_recorded(&values.type_))
    }
}

impl Counted {
    #[inline]
    pub fn add(&mut self, value: f64, has_stack: bool, is_base: bool) {
        if value.is_nan() {
            self.without_value += 1;
        } else if has_stack {
            self.samples += 1;
            self.sum += value;
            self.whole.add(value, is_base);
        } else {
            self.without_stack += 1;
            self.sum_without_stack += value;
        }
    }
}

/// The sums of the weights for each distinct stack, of the samples of some sources.
pub fn sum_by_stack<const N: usize>(
    profile: &Profile,
    weights: &[Weight; N],
    is_wanted: impl Fn(SourceId) -> bool,
    stop: Stop,
) -> Result<([Counted; N], Vec<[f64; N]>)> {
    let mut counted = [Counted::default(); N];
    let ids = profile.stacks.ids();
    let has_frames = ids.map(|id| !profile.stacks.get(id).is_empty());
    let has_frames = has_frames.try_vec()?;
    let mut by_stack = filled(profile.stacks.len(), [0.0; N])?;
    let base = BaseSamples::new(profile)?;
    let kinds = RowKinds::new(profile)?;
    for (row, stack) in profile.samples.stack.iter().enumerate() {
        cancel::at_row(row, stop)?;
        if !is_wanted(profile.samples.source[row]) {
            continue;
        }
        let has_stack = has_frames[stack.row()];
        let is_base = base.contains(row);
        let sums = by_stack[stack.row()].iter_mut();
        for ((weight, counted), sum) in weights.iter().zip(&mut counted).zip(sums) {
            let value = weight.of(profile, row);
            if !value.is_nan() || !kinds.is_other(row, weight.is_recorded()) {
                counted.add(value, has_stack, is_base);
            }
            *sum += if value.is_nan() { 0.0 } else { value };
        }
    }
    Ok((counted, by_stack))
}

#[inline]
pub fn add<const N: usize>(to: &mut [f64; N], sums: &[f64; N]) {
    for (to, sum) in to.iter_mut().zip(sums) {
        *to += sum;
    }
}
