//! The summary of a profile: self and total values by function, file or package, and by line.
//!
//! Values are first summed for each distinct stack, so that the remaining cost depends only on the
//! number of stacks. As in `utils::summaryRprof()`, a function that occurs several times in a stack
//! is counted once, functions with the same name are the same, and the self value of a line is the
//! value of all stacks whose innermost frame with a line has this line. Lines of the deparsed text of functions of packages
//! take nothing away from those of source files: a stack may count for one of each.

use super::allocations::{AllocatingFrames, Measured, is_allocation};
use super::cpu_clock::used_seconds;
use super::frame_names::FrameNames;
use super::groups::{By, FrameGroups};
use super::places::is_file;
use super::recorded::{allocated, has_exact_memory};
use super::sample_types::summed_type;
use super::threads::Threads;
use super::weights::{Counted, Weight, add, sum_by_stack, type_of};
use crate::collections::Interner;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, filled};
use crate::model::{LocationId, Profile, StringId, is_deparsed};
use std::hash::Hash;

const NANOSECONDS: f64 = 1e9;

pub struct Summary<'p> {
    /// Name and unit of the type that is summed.
    pub type_: (&'p str, &'p str),
    pub counted: Counted,
    /// The sampled time of all samples with a stack in seconds, if all sampling periods are known.
    pub time: Option<f64>,
    /// The CPU time that R's thread used, in seconds, if the sampled time of all samples differs from it.
    pub used: Option<f64>,
    /// The CPU time of all threads, if others than R's have used enough of it.
    pub threads: Option<Threads>,
    /// How the type that is summed, and allocated memory were measured.
    pub measured: Measured,
    pub measured_memory: Measured,
    /// The type of allocated memory, if it is summed beside counts of samples.
    pub alloc_type: Option<&'p str>,
    /// Whether each allocation of all sources was recorded.
    pub has_exact_memory: bool,
    /// The sum of the absolute values of stacks whose innermost frame has no symbol.
    pub without_symbol: f64,
    /// By the name of the function, see [`super::frame_names`], or of the file or package, which may be unknown.
    pub functions: Figures<Option<&'p str>>,
    /// By file and line.
    pub lines: Figures<(&'p str, i32)>,
}

/// One row for each function or line, in descending order of self, then of total. In differences,
/// which have negative values, these are the absolute values.
pub struct Figures<Key> {
    pub keys: Vec<Key>,
    /// For the type that is summed.
    pub values: SelfTotal,
    /// In seconds.
    pub time: Option<SelfTotal>,
    /// In bytes, if allocations were recorded with counts of samples.
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

/// Sums the sample type `wanted`, or the default one, by function, file or package, and by line.
pub fn summarise<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    by: By,
    wanted: Option<&str>,
    stop: Stop,
) -> Result<Summary<'p>> {
    let summed = summed_type(profile, wanted)?;
    // Functions without samples, which only allocated, would be rows without values. Heap profiles have them.
    let allocated = profile.counts().and(allocated(profile));
    let weights = [
        Weight::column(summed),
        Weight::time(profile)?,
        Weight::column(allocated),
    ];
    let are_allocations = [summed, None, allocated].map(is_allocation);
    let allocating = AllocatingFrames::among(profile, names, &[summed, allocated])?;
    let groups = FrameGroups::new(profile, names, by)?;
    let group = |location: LocationId| Some(groups.of_location[location.row()]);
    let mut functions = Totals::new(profile, group, |_| false)?;
    let text = |id| profile.strings.get(id);
    let line = |location| line_of(profile, location);
    let mut lines = Totals::new(profile, line, |(file, _)| is_deparsed(text(file)))?;
    let (counted, by_stack) = sum_by_stack(profile, &weights, |_| true, stop)?;
    let mut space = Vec::new();
    let mut without_symbol = 0.0;
    for (stack, sums) in profile.stacks.ids().zip(&by_stack) {
        cancel::at_row(stack.row(), stop)?;
        if *sums == [0.0; 3] {
            continue;
        }
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        let allocators = allocating.of(frames);
        if allocators.len() == frames.len() {
            functions.add(frames, sums);
            lines.add(frames, sums);
        } else {
            let [others, allocations] = split(sums, are_allocations);
            for (frames, sums) in [(frames, others), (allocators, allocations)] {
                functions.add(frames, &sums);
                lines.add(frames, &sums);
            }
        }
        if frames
            .first()
            .is_some_and(|frame| !names.has_symbol(*frame))
        {
            without_symbol += sums[VALUE].abs();
        }
    }
    let [counted, time, _] = counted;
    let has_time = !matches!(weights[TIME], Weight::Nothing);
    let shown = groups.shown(profile, names)?;
    Ok(Summary {
        type_: type_of(summed),
        counted,
        time: has_time.then(|| time.sum / NANOSECONDS),
        used: used_seconds(profile)?,
        threads: Threads::shown(profile)?,
        measured: Measured::of(profile, summed),
        measured_memory: Measured::of(profile, allocated),
        alloc_type: allocated.map(|values| values.type_.name.as_str()),
        has_exact_memory: has_exact_memory(profile),
        without_symbol,
        functions: functions.figures(&weights, |group| shown[group as usize].name)?,
        lines: lines.figures(&weights, |(file, line)| (text(file), line))?,
    })
}

