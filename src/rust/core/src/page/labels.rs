//! The labels of samples, by which the page filters and colours.
//!
//! Samples with the same labels belong to the same set, and the page has the sums of each set. So labels with many
//! different values, such as the ids of requests, are left out. The ids of spans are labels here, as in pprof files.

use crate::collections::{Interner, Lists};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryAdd, TryCollect, TryGrow, TryPut, filled};
use crate::model::{Link, Profile, StringId};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

/// The maximum number of keys, of values of a key, and of sets.
const MOST_KEYS: usize = 20;
const MOST_VALUES: usize = 200;
const MOST_SETS: usize = 1000;

/// What a label says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    Label(StringId),
    TraceId,
    SpanId,
}

impl Key {
    pub fn text(self, profile: &Profile) -> &str {
        match self {
            Key::Label(key) => profile.strings.get(key),
            Key::TraceId => "trace_id",
            Key::SpanId => "span_id",
        }
    }
}

/// A key and its value.
pub type Pair = (Key, StringId);

#[derive(Default)]
pub struct Labels {
    /// In alphabetical order.
    pub pairs: Vec<Pair>,
    /// The rows of the pairs of each set.
    sets: Interner<Lists<u32>, u32>,
    /// By sample; empty if there are no labels.
    set_of_sample: Vec<u32>,
}

impl Labels {
    /// The labels with a text as value. The keys with the fewest values come first, until there are too many sets.
    pub fn new(profile: &Profile, stop: Stop) -> Result<Labels> {
        // In differences, shares are relative to sums of whole sources.
        let mut columns = profile.values.iter().map(|values| &values.column);
        if columns.any(|column| column.iter().any(|value| *value < 0.0)) {
            return Ok(Labels::default());
        }
        let mut values: HashMap<Key, HashSet<StringId, RandomState>, RandomState> =
            HashMap::default();
        for (_, (key, value)) in texts(profile) {
            if !values.contains_key(&key) {
                values.try_put(key, HashSet::default())?;
            }
            if let Some(values) = values.get_mut(&key) {
                values.try_add(value)?;
            }
        }
        let keys = values.iter().map(|(key, v)| (v.len(), *key));
        let mut keys = keys.try_vec()?;
        keys.retain(|(count, _)| *count <= MOST_VALUES);
        keys.sort_unstable_by_key(|(count, key)| (*count, key.text(profile)));
        let mut labels = Labels::default();
        for included in 1..=keys.len().min(MOST_KEYS) {
            cancel::check(stop)?;
            let more = Labels::of_keys(profile, &keys[..included])?;
            if more.sets.len() > MOST_SETS {
                break;
            }
            labels = more;
        }
        Ok(labels)
    }

    fn of_keys(profile: &Profile, keys: &[(usize, Key)]) -> Result<Labels> {
        let mut labels = Labels::default();
        let is_wanted = |key: &Key| keys.iter().any(|(_, wanted)| wanted == key);
        let mut seen: HashSet<Pair, RandomState> = HashSet::default();
        for (_, pair) in texts(profile).filter(|(_, (key, _))| is_wanted(key)) {
            if seen.try_add(pair)? {
                labels.pairs.try_push(pair)?;
            }
        }
        let text = |id| profile.strings.get(id);
        labels
            .pairs
            .sort_unstable_by_key(|(key, value)| (key.text(profile), text(*value)));
        let mut rows: HashMap<Pair, u32, RandomState> = HashMap::default();
        for (row, pair) in (0..).zip(&labels.pairs) {
            rows.try_put(*pair, row)?;
        }
        let samples = profile.samples.stack.len();
        let mut of_sample = filled(samples, Vec::new())?;
        for (sample, pair) in texts(profile) {
            if let Some(row) = rows.get(&pair) {
                of_sample[sample].try_push(*row)?;
            }
        }
        for list in &mut of_sample {
            list.sort_unstable();
            list.dedup();
            let set = labels.sets.intern(list)?;
            labels.set_of_sample.try_push(set)?;
        }
        Ok(labels)
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The set of a sample, 0 if there are no labels.
    pub fn set(&self, sample: u32) -> u32 {
        let set = self.set_of_sample.get(sample as usize);
        set.copied().unwrap_or(0)
    }

    /// The sets that contain a pair.
    pub fn sets_with(&self, pair: u32) -> impl Iterator<Item = u32> {
        let sets = (0..).zip(self.sets.iter());
        sets.filter(move |(_, pairs)| pairs.contains(&pair))
            .map(|(set, _)| set)
    }
}

/// The samples, keys and values of all labels with a text, and of spans.
fn texts(profile: &Profile) -> impl Iterator<Item = (usize, Pair)> {
    let labels = profile.labels.iter();
    let labels =
        labels.filter_map(|label| Some((label.sample, (Key::Label(label.key), label.str?))));
    let links = profile.samples.links.iter();
    let links = links.flat_map(|&(sample, Link { trace_id, span_id })| {
        [(Key::TraceId, trace_id), (Key::SpanId, span_id)].map(|pair| (sample, pair))
    });
    labels.chain(links)
}
