//! The samples of a page: in their order, or as sums for each node.

use super::numbers::{column, deltas, row as row_of, same_length};
use super::tree::Nodes;
use crate::error::Result;
use crate::formats::json_file::{Reader, fields};
use crate::formats::samples::next_row;
use crate::limits::memory::{TryCollect, TryGrow, sort_by_key};
use crate::model::{Label, Profile, SourceId, StackId, StringId, whole};

/// Pages have fewer sets of labels.
const MOST_SETS: usize = 1 << 16;

/// The sums of a source, a set of labels and a type.
#[derive(Default)]
pub struct Sums {
    source: f64,
    set: f64,
    type_: f64,
    node: Vec<f64>,
    value: Vec<f64>,
}

impl Sums {
    pub fn read(json: &mut Reader) -> Result<Sums> {
        let mut sums = Sums::default();
        fields! { json,
            "source" => sums.source = json.number()?.real(),
            "set" => sums.set = json.number()?.real(),
            "type" => sums.type_ = json.number()?.real(),
            "node" => sums.node = deltas(json)?,
            "value" => sums.value = column(json)?,
        }
        Ok(sums)
    }
}

/// The samples of a source in their order.
#[derive(Default)]
pub struct Order {
    source: f64,
    node: Vec<f64>,
    run: Vec<f64>,
    set: Vec<f64>,
    values: Vec<OrderValues>,
    times: Option<Times>,
}

#[derive(Default)]
struct OrderValues {
    type_: f64,
    constant: f64,
    sample: Vec<f64>,
    value: Vec<f64>,
}

#[derive(Default)]
struct Times {
    start: f64,
    step: f64,
    sample: Vec<f64>,
    at: Vec<f64>,
    /// The step from each of these samples; empty if it is always the same.
    each: Vec<f64>,
}

impl Order {
    pub fn read(json: &mut Reader) -> Result<Order> {
        let mut order = Order::default();
        fields! { json,
            "source" => order.source = json.number()?.real(),
            "node" => order.node = deltas(json)?,
            "run" => order.run = column(json)?,
            "set" => order.set = column(json)?,
            "times" => order.times = Some(Times::read(json)?),
            "values" => {
                json.begin_array()?;
                while json.element()? {
                    json.take(2 * size_of::<OrderValues>())?;
                    order.values.try_push(OrderValues::read(json)?)?;
                }
            },
        }
        Ok(order)
    }
}

impl OrderValues {
    fn read(json: &mut Reader) -> Result<OrderValues> {
        let mut values = OrderValues::default();
        fields! { json,
            "type" => values.type_ = json.number()?.real(),
            "constant" => values.constant = json.number()?.real(),
            "sample" => values.sample = deltas(json)?,
            "value" => values.value = column(json)?,
        }
        Ok(values)
    }
}

impl Times {
    fn read(json: &mut Reader) -> Result<Times> {
        let mut times = Times::default();
        fields! { json,
            "start" => times.start = json.number()?.real(),
            "step" => times.step = json.number()?.real(),
            "sample" => times.sample = deltas(json)?,
            "at" => times.at = column(json)?,
            "each" => times.each = column(json)?,
        }
        Ok(times)
    }

    /// Nanoseconds since 1970 of a sample. `known`: the number of known times up to it.
    fn of(&self, sample: usize, known: usize) -> i64 {
        let last = known.checked_sub(1);
        let (from, at) = last.map_or((0.0, 0.0), |last| (self.sample[last], self.at[last]));
        let each = last.and_then(|last| self.each.get(last));
        let since = at + (sample as f64 - from) * each.unwrap_or(&self.step);
        ((self.start * 1e9).round() as i64).saturating_add(since.round() as i64)
    }
}

/// The samples of all sources, and their labels.
#[derive(Default)]
pub struct Samples {
    pub sums: Vec<Sums>,
    pub orders: Vec<Order>,
    /// The pairs of labels that each set contains.
    pub sets: Vec<Vec<(StringId, StringId)>>,
}

/// The row of a source, or one that no source has.
fn source_row(number: f64) -> usize {
    whole(number).map_or(usize::MAX, |row| usize::try_from(row).unwrap_or(usize::MAX))
}

/// What belongs to a source, of a list that is sorted by [`source_row`].
fn of_source<T>(all: &[T], number: usize, source: impl Fn(&T) -> f64) -> &[T] {
    let row = |part: &T| source_row(source(part));
    let first = all.partition_point(|part| row(part) < number);
    let end = all.partition_point(|part| row(part) <= number);
    &all[first..end]
}

impl Samples {
    /// Sorts the orders and sums by source: there may be many of all three.
    pub fn sort(&mut self) -> Result<()> {
        sort_by_key(&mut self.orders, |order| source_row(order.source))?;
        sort_by_key(&mut self.sums, |sums| source_row(sums.source))
    }

    /// Adds the samples of a source, the last one of the profile, whose row is `number`.
    pub fn add(
        &self,
        number: usize,
        source: SourceId,
        nodes: &mut Nodes,
        profile: &mut Profile,
        json: &mut Reader,
    ) -> Result<()> {
        let order = of_source(&self.orders, number, |order| order.source);
        let sums = of_source(&self.sums, number, |sums| sums.source);
        let Some(order) = order.first() else {
            return self.add_sums(sums.iter(), 0.0, source, nodes, profile, json);
        };
        let first = profile.samples.len();
        self.add_order(order, source, nodes, profile, json)?;
        // Allocations beside the samples, which have no place in their order.
        let is_ordered = |sums: &&Sums| order.values.iter().any(|v| v.type_ == sums.type_);
        let others = sums.iter().filter(|sums| !is_ordered(sums)).try_vec()?;
        for sums in &others {
            let type_ = row_of(sums.type_, profile.values.len(), json)?;
            let column = profile.values[type_].column.each()?;
            column[first..].fill(f64::NAN);
        }
        self.add_sums(others.into_iter(), f64::NAN, source, nodes, profile, json)
    }

