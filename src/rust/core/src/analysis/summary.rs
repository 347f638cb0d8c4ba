//! The summary of a profile: self and total values by function and by line.
//!
//! Values are first summed for each distinct stack, so that the remaining cost depends on the number
//! of stacks only. As in `utils::summaryRprof()`, a function that occurs several times in a stack
//! is counted once, functions of the same name are the same, and the self value of a line is that
//! of the stacks whose innermost frame with a line is in it.

use super::sample_types::summed_type;
use super::source_facts::periods;
use crate::error::Result;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled, with_room};
use crate::model::{LocationId, Profile, ValueType};
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

/// Sums the sample type `wanted`, or the default one.
pub fn summarise<'p>(
    profile: &'p Profile,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<Summary<'p>> {
    let summed = summed_type(profile, wanted)?;
    let value = summed.map_or(Weight::Nothing, |v| Weight::Column(&v.column));
    let time = Weight::time(profile)?;
    let allocated = profile.value("alloc_size", "bytes");
    let allocated = allocated.map(|values| Weight::Column(&values.column));
    let counted = value.counted(profile);
    let seconds = time
        .as_ref()
        .map(|time| time.counted(profile).sum / NANOSECONDS);
    let sums = |weight: &Option<Weight>| {
        let sums = weight.as_ref().map(|weight| weight.by_stack(profile, stop));
        sums.transpose()
    };
    let sums = Sums {
        values: value.by_stack(profile, stop)?,
        time: sums(&time)?,
        allocated: sums(&allocated)?,
    };
    let function = |location| Some(profile.function_of(location).map(|f| f.name));
    let line = |location| {
        let line = profile.locations.get(location).line_for_r();
        let filename = profile.function_of(location)?.filename;
        (line > 0).then_some((filename, line))
    };
    let text = |id| profile.strings.get(id);
    Ok(Summary {
        type_: summed.map_or(NO_TYPE, |values| {
            let ValueType { name, unit } = &values.type_;
            (name, unit)
        }),
        counted,
        time: seconds,
        functions: figures(profile, &sums, function, |name| name.map(text))?,
        lines: figures(profile, &sums, line, |(file, line)| (text(file), line))?,
    })
}

