//! The values of samples: their sums for each source, type and node.

use super::labels::Labels;
use super::tree::Tree;
use crate::analysis::differences::{BaseSamples, Whole};
use crate::collections::Lists;
use crate::error::Result;
use crate::json::Json;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, filled, with_room};
use crate::model::{Profile, SourceId, Values};

/// The samples by their source.
pub struct Samples<'p> {
    pub profile: &'p Profile,
    tree: &'p Tree,
    /// The types that are summed.
    pub types: &'p [&'p Values],
    of_source: Lists<u32>,
    pub labels: &'p Labels,
    base: BaseSamples,
    pub stop: Stop<'p>,
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

    /// The samples of a source.
    pub fn rows(&self, source: SourceId) -> &[u32] {
        self.of_source.get(source.row())
    }

    pub fn node(&self, row: u32) -> u32 {
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
}
