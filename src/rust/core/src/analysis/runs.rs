//! Self and total values of functions, lines, files or packages in each run, to compare runs.
//!
//! A run is a source. The result has a row only for a group and a run in which it occurs: a
//! profile of many runs may have a hundred thousand lines, most of which occur in few of them.

use super::allocations::AllocatingFrames;
use super::differences::BaseSamples;
use super::frame_names::FrameNames;
use super::groups::{By, FrameGroups, Group};
use super::recorded::Recorded;
use super::rows_by_source::RowsBySource;
use super::sample_types::summed_type;
use super::weights::{Counted, Weight, type_of};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::model::{Period, Profile, SourceId, StackId, ValueType};
use types::RunTypes;

mod types;

pub struct Runs<'p> {
    /// Name and unit of the type that is summed.
    pub type_: (&'p str, &'p str),
    /// The types of which each run has values.
    pub types: Vec<Vec<&'p ValueType>>,
    /// The name of the type that is summed in each run, if it has values of it.
    pub names: Vec<Option<&'p str>>,
    pub groups: Vec<Group<'p>>,
    /// The counts of each run.
    pub counted: Vec<Counted>,
    /// The nanoseconds between two samples of each run, if they are known.
    pub periods: Vec<Option<f64>>,
    /// How the allocations of each run were recorded, if such a type is summed.
    pub recorded: Vec<Recorded>,
    /// By run.
    pub figures: Vec<Figure>,
}

/// The values of a group in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    pub group: u32,
    pub run: SourceId,
    pub self_: f64,
    pub total: f64,
}

/// Sums the sample type `wanted`. If it is `None`, sums the time of samples, which each run may have as a type of its own or
/// as counts and their period; or the default type if the time of a run is unknown.
pub fn by_run<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    wanted: Option<&str>,
    by: By,
    stop: Stop,
) -> Result<Runs<'p>> {
    let summed = summed_type(profile, wanted)?;
    let types = RunTypes::new(profile)?;
    let times = match wanted {
        None => types.times(profile)?,
        Some(_) => None,
    };
    let (type_, weight, summed_names) = match times {
        None => {
            let name = summed.map(|values| values.type_.name.as_str());
            let has = |run: SourceId| name.filter(|_| summed.is_some_and(|v| types.has(run, v)));
            let names = profile.source_ids().map(has).try_vec()?;
            (type_of(summed), Weight::column(summed), names)
        }
        Some(times) => {
            let names = times.iter().map(|time| time.as_ref().map(|time| time.name));
            let names = names.try_vec()?;
            let of_source = times.iter().map(|time| Some(time.as_ref()?.values));
            let weight = Weight::Time(of_source.try_vec()?);
            (("time", "nanoseconds"), weight, names)
        }
    };
    let groups = FrameGroups::new(profile, names, by)?;
    let allocating = match &weight {
        Weight::Column(_) => AllocatingFrames::among(profile, names, &[summed])?,
        _ => AllocatingFrames::among(profile, names, &[])?,
    };
    let rows = RowsBySource::new(profile)?;
    let mut counted = with_room(profile.sources.len())?;
    let mut figures = Vec::new();
    let mut sums = Sums::new(profile, &groups)?;
    for run in profile.source_ids() {
        let rows = rows.of(run);
        counted.try_push(sums.add_samples(profile, &weight, rows, stop)?)?;
        sums.take(profile, &groups, &allocating, run, &mut figures, stop)?;
    }
    let periods = profile.sources.iter();
    let periods = periods.map(|source| {
        source
            .period
            .as_ref()
            .and_then(Period::plausible_nanoseconds)
    });
    let recorded = profile.source_ids();
    let recorded = recorded.map(|run| types.recorded(profile, run, type_));
    Ok(Runs {
        recorded: recorded.try_vec()?,
        type_,
        types: types.all(profile)?,
        names: summed_names,
        groups: groups.shown(profile, names)?,
        counted,
        periods: periods.try_vec()?,
        figures,
    })
}

/// The sums of one run. Only stacks and groups that occur in the run are visited, and reset for the next run.
struct Sums {
    /// The sums by stack, and the stacks that occur.
    stacks: Vec<f64>,
    is_used: Vec<bool>,
    used_stacks: Vec<StackId>,
    /// Self and total by group, and the groups that occur.
    groups: Vec<[f64; 2]>,
    used_groups: Vec<u32>,
    /// The number of stacks visited in all runs so far and, for each group, the number of the last stack with a frame
    /// of the group; 0 if there is none.
    visited: u64,
    last_visit: Vec<u64>,
    base: BaseSamples,
}

impl Sums {
    fn new(profile: &Profile, groups: &FrameGroups) -> Result<Sums> {
        Ok(Sums {
            stacks: filled(profile.stacks.len(), 0.0)?,
            is_used: filled(profile.stacks.len(), false)?,
            used_stacks: Vec::new(),
            groups: filled(groups.count(), [0.0; 2])?,
            used_groups: Vec::new(),
            visited: 0,
            last_visit: filled(groups.count(), 0)?,
            base: BaseSamples::new(profile)?,
        })
    }

    /// Adds the samples of a run to the sums of their stacks.
    fn add_samples(
        &mut self,
        profile: &Profile,
        weight: &Weight,
        rows: &[usize],
        stop: Stop,
    ) -> Result<Counted> {
        let mut counted = Counted::default();
        for (count, &row) in rows.iter().enumerate() {
            cancel::at_row(count, stop)?;
            let stack = profile.samples.stack[row];
            let value = weight.of(profile, row);
            let has_stack = !profile.stacks.get(stack).is_empty();
            counted.add(value, has_stack, self.base.contains(row));
            if !std::mem::replace(&mut self.is_used[stack.row()], true) {
                self.used_stacks.try_push(stack)?;
            }
            self.stacks[stack.row()] += if value.is_nan() { 0.0 } else { value };
        }
        Ok(counted)
    }

    /// Appends the figures of the run, and resets the sums.
    fn take(
        &mut self,
        profile: &Profile,
        groups: &FrameGroups,
        allocating: &AllocatingFrames,
        run: SourceId,
        figures: &mut Vec<Figure>,
        stop: Stop,
    ) -> Result<()> {
        let before = self.visited;
        let mut space = Vec::new();
        for stack in self.used_stacks.drain(..) {
            self.visited += 1;
            cancel::at_row(self.visited as usize, stop)?;
            self.is_used[stack.row()] = false;
            let sum = std::mem::take(&mut self.stacks[stack.row()]);
            if sum == 0.0 {
                continue;
            }
            let frames = profile.stacks.get(stack).unpacked(&mut space)?;
            let frames = allocating.of(frames);
            for (depth, location) in frames.iter().enumerate() {
                let group = groups.of_location[location.row()];
                let last = &mut self.last_visit[group as usize];
                if *last <= before {
                    self.used_groups.try_push(group)?;
                }
                let [self_, total] = &mut self.groups[group as usize];
                // A function that occurs several times in a stack is counted once.
                if std::mem::replace(last, self.visited) < self.visited {
                    *total += sum;
                }
                if depth == 0 {
                    *self_ += sum;
                }
            }
        }
        for group in self.used_groups.drain(..) {
            let [self_, total] = std::mem::take(&mut self.groups[group as usize]);
            figures.try_push(Figure {
                group,
                run,
                self_,
                total,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
