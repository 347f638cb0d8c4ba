//! Creates sources from labels that describe them, see [`crate::formats::pprof::source_labels`].
//!
//! Samples have the same source if all of these labels are equal, not only the number of the source:
//! each of several files that were merged may have a source 1. Labels that this package
//! would not have written remain labels, so no information is lost.

use crate::analysis::sample_types::is_rprof;
use crate::analysis::source_facts::{durations, provenance, total_duration};
use crate::collections::Interner;
use crate::error::Result;
use crate::formats::pprof::source_labels::{self, Fact, Facts, KEYS};
use crate::limits::budget::Budget;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::model::{Label, Profile, Source, SourceId, StringId, Strings};

/// The number of bytes that sources may take for each byte of the file. Without a limit, a small file in which every
/// sample has its own source, all with the same long URI, could exhaust the memory.
const A_BYTE: u64 = 32;
const AT_LEAST: u64 = 1 << 20;

/// Assigns samples to the sources that their labels describe, and removes those labels. The file
/// itself, so far the only source, remains the first source if any samples have no such labels.
/// `size`: the bytes of the file.
pub fn from_labels(profile: &mut Profile, size: usize, stop: Stop) -> Result<()> {
    let keys = Keys::of(&profile.strings);
    if !keys.has_source_id() {
        return Ok(());
    }
    let mut labeled = LabeledSources::new(size);
    let mut numbers = Vec::new();
    numbers.try_fill(profile.samples.len(), None)?;
    let samples = profile.labels.chunk_by(|a, b| a.sample == b.sample);
    for (i, labels) in samples.enumerate() {
        cancel::at_row(i, stop)?;
        if let (Some(values), Some(label)) = (keys.values(labels), labels.first()) {
            numbers[label.sample] = labeled.number(values, &profile.strings)?;
        }
    }
    if labeled.sources.is_empty() {
        return Ok(());
    }
    let left = |label: &Label| numbers[label.sample].is_none() || keys.row(label.key).is_none();
    profile.labels.retain(left);

    let mut whole_file = profile.sources.pop().unwrap_or_default();
    let comments = std::mem::take(&mut whole_file.comments);
    let duration = whole_file.duration.take();
    let is_left = numbers.contains(&None);
    if is_left {
        profile.add_source(std::mem::take(&mut whole_file))?;
    }
    let ids = labeled.add_to(profile)?;
    let source_of = profile.samples.source.each()?;
    for (source, number) in source_of.iter_mut().zip(&numbers) {
        *source = number.map_or(SourceId(0), |number| ids[number]);
    }
    // Information about all samples of the file is stored in the first source, from where writers
    // take it.
    let others = total_duration(&durations(profile)?).unwrap_or(0);
    let comments = without_generated(comments, profile)?;
    if let Some(first) = profile.sources.first_mut() {
        first.comments = comments;
        if is_left {
            let rest = duration.and_then(|duration| duration.checked_sub(others));
            first.duration = rest.filter(|rest| *rest > 0);
        } else {
            first.types = whole_file.types;
            first.drop_frames = whole_file.drop_frames;
            first.keep_frames = whole_file.keep_frames;
            first.doc_url = whole_file.doc_url;
        }
    }
    Ok(())
}

/// The comments without those that the writer generates for these sources.
fn without_generated(mut comments: Vec<StringId>, profile: &Profile) -> Result<Vec<StringId>> {
    let mut known = Vec::new();
    for source in profile.sources.iter().filter(|source| is_rprof(source)) {
        known.try_push(provenance(source)?)?;
    }
    known.sort_unstable();
    let is_known = |comment| {
        let text = profile.strings.get(comment);
        known
            .binary_search_by(|known| known.as_str().cmp(text))
            .is_ok()
    };
    comments.retain(|&comment| !is_known(comment));
    Ok(comments)
}

/// The value of a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LabelValue {
    str: Option<StringId>,
    num: Option<i64>,
    unit: Option<StringId>,
}

impl LabelValue {
    fn fact(self, strings: &Strings) -> Option<Fact<'_>> {
        let text = |id| strings.get(id);
        match (self.str, self.num) {
            (Some(str), None) if self.unit.is_none() => Some(Fact::Text(text(str).into())),
            (None, Some(num)) => Some(Fact::Number(num, self.unit.map_or("", text))),
            _ => None,
        }
    }
}