/// A number for each sample.
enum Weight<'p> {
    /// The profile has no values.
    Nothing,
    /// The values of a type; a sample without one counts as 0.
    Column(&'p [f64]),
    /// Counts, and for each source the nanoseconds between two samples, by which they are multiplied.
    Time(&'p [f64], Vec<f64>),
}

impl Weight<'_> {
    /// The sampled time, if counts and all periods are known.
    fn time(profile: &Profile) -> Result<Option<Weight<'_>>> {
        let Some(counts) = profile.counts() else {
            return Ok(None);
        };
        Ok(periods(profile)?.map(|periods| Weight::Time(&counts.column, periods)))
    }

    #[inline]
    fn of(&self, profile: &Profile, row: usize) -> Option<f64> {
        let value = match self {
            Weight::Nothing => f64::NAN,
            Weight::Column(values) => values[row],
            Weight::Time(counts, periods) => {
                counts[row] * periods[profile.samples.source[row].row()]
            }
        };
        (!value.is_nan()).then_some(value)
    }

    /// The sum for each distinct stack.
    fn by_stack(&self, profile: &Profile, stop: Stop) -> Result<Vec<f64>> {
        let mut sums = filled(profile.stacks.len(), 0.0, WHAT)?;
        for (row, stack) in profile.samples.stack.iter().enumerate() {
            if row % ROWS == 0 {
                cancel::check(stop)?;
            }
            sums[stack.row()] += self.of(profile, row).unwrap_or(0.0);
        }
        Ok(sums)
    }

    fn counted(&self, profile: &Profile) -> Counted {
        let mut counted = Counted::default();
        for (row, stack) in profile.samples.stack.iter().enumerate() {
            let has_stack = !profile.stacks.get(*stack).is_empty();
            match self.of(profile, row) {
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

/// The sums for each distinct stack.
struct Sums {
    values: Vec<f64>,
    time: Option<Vec<f64>>,
    allocated: Option<Vec<f64>>,
}

/// The figures by `key`, which returns the key of a location. `shown` converts a key to text.
fn figures<Key: Copy + Eq + Hash, Shown: Copy + Ord>(
    profile: &Profile,
    sums: &Sums,
    key: impl Fn(LocationId) -> Option<Key>,
    shown: impl Fn(Key) -> Shown,
) -> Result<Figures<Shown>> {
    let rows = Rows::new(profile, key)?;
    let keys = rows.keys.iter().map(|&key| shown(key)).try_vec(WHAT)?;
    let self_total = |sums: &Option<Vec<f64>>| {
        let figures = sums.as_ref().map(|sums| rows.self_total(profile, sums));
        figures.transpose()
    };
    let mut values = rows.self_total(profile, &sums.values)?;
    let mut time = self_total(&sums.time)?;
    let mut allocated = self_total(&sums.allocated)?;
    if let Some(SelfTotal { self_, total }) = &mut time {
        self_
            .iter_mut()
            .chain(total)
            .for_each(|sum| *sum /= NANOSECONDS);
    }
    let has_value = |row: &usize| {
        let has_value = |figures: &SelfTotal| figures.total[*row] != 0.0;
        has_value(&values)
            || time.as_ref().is_some_and(has_value)
            || allocated.as_ref().is_some_and(has_value)
    };
    let mut order = (0..keys.len()).filter(has_value).try_vec(WHAT)?;
    // Ties are broken by the key, so that the order does not depend on the order in the file.
    order.sort_unstable_by(|&a, &b| {
        let by_self = values.self_[b].total_cmp(&values.self_[a]);
        let by_total = values.total[b].total_cmp(&values.total[a]);
        by_self.then(by_total).then_with(|| keys[a].cmp(&keys[b]))
    });
    for figures in [Some(&mut values), time.as_mut(), allocated.as_mut()]
        .into_iter()
        .flatten()
    {
        figures.self_ = order.iter().map(|&row| figures.self_[row]).try_vec(WHAT)?;
        figures.total = order.iter().map(|&row| figures.total[row]).try_vec(WHAT)?;
    }
    Ok(Figures {
        keys: order.iter().map(|&row| keys[row]).try_vec(WHAT)?,
        values,
        time,
        allocated,
    })
}

/// The distinct keys, and the index of the key of each location.
struct Rows<Key> {
    keys: Vec<Key>,
    of_location: Vec<Option<u32>>,
}

impl<Key: Copy + Eq + Hash> Rows<Key> {
    fn new(profile: &Profile, key: impl Fn(LocationId) -> Option<Key>) -> Result<Rows<Key>> {
        let mut known: HashMap<Key, u32> = HashMap::new();
        let mut keys = Vec::new();
        let mut of_location = with_room(profile.locations.len(), WHAT)?;
        for location in profile.locations.ids() {
            let row = match key(location) {
                None => None,
                Some(key) => Some(match known.get(&key) {
                    Some(&row) => row,
                    None => {
                        let row = keys.len() as u32;
                        known.try_put(key, row, WHAT)?;
                        keys.try_push(key, WHAT)?;
                        row
                    }
                }),
            };
            of_location.try_push(row, WHAT)?;
        }
        Ok(Rows { keys, of_location })
    }

    fn self_total(&self, profile: &Profile, sums: &[f64]) -> Result<SelfTotal> {
        let mut self_ = filled(self.keys.len(), 0.0, WHAT)?;
        let mut total = filled(self.keys.len(), 0.0, WHAT)?;
        // The stack that was last added to the total.
        let mut last_stack = filled(self.keys.len(), None, WHAT)?;
        let mut space = Vec::new();
        for (stack, &sum) in profile.stacks.ids().zip(sums) {
            if sum == 0.0 {
                continue;
            }
            let mut innermost = true;
            for location in profile.stacks.get(stack).unpacked(&mut space)? {
                let Some(row) = self.of_location[location.row()] else {
                    continue;
                };
                let row = row as usize;
                if innermost {
                    self_[row] += sum;
                    innermost = false;
                }
                if last_stack[row] != Some(stack) {
                    last_stack[row] = Some(stack);
                    total[row] += sum;
                }
            }
        }
        Ok(SelfTotal { self_, total })
    }
}
