//! The values of samples: their sums for each source, type and node, and the samples in the order
//! in which they were recorded.

use super::labels::Labels;
use super::tree::Tree;
use crate::analysis::differences::{BaseSamples, Whole};
use crate::collections::Lists;
use crate::error::Result;
use crate::formats;
use crate::json::Json;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, with_room};
use crate::model::heap::SNAPSHOT;
use crate::model::{Period, Profile, Source, SourceId, Values};

/// The samples by their source.
pub struct Samples<'p> {
    profile: &'p Profile,
    tree: &'p Tree,
    /// The types that are summed.
    types: &'p [&'p Values],
    of_source: Lists<u32>,
    labels: &'p Labels,
    base: BaseSamples,
    stop: Stop<'p>,
}

impl<'p> Samples<'p> {
    pub fn new(
        profile: &'p Profile,
        tree: &'p Tree,
        types: &'p [&'p Values],
        labels: &'p Labels,
        stop: Stop<'p>,
    ) -> Result<Samples<'p>> {
        let sources = profile.samples.source.iter().map(|source| source.row());
        Ok(Samples {
            profile,
            tree,
            types,
            of_source: Lists::grouped(profile.sources.len(), sources)?,
            labels,
            base: BaseSamples::new(profile)?,
            stop,
        })
    }

    /// The number of samples of a source: their counts, if the profile has counts that are not those of a difference.
    pub fn count(&self, source: SourceId) -> f64 {
        let rows = self.of_source.get(source.row());
        let Some(counts) = self.profile.counts() else {
            return rows.len() as f64;
        };
        let counts = rows.iter().map(|&row| counts.column[row as usize]);
        if counts.clone().any(|count| count < 0.0) {
            rows.len() as f64
        } else {
            counts.filter(|count| !count.is_nan()).sum()
        }
    }

    fn node(&self, row: u32) -> u32 {
        let stack = self.profile.samples.stack[row as usize];
        self.tree.node_of_stack[stack.row()]
    }

    /// Writes the sums for each source, set of labels and type, for the nodes at which they are not 0.
    pub fn write_sums(&self, json: &mut Json) -> Result<()> {
        let wholes = self.wholes()?;
        let mut sums = filled(self.tree.depths.len() + 1, 0.0)?;
        for (source, rows) in self.of_source.iter().enumerate() {
            let mut rows = copied(rows)?;
            rows.sort_unstable_by_key(|&row| (self.labels.set(row), row));
            for rows in rows.chunk_by(|&a, &b| self.labels.set(a) == self.labels.set(b)) {
                for (type_, values) in self.types.iter().enumerate() {
                    let nodes = self.sum_by_node(rows, values, &mut sums)?;
                    if nodes.is_empty() {
                        continue;
                    }
                    json.object(|json| {
                        json.field("source")?.integer(source as i64)?;
                        if !self.labels.is_empty() {
                            let set = self.labels.set(rows[0]);
                            json.field("set")?.integer(i64::from(set))?;
                        }
                        json.field("type")?.integer(type_ as i64)?;
                        json.field("node")?.deltas(nodes.iter().copied())?;
                        let sums = nodes.iter().map(|&node| sums[node as usize]);
                        json.field("value")?.numbers(sums)?;
                        match &wholes[type_] {
                            Some(of_source) => json.field("whole")?.number(of_source[source]),
                            None => Ok(()),
                        }
                    })?;
                    for node in nodes {
                        sums[node as usize] = 0.0;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the values of some samples to the sums of their nodes, and returns the nodes whose sums are not 0.
    fn sum_by_node(&self, rows: &[u32], values: &Values, sums: &mut [f64]) -> Result<Vec<u32>> {
        let mut nodes = Vec::new();
        for (at, &row) in rows.iter().enumerate() {
            if at % ROWS == 0 {
                cancel::check(self.stop)?;
            }
            let value = values.column[row as usize];
            if value != 0.0 && !value.is_nan() {
                let node = self.node(row);
                let sum = &mut sums[node as usize];
                if *sum == 0.0 {
                    nodes.try_push(node)?;
                }
                *sum += value;
            }
        }
        // A node whose sum was 0 meanwhile is in the list twice.
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|&node| sums[node as usize] != 0.0);
        Ok(nodes)
    }

    /// For each type with negative values the wholes of all sources, see [`Whole`].
    fn wholes(&self) -> Result<Vec<Option<Vec<f64>>>> {
        let mut of_types = with_room(self.types.len())?;
        for values in self.types {
            if !values.column.iter().any(|&value| value < 0.0) {
                of_types.try_push(None)?;
                continue;
            }
            let mut wholes = filled(self.profile.sources.len(), Whole::default())?;
            for (row, &value) in values.column.iter().enumerate() {
                if row % ROWS == 0 {
                    cancel::check(self.stop)?;
                }
                if !value.is_nan() && self.node(row as u32) != 0 {
                    let source = self.profile.samples.source[row];
                    wholes[source.row()].add(value, self.base.contains(row));
                }
            }
            // If a source has samples of the base, only such samples count.
            let has_base = wholes.iter().any(|whole| whole.base > 0.0);
            let of_source = wholes
                .iter()
                .map(|whole| if has_base { whole.base } else { whole.all });
            of_types.try_push(Some(of_source.try_vec()?))?;
        }
        Ok(of_types)
    }

    /// Writes the samples of each source whose samples have an order.
    pub fn write_order(&self, json: &mut Json) -> Result<()> {
        for (id, source) in self.profile.source_ids().zip(&self.profile.sources) {
            let recorded = self.of_source.get(id.row());
            let timed = self.by_time(recorded)?;
            let sorted;
            let rows = match &timed {
                Some(timed) => {
                    sorted = timed.iter().map(|&(_, row)| row).try_vec()?;
                    &sorted
                }
                None if self.is_aggregated(source, recorded) => continue,
                None => recorded,
            };
            if rows.is_empty() {
                continue;
            }
            json.object(|json| {
                self.write_rows(id, rows, json)?;
                match &timed {
                    Some(timed) => write_times(source, timed, json),
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// The times of samples, in ascending order, and their rows, if all samples have a time.
    fn by_time(&self, rows: &[u32]) -> Result<Option<Vec<(i64, u32)>>> {
        let times = &self.profile.samples.times;
        let mut timed = with_room(rows.len())?;
        for &row in rows {
            let Ok(at) = times.binary_search_by_key(&(row as usize), |(row, _)| *row) else {
                return Ok(None);
            };
            timed.try_push((times[at].1, row))?;
        }
        timed.sort_unstable();
        Ok(Some(timed))
    }

    /// Whether samples may be sums of equal ones, so that their order is meaningless. This is assumed for formats whose
    /// files are aggregated, for snapshots, and if a sample has a count that is not 1.
    fn is_aggregated(&self, source: &Source, rows: &[u32]) -> bool {
        let is_once = |counts: &Values| rows.iter().all(|&row| counts.column[row as usize] == 1.0);
        let format = formats::named(source.kind.as_str());
        format.is_some_and(|format| format.is_aggregated)
            || source.kind == SNAPSHOT
            || !self.profile.counts().is_none_or(is_once)
    }

    fn write_rows(&self, source: SourceId, rows: &[u32], json: &mut Json) -> Result<()> {
        let mut nodes = Vec::new();
        let mut sets = Vec::new();
        let mut runs = Vec::new();
        for (at, &row) in rows.iter().enumerate() {
            if at % ROWS == 0 {
                cancel::check(self.stop)?;
            }
            let (node, set) = (self.node(row), self.labels.set(row));
            match runs.last_mut() {
                Some(run) if nodes.last() == Some(&node) && sets.last() == Some(&set) => *run += 1,
                _ => {
                    nodes.try_push(node)?;
                    sets.try_push(set)?;
                    runs.try_push(1)?;
                }
            }
        }
        json.field("source")?.integer(source.row() as i64)?;
        json.field("node")?.deltas(nodes.iter().copied())?;
        json.field("run")?.integers(runs.iter().copied())?;
        if !self.labels.is_empty() {
            let sets = sets.iter().map(|&set| i64::from(set));
            json.field("set")?.integers(sets)?;
        }
        json.field("values")?.array(|json| {
            for (type_, values) in self.types.iter().enumerate() {
                write_values(type_, values, rows, json)?;
            }
            Ok(())
        })
    }
}

/// Writes the times of samples. Only the times that differ from the expected ones by more than half a step are written:
/// regular samples need one.
fn write_times(source: &Source, timed: &[(i64, u32)], json: &mut Json) -> Result<()> {
    let start = timed[0].0;
    // The difference may exceed the range of the type.
    let since_start = |time: i64| (i128::from(time) - i128::from(start)) as f64;
    let period = source.period.as_ref().and_then(Period::nanoseconds);
    let last = since_start(timed[timed.len() - 1].0);
    let mean = last / (timed.len() - 1).max(1) as f64;
    let step = period.filter(|&step| step > 0.0).unwrap_or(mean.max(1.0));
    let mut samples = Vec::new();
    let mut at = Vec::new();
    for (sample, &(time, _)) in (0u32..).zip(timed) {
        let time = since_start(time);
        let expected = match (samples.last(), at.last()) {
            (Some(&from), Some(&begin)) => begin + f64::from(sample - from) * step,
            _ => f64::NEG_INFINITY,
        };
        if (time - expected).abs() > step / 2.0 {
            samples.try_push(sample)?;
            at.try_push(time)?;
        }
    }
    json.field("times")?.object(|json| {
        json.field("start")?.number(start as f64 / 1e9)?;
        json.field("step")?.number(step)?;
        json.field("sample")?.deltas(samples.iter().copied())?;
        json.field("at")?.numbers(at.iter().copied())
    })
}

/// Writes the values of a type, except those that equal a constant: the first value or 0, whichever is
/// more frequent. Samples without a value count as 0. Writes nothing if all are 0.
fn write_values(type_: usize, values: &Values, rows: &[u32], json: &mut Json) -> Result<()> {
    let value = |row: u32| Some(values.column[row as usize]).filter(|value| !value.is_nan());
    let all = rows.iter().map(|&row| value(row).unwrap_or(0.0));
    let first = all.clone().next().unwrap_or(0.0);
    let count = |wanted: f64| all.clone().filter(|&value| value == wanted).count();
    let constant = if count(first) >= count(0.0) {
        first
    } else {
        0.0
    };
    let others = (0..).zip(all).filter(|&(_, value)| value != constant);
    if constant == 0.0 && others.clone().next().is_none() {
        return Ok(());
    }
    json.object(|json| {
        json.field("type")?.integer(type_ as i64)?;
        json.field("constant")?.number(constant)?;
        if others.clone().next().is_none() {
            return Ok(());
        }
        json.field("sample")?
            .deltas(others.clone().map(|(row, _)| row))?;
        json.field("value")?.numbers(others.map(|(_, value)| value))
    })
}
