//! The labels of samples, by which the page filters and colours.
//!
//! Samples with the same labels belong to the same set, and the page has the sums of each set. So of a label with many
//! different values, such as the ids of traces, the page has those with the most samples, and combines all others.
//! The ids of spans are labels here, as in pprof files.

use crate::collections::{Interner, Lists};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryAdd, TryCollect, TryGrow, TryPut, filled};
use crate::model::{Link, Profile, StringId};
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// The maximum number of keys, of values of a key that are not combined, and of sets.
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

/// A value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    Text(StringId),
    /// This number of values, which have fewer samples than others, combined.
    Others(usize),
}

/// A key and its value.
pub type Pair = (Key, Value);

/// The values of a key that are not combined, and the number of all others.
struct Kept {
    key: Key,
    values: HashSet<StringId, RandomState>,
    others: usize,
}

impl Kept {
    /// Keeps all values, or those with the most samples if there are too many. Returns `None` if there are too many and
    /// none has two samples, as with ids of samples.
    fn new(key: Key, counts: &Counts, profile: &Profile) -> Result<Option<Kept>> {
        let mut values = counts.iter().map(|(&value, &n)| (n, value)).try_vec()?;
        if values.len() > MOST_VALUES {
            let text = |value| profile.strings.get(value);
            values.sort_unstable_by_key(|&(n, value)| (Reverse(n), text(value)));
            values.truncate(MOST_VALUES);
            if values.first().is_none_or(|&(most, _)| most < 2) {
                return Ok(None);
            }
        }
        let mut kept = HashSet::default();
        for &(_, value) in &values {
            kept.try_add(value)?;
        }
        Ok(Some(Kept {
            key,
            others: counts.len() - values.len(),
            values: kept,
        }))
    }

    /// The number of values in the page.
    fn len(&self) -> usize {
        self.values.len() + usize::from(self.others > 0)
    }

    fn value(&self, text: StringId) -> Value {
        if self.values.contains(&text) {
            Value::Text(text)
        } else {
            Value::Others(self.others)
        }
    }
}

/// How many labels have each value.
type Counts = HashMap<StringId, usize, RandomState>;

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
        let mut counts: HashMap<Key, Counts, RandomState> = HashMap::default();
        for (_, key, value) in texts(profile) {
            if !counts.contains_key(&key) {
                counts.try_put(key, HashMap::default())?;
            }
            if let Some(counts) = counts.get_mut(&key) {
                let count = counts.get(&value).copied().unwrap_or(0);
                counts.try_put(value, count + 1)?;
            }
        }
        let mut keys = Vec::new();
        for (&key, counts) in &counts {
            if let Some(kept) = Kept::new(key, counts, profile)? {
                keys.try_push(kept)?;
            }
        }
        keys.sort_unstable_by_key(|kept| (kept.len(), kept.key.text(profile)));
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

    fn of_keys(profile: &Profile, keys: &[Kept]) -> Result<Labels> {
        let mut labels = Labels::default();
        let pairs = || {
            texts(profile).filter_map(|(sample, key, text)| {
                let kept = keys.iter().find(|kept| kept.key == key)?;
                Some((sample, (key, kept.value(text))))
            })
        };
        let mut seen: HashSet<Pair, RandomState> = HashSet::default();
        for (_, pair) in pairs() {
            if seen.try_add(pair)? {
                labels.pairs.try_push(pair)?;
            }
        }
        // Combined values come last.
        let text = |value| match value {
            Value::Text(text) => (0, profile.strings.get(text)),
            Value::Others(_) => (1, ""),
        };
        labels
            .pairs
            .sort_unstable_by_key(|&(key, value)| (key.text(profile), text(value)));
        let mut rows: HashMap<Pair, u32, RandomState> = HashMap::default();
        for (row, pair) in (0..).zip(&labels.pairs) {
            rows.try_put(*pair, row)?;
        }
        let samples = profile.samples.stack.len();
        let mut of_sample = filled(samples, Vec::new())?;
        for (sample, pair) in pairs() {
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

    /// The number of sets.
    pub fn len(&self) -> usize {
        self.sets.len()
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
fn texts(profile: &Profile) -> impl Iterator<Item = (usize, Key, StringId)> {
    let labels = profile.labels.iter();
    let labels = labels.filter_map(|label| Some((label.sample, Key::Label(label.key), label.str?)));
    let links = profile.samples.links.iter();
    let links = links.flat_map(|&(sample, Link { trace_id, span_id })| {
        [
            (sample, Key::TraceId, trace_id),
            (sample, Key::SpanId, span_id),
        ]
    });
    labels.chain(links)
}
