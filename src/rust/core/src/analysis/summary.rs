//! The summary of a profile: self and total values by function and by line.
//!
//! Values are first summed for each distinct stack, so that the remaining cost depends on the number
//! of stacks only. As in `utils::summaryRprof()`, a function that occurs several times in a stack
//! is counted once, functions of the same name are the same, and the self value of a line is that
//! of the stacks whose innermost frame with a line is in it.

use super::sample_types::summed_type;
use super::source_facts::periods;
use crate::collections::next_row;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled};
use crate::model::{LocationId, Profile, SampleColumn, StackId, ValueType, Values};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::hash::Hash;

const WHAT: &str = "a summary";
/// The sample type of a profile without values.
const NO_TYPE: (&str, &str) = ("samples", "count");
const NANOSECONDS: f64 = 1e9;

pub struct Summary<'p> {
    /// Name and unit of the type that is summed.
    pub type_: (&'p str, &'p str),
    pub counted: Counted,
    /// The sampled time of all samples with a stack in seconds, if all sampling periods are known.
    pub time: Option<f64>,
    /// By the name of the function; `None` for locations without a function.
    pub functions: Figures<Option<&'p str>>,
    /// By file and line.
    pub lines: Figures<(&'p str, i32)>,
}

/// How many samples are in the summary (those with a value and a stack, of whose sum shares are
/// computed), and how many are not.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Counted {
    pub samples: u64,
    pub sum: f64,
    /// Samples with a value, but without a frame.
    pub without_stack: u64,
    pub sum_without_stack: f64,
    /// Samples that have values of other types only, or none.
    pub without_value: u64,
}

/// One row for each function or line, in descending order of self, then of total.
pub struct Figures<Key> {
    pub keys: Vec<Key>,
    /// For the type that is summed.
    pub values: SelfTotal,
    /// In seconds.
    pub time: Option<SelfTotal>,
    /// In bytes, if Rprof recorded allocations.
    pub allocated: Option<SelfTotal>,
}

#[derive(Debug, Default)]
pub struct SelfTotal {
    pub self_: Vec<f64>,
    pub total: Vec<f64>,
}

/// The numbers that are summed, and their indices in [`Sums`].
const VALUE: usize = 0;
const TIME: usize = 1;
const ALLOCATED: usize = 2;

/// The first `N` sums of a stack, a function or a line.
type Sums<const N: usize> = [f64; N];

/// Sums the sample type `wanted`, or the default one.
pub fn summarise<'p>(
    profile: &'p Profile,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<Summary<'p>> {
    let summed = summed_type(profile, wanted)?;
    let column = |values: Option<&'p Values>| match values {
        Some(values) => Weight::Column(&values.column),
        None => Weight::Nothing,
    };
    let weights = [
        column(summed),
        Weight::time(profile)?,
        column(profile.value("alloc_size", "bytes")),
    ];
    // Most profiles of other tools have neither time nor allocations, and many frames.
    let (counted, (functions, lines)) = match weights[TIME..] {
        [Weight::Nothing, Weight::Nothing] => sum::<1>(profile, &weights, stop)?,
        _ => sum::<3>(profile, &weights, stop)?,
    };
    let [counted, time, _] = counted;
    let has_time = !matches!(weights[TIME], Weight::Nothing);
    Ok(Summary {
        type_: summed.map_or(NO_TYPE, |values| {
            let ValueType { name, unit } = &values.type_;
            (name, unit)
        }),
        counted,
        time: has_time.then(|| time.sum / NANOSECONDS),
        functions,
        lines,
    })
}