    fn add_order(
        &self,
        order: &Order,
        source: SourceId,
        nodes: &mut Nodes,
        profile: &mut Profile,
        json: &mut Reader,
    ) -> Result<()> {
        let runs = same_length(&[&*order.node, &order.run], json)?;
        if !order.set.is_empty() {
            same_length(&[&*order.node, &order.set], json)?;
        }
        if let Some(times) = &order.times {
            same_length(&[&*times.sample, &times.at], json)?;
        }
        let first = profile.samples.len();
        let mut known = 0;
        for at in 0..runs {
            let node = nodes.node(order.node[at], json)?;
            let (stack, depth) = nodes.stack(node, profile, json)?;
            let set = order.set.get(at).copied().unwrap_or(0.0);
            let mut left = order.run[at];
            while left >= 1.0 {
                left -= 1.0;
                let row = self.add_sample(source, stack, depth, set, profile, json)?;
                if let Some(times) = &order.times {
                    let sample = row - first;
                    while times
                        .sample
                        .get(known)
                        .is_some_and(|&from| from <= sample as f64)
                    {
                        known += 1;
                    }
                    json.take(2 * size_of::<(usize, i64)>())?;
                    profile
                        .samples
                        .times
                        .try_push((row, times.of(sample, known)))?;
                }
            }
        }
        let count = profile.samples.len() - first;
        for values in &mut profile.values {
            values.column.try_fill(first, f64::NAN)?;
            values.column.try_fill(first + count, 0.0)?;
        }
        for values in &order.values {
            same_length(&[&*values.sample, &values.value], json)?;
            let type_ = row_of(values.type_, profile.values.len(), json)?;
            let column = profile.values[type_].column.each()?;
            let Some(column) = column.get_mut(first..first + count) else {
                continue;
            };
            column.fill(values.constant);
            for (&sample, &value) in values.sample.iter().zip(&values.value) {
                column[row_of(sample, count, json)?] = value;
            }
        }
        Ok(())
    }

    /// Adds a sample for each node and set of labels. `absent`: the value of types without a sum.
    fn add_sums<'s>(
        &'s self,
        all: impl Iterator<Item = &'s Sums>,
        absent: f64,
        source: SourceId,
        nodes: &mut Nodes,
        profile: &mut Profile,
        json: &mut Reader,
    ) -> Result<()> {
        // Set, node, type, and value.
        let mut cells: Vec<(usize, usize, usize, f64)> = Vec::new();
        for sums in all {
            same_length(&[&*sums.node, &sums.value], json)?;
            let set = row_of(sums.set, MOST_SETS, json)?;
            let type_ = row_of(sums.type_, profile.values.len(), json)?;
            for (&node, &value) in sums.node.iter().zip(&sums.value) {
                let cell = (set, nodes.node(node, json)?, type_, value);
                json.take(3 * size_of_val(&cell))?;
                cells.try_push(cell)?;
            }
        }
        sort_by_key(&mut cells, |&(set, node, type_, _)| (set, node, type_))?;
        for sample in cells.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (set, node, ..) = sample[0];
            let (stack, depth) = nodes.stack(node, profile, json)?;
            let row = self.add_sample(source, stack, depth, set as f64, profile, json)?;
            for values in &mut profile.values {
                values.column.try_fill(row, f64::NAN)?;
                values.column.try_push(absent)?;
            }
            for &(.., type_, value) in sample {
                if let Some(cell) = profile.values[type_].column.each()?.last_mut() {
                    *cell = value;
                }
            }
        }
        Ok(())
    }

    fn add_sample(
        &self,
        source: SourceId,
        stack: StackId,
        depth: usize,
        set: f64,
        profile: &mut Profile,
        json: &mut Reader,
    ) -> Result<usize> {
        let row = next_row(profile, &json.input)?;
        json.check(row)?;
        json.take_samples(1, depth)?;
        profile.samples.source.try_push(source)?;
        profile.samples.stack.try_push(stack)?;
        // A set without labels may be missing.
        let pairs = self.sets.get(row_of(set, MOST_SETS, json)?);
        for &(key, value) in pairs.into_iter().flatten() {
            json.take(2 * size_of::<Label>())?;
            profile.labels.try_push(Label {
                str: Some(value),
                ..Label::new(row, key)
            })?;
        }
        Ok(row)
    }
}

/// Adds a pair of labels to the sets that contain it.
pub fn add_to_sets(
    sets: &mut Vec<Vec<(StringId, StringId)>>,
    pair: (StringId, StringId),
    numbers: &[f64],
    json: &mut Reader,
) -> Result<()> {
    for &number in numbers {
        let set = row_of(number, MOST_SETS, json)?;
        json.take(64)?;
        while sets.len() <= set {
            sets.try_push(Vec::new())?;
        }
        sets[set].try_push(pair)?;
    }
    Ok(())
}