/// The values of the labels of a sample, in the order of [`KEYS`].
type SourceLabels = [Option<LabelValue>; KEYS.len()];

/// The ids of the keys in the profile.
struct Keys([Option<StringId>; KEYS.len()]);

impl Keys {
    fn of(strings: &Strings) -> Keys {
        let mut keys = [None; KEYS.len()];
        for (row, text) in (0..).zip(strings.iter()) {
            if let Some(key) = KEYS.iter().position(|key| *key == text) {
                keys[key] = Some(StringId(row));
            }
        }
        Keys(keys)
    }

    /// Whether the file has the key of the label that every source requires.
    fn has_source_id(&self) -> bool {
        self.0[0].is_some()
    }

    fn row(&self, key: StringId) -> Option<usize> {
        self.0.iter().position(|known| *known == Some(key))
    }

    /// `None` if no label describes a source, or a key occurs twice.
    fn values(&self, labels: &[Label]) -> Option<SourceLabels> {
        let mut values = [None; KEYS.len()];
        for &Label {
            key,
            str,
            num,
            unit,
            ..
        } in labels
        {
            if let Some(row) = self.row(key) {
                let value = LabelValue { str, num, unit };
                if values[row].replace(value).is_some() {
                    return None;
                }
            }
        }
        values.iter().any(Option::is_some).then_some(values)
    }
}

/// The sources that labels describe.
struct LabeledSources {
    /// Sets of labels, and the number of the source that each of them describes.
    sets: Interner<Vec<SourceLabels>>,
    numbers: Vec<Option<usize>>,
    /// The sources, with the numbers in their labels.
    sources: Vec<(i64, Source)>,
    bytes: Budget,
}

impl LabeledSources {
    fn new(size: usize) -> LabeledSources {
        LabeledSources {
            sets: Interner::default(),
            numbers: Vec::new(),
            sources: Vec::new(),
            bytes: Budget::by_size(size as u64, A_BYTE, AT_LEAST),
        }
    }

    /// The number of the source that these labels describe.
    fn number(&mut self, values: SourceLabels, strings: &Strings) -> Result<Option<usize>> {
        if let Some(row) = self.sets.find(values) {
            return Ok(self.numbers[row as usize]);
        }
        let number = match self.source(values, strings)? {
            Some(source) => {
                self.sources.try_push(source)?;
                Some(self.sources.len() - 1)
            }
            None => None,
        };
        self.sets.intern(values)?;
        self.numbers.try_push(number)?;
        Ok(number)
    }

    fn source(&mut self, values: SourceLabels, strings: &Strings) -> Result<Option<(i64, Source)>> {
        let mut facts: Facts = Default::default();
        let mut bytes = size_of::<Source>();
        for (fact, value) in facts.iter_mut().zip(values) {
            if let Some(value) = value {
                bytes += value.str.map_or(0, |str| strings.get(str).len());
                bytes += value.unit.map_or(0, |unit| strings.get(unit).len());
                let Some(value) = value.fact(strings) else {
                    return Ok(None);
                };
                *fact = Some(value);
            }
        }
        if !self.bytes.has(bytes as u64) {
            return Ok(None);
        };
        let source = source_labels::source(&facts)?;
        if source.is_some() {
            self.bytes.try_take(bytes as u64);
        }
        Ok(source)
    }

    /// Adds the sources in the order of the numbers in their labels, or of their first samples if two
    /// have the same number. Returns the id of each.
    fn add_to(self, profile: &mut Profile) -> Result<Vec<SourceId>> {
        let mut order = Vec::new();
        for (number, (id, _)) in self.sources.iter().enumerate() {
            order.try_push((*id, number))?;
        }
        order.sort_unstable();
        if order.windows(2).any(|two| two[0].0 == two[1].0) {
            order.sort_unstable_by_key(|(_, number)| *number);
        }
        let mut ids = Vec::new();
        ids.try_fill(order.len(), SourceId(0))?;
        let mut sources = self.sources;
        for (_, number) in order {
            let (_, source) = std::mem::take(&mut sources[number]);
            ids[number] = profile.add_source(source)?;
        }
        Ok(ids)
    }
}