/// A number for each sample.
enum Weight<'p> {
    /// The profile does not have it.
    Nothing,
    /// The values of a type; a sample without one counts as 0.
    Column(&'p SampleColumn<f64>),
    /// Counts, and for each source the nanoseconds between two samples, by which they are multiplied.
    Time(&'p SampleColumn<f64>, Vec<f64>),
}

impl<'p> Weight<'p> {
    /// The sampled time, if counts and all periods are known.
    fn time(profile: &'p Profile) -> Result<Weight<'p>> {
        let Some(counts) = profile.counts() else {
            return Ok(Weight::Nothing);
        };
        let periods = periods(profile)?;
        Ok(periods.map_or(Weight::Nothing, |periods| {
            Weight::Time(&counts.column, periods)
        }))
    }

    #[inline]
    fn of(&self, profile: &Profile, row: usize) -> f64 {
        match self {
            Weight::Nothing => f64::NAN,
            Weight::Column(values) => values[row],
            Weight::Time(counts, periods) => {
                counts[row] * periods[profile.samples.source[row].row()]
            }
        }
    }
}

impl Counted {
    #[inline]
    fn add(&mut self, value: f64, has_stack: bool) {
        if value.is_nan() {
            self.without_value += 1;
        } else if has_stack {
            self.samples += 1;
            self.sum += value;
        } else {
            self.without_stack += 1;
            self.sum_without_stack += value;
        }
    }
}

type ByKey<'p> = (Figures<Option<&'p str>>, Figures<(&'p str, i32)>);

/// Sums the first `N` weights: first for each distinct stack, then, in one pass over the frames of
/// all stacks, for each function and line.
fn sum<'p, const N: usize>(
    profile: &'p Profile,
    weights: &[Weight; 3],
    stop: Stop,
) -> Result<([Counted; 3], ByKey<'p>)> {
    let mut counted = [Counted::default(); 3];
    let ids = profile.stacks.ids();
    let has_frames = ids.map(|id| !profile.stacks.get(id).is_empty());
    let has_frames = has_frames.try_vec(WHAT)?;
    let mut by_stack = filled(profile.stacks.len(), [0.0; N], WHAT)?;
    for (row, stack) in profile.samples.stack.iter().enumerate() {
        if row % ROWS == 0 {
            cancel::check(stop)?;
        }
        let has_stack = has_frames[stack.row()];
        let sums = by_stack[stack.row()].iter_mut();
        for ((weight, counted), sum) in weights.iter().zip(&mut counted).zip(sums) {
            let value = weight.of(profile, row);
            counted.add(value, has_stack);
            *sum += if value.is_nan() { 0.0 } else { value };
        }
    }
    let mut functions = Tallies::default();
    let mut lines = Tallies::default();
    for location in profile.locations.ids() {
        let function = profile.function_of(location);
        functions.add_location(Some(function.map(|f| f.name)))?;
        let line = profile.locations.get(location).line_for_r();
        let file = function.filter(|_| line > 0).map(|f| f.filename);
        lines.add_location(file.map(|file| (file, line)))?;
    }
    let mut space = Vec::new();
    for (stack, sums) in profile.stacks.ids().zip(&by_stack) {
        if stack.row() % ROWS == 0 {
            cancel::check(stop)?;
        }
        if *sums != [0.0; N] {
            let frames = profile.stacks.get(stack).unpacked(&mut space)?;
            functions.add_stack(stack, frames, sums);
            lines.add_stack(stack, frames, sums);
        }
    }
    let text = |id| profile.strings.get(id);
    let functions = functions.figures(weights, |name| name.map(text))?;
    let lines = lines.figures(weights, |(file, line)| (text(file), line))?;
    Ok((counted, (functions, lines)))
}

/// The sums by function or by line.
struct Tallies<Key, const N: usize> {
    keys: Vec<Key>,
    rows: HashMap<Key, u32, RandomState>,
    /// By key.
    tallies: Vec<Tally<N>>,
    /// The row of the key of each location, [`NONE`] if it has no key.
    of_location: Vec<u32>,
}

/// The row of no key.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Tally<const N: usize> {
    self_: Sums<N>,
    total: Sums<N>,
    /// The stack that was last added to the total.
    last: Option<StackId>,
}

impl<Key, const N: usize> Default for Tallies<Key, N> {
    fn default() -> Self {
        Tallies {
            keys: Vec::new(),
            rows: HashMap::default(),
            tallies: Vec::new(),
            of_location: Vec::new(),
        }
    }
}

impl<Key: Copy + Eq + Hash, const N: usize> Tallies<Key, N> {
    /// Adds the key of the next location.
    fn add_location(&mut self, key: Option<Key>) -> Result<()> {
        let row = match key {
            None => NONE,
            Some(key) => match self.rows.get(&key) {
                Some(&row) => row,
                None => {
                    let row = next_row(self.keys.len(), "functions")?;
                    self.rows.try_put(key, row, WHAT)?;
                    self.keys.try_push(key, WHAT)?;
                    let none = Tally {
                        self_: [0.0; N],
                        total: [0.0; N],
                        last: None,
                    };
                    self.tallies.try_push(none, WHAT)?;
                    row
                }
            },
        };
        self.of_location.try_push(row, WHAT)
    }

    /// Adds the sums of a stack with these frames.
    #[inline]
    fn add_stack(&mut self, stack: StackId, frames: &[LocationId], sums: &Sums<N>) {
        let mut innermost = true;
        for location in frames {
            let row = self.of_location[location.row()];
            let Some(tally) = self.tallies.get_mut(row as usize) else {
                continue;
            };
            if std::mem::take(&mut innermost) {
                add(&mut tally.self_, sums);
            }
            if tally.last != Some(stack) {
                tally.last = Some(stack);
                add(&mut tally.total, sums);
            }
        }
    }

    /// The keys that have a value, in order. `shown` converts a key to text.
    fn figures<Shown: Copy + Ord>(
        &self,
        weights: &[Weight; 3],
        shown: impl Fn(Key) -> Shown,
    ) -> Result<Figures<Shown>> {
        let rows = self.keys.iter().zip(&self.tallies);
        let rows = rows.filter(|(_, tally)| tally.total != [0.0; N]);
        let mut rows = rows
            .map(|(&key, tally)| (shown(key), tally))
            .try_vec(WHAT)?;
        // Ties are broken by the key, so that the order does not depend on the order in the file.
        rows.sort_unstable_by(|(a, one), (b, other)| {
            let by_self = other.self_[VALUE].total_cmp(&one.self_[VALUE]);
            let by_total = other.total[VALUE].total_cmp(&one.total[VALUE]);
            by_self.then(by_total).then_with(|| a.cmp(b))
        });
        let figures = |at: usize, unit: f64| {
            let column = |of: fn(&Tally<N>) -> &Sums<N>| {
                let all = rows.iter().map(|(_, tally)| of(tally)[at] / unit);
                all.try_vec(WHAT)
            };
            Ok::<_, Error>(SelfTotal {
                self_: column(|tally| &tally.self_)?,
                total: column(|tally| &tally.total)?,
            })
        };
        let optional = |at: usize, unit: f64| match weights[at] {
            Weight::Nothing => Ok(None),
            _ => figures(at, unit).map(Some),
        };
        Ok(Figures {
            values: figures(VALUE, 1.0)?,
            time: optional(TIME, NANOSECONDS)?,
            allocated: optional(ALLOCATED, 1.0)?,
            keys: rows.iter().map(|(key, _)| *key).try_vec(WHAT)?,
        })
    }
}

#[inline]
fn add<const N: usize>(to: &mut Sums<N>, sums: &Sums<N>) {
    for (to, sum) in to.iter_mut().zip(sums) {
        *to += sum;
    }
}