/// The file and line of a location. Code without a file has no place.
fn line_of(profile: &Profile, location: LocationId) -> Option<(StringId, i32)> {
    let line = profile.locations.get(location).line_for_r();
    let file = profile.function_of(location)?.filename;
    (line > 0 && is_file(profile.strings.get(file))).then_some((file, line))
}

/// The sums without allocations, and the allocations.
fn split(sums: &Sums, are_allocations: [bool; 3]) -> [Sums; 2] {
    let mut split = [*sums; 2];
    for (at, is_allocation) in are_allocations.into_iter().enumerate() {
        split[usize::from(!is_allocation)][at] = 0.0;
    }
    split
}

type Sums = [f64; 3];

/// The sums by function or by line.
struct Totals<Key> {
    keys: Interner<Vec<Key>>,
    /// The row of the key of each location; [`NONE`] if it has no key.
    of_location: Vec<u32>,
    /// By row.
    tallies: Vec<Tally>,
    /// By row: whether a key comes second.
    are_second: Vec<bool>,
    /// How often sums were added.
    added: u64,
}

/// The row number that stands for no key.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    self_: Sums,
    total: Sums,
    /// What [`Totals::added`] was when the total was changed last.
    last: u64,
}

impl<Key: Copy + Eq + Hash> Totals<Key> {
    fn new(
        profile: &Profile,
        key: impl Fn(LocationId) -> Option<Key>,
        is_second: impl Fn(Key) -> bool,
    ) -> Result<Totals<Key>> {
        let mut keys = Interner::default();
        let rows = profile.locations.ids().map(|location| match key(location) {
            Some(key) => keys.intern(key),
            None => Ok(NONE),
        });
        let of_location = rows.try_vec_of()?;
        Ok(Totals {
            tallies: filled(keys.len(), Tally::default())?,
            are_second: keys.ids().map(|row| is_second(keys.get(row))).try_vec()?,
            keys,
            of_location,
            added: 0,
        })
    }

    /// Adds the sums of a stack with these frames, innermost first. A key that several frames have is counted once.
    fn add(&mut self, frames: &[LocationId], sums: &Sums) {
        self.added += 1;
        // The number of innermost keys that were found: those that come second only count until one that does not.
        let mut found = 0;
        for frame in frames {
            let row = self.of_location[frame.row()] as usize;
            let Some(tally) = self.tallies.get_mut(row) else {
                continue;
            };
            let is_second = self.are_second[row];
            if found == 0 || found == 1 && !is_second {
                add(&mut tally.self_, sums);
                found = if is_second { 1 } else { 2 };
            }
            if tally.last != self.added {
                tally.last = self.added;
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
        // In differences, a total may be 0 although self is not.
        let rows = rows.filter(|(_, tally)| [tally.self_, tally.total] != [[0.0; 3]; 2]);
        let mut rows = rows.map(|(&key, tally)| (shown(key), tally)).try_vec()?;
        // Ties are broken by the key, so that the order does not depend on the order in the file.
        rows.sort_unstable_by(|(a, one), (b, other)| {
            let by = |of: fn(&Tally) -> &Sums| {
                let [one, other] = [one, other].map(|tally| of(tally)[VALUE].abs());
                other.total_cmp(&one)
            };
            let by_self = by(|tally| &tally.self_);
            let by_total = by(|tally| &tally.total);
            by_self.then(by_total).then_with(|| a.cmp(b))
        });
        let figures = |at: usize, unit: f64| {
            let column = |of: fn(&Tally) -> &Sums| {
                let all = rows.iter().map(|(_, tally)| of(tally)[at] / unit);
                all.try_vec()
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
            keys: rows.iter().map(|(key, _)| *key).try_vec()?,
        })
    }
}
