//! Flat rows for a data set: tables without lists, which every engine that reads Parquet can query.
//!
//! ```text
//! sums      service version host minute type unit stack labels trace -> value, samples
//! frames    stack, depth -> name file line package frame type
//! labels    labels -> label, value, number, unit
//! ```
//!
//! Samples of the same minute with the same stack, labels and trace are summed. Stacks and sets of labels have a key,
//! which is computed from their content (`content_keys.rs`), so that processes that never meet write equal keys. The
//! key of a stack does not depend on addresses or columns of the source text, which the frames do not contain either.

use super::content_keys::{Cells, content_keys, key};
use super::frame_names::{FrameNames, shown};
use super::measures::Measure;
use super::packages::package_of;
use crate::collections::{Interner, Lists, TextList};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{
    TryAdd, TryCollect, TryGrow, copied, filled, sort_by_key, with_room, written,
};
use crate::model::{Label, LocationId, Profile, Source, StackId, StringId, integer_for_r};
use crate::schema::NA;
use foldhash::fast::RandomState;
use hmac_sha256::Hash;
use std::borrow::Cow;
use std::collections::HashSet;

/// The name that OpenTelemetry's SDKs give to a service without one. Tables are joined by the service, so it is never
/// missing.
const UNKNOWN_SERVICE: &str = "unknown_service";

/// What was profiled: the attributes `service.name`, `service.version` and `host.name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin<'p> {
    pub service: &'p str,
    pub version: Option<&'p str>,
    pub host: Option<&'p str>,
}

/// The sum of the values of one type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum {
    pub group: Group,
    /// An index of `types`.
    pub type_: usize,
    pub value: f64,
    pub samples: u32,
}

/// What the samples of a sum have in common. The fields are in the order in which rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// An index of `origins`.
    pub origin: u32,
    /// Minutes since 1970, if the time is known.
    pub minute: Option<i64>,
    /// An index of `stack_keys`.
    pub stack: u32,
    /// An index of `label_keys`.
    pub labels: Option<u32>,
    pub trace: Option<StringId>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub origin: u32,
    pub stack: u32,
    /// 1 for the innermost frame.
    pub depth: u32,
    pub location: LocationId,
}

pub struct Flat<'p> {
    /// Sorted. The indices of origins have the order of their names.
    pub sums: Vec<Sum>,
    pub origins: Vec<Origin<'p>>,
    /// Names and units.
    pub types: Vec<(&'p str, &'p str)>,
    pub stack_keys: Interner<TextList>,
    pub label_keys: Interner<TextList>,
    /// The frames of the stacks of each service. `origin` is the first one with that service.
    pub frames: Vec<Frame>,
    /// The labels of the sets of each service, with an index of `origins` and one of `label_keys`.
    pub labels: Vec<(u32, u32, Label)>,
    pub frame_texts: FrameTexts<'p>,
}

/// The columns of frames, by location.
pub struct FrameTexts<'p> {
    pub names: Vec<Cow<'p, str>>,
    pub files: Vec<Option<&'p str>>,
    /// NA if it is unknown.
    pub lines: Vec<i32>,
    pub packages: Vec<Option<&'p str>>,
    pub types: Vec<Option<&'p str>>,
}

/// Sums the samples of a profile. `further`: attributes that replace the attributes of resources with the same keys.
pub fn flat<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    further: &[(&'p str, &'p str)],
    stop: Stop,
) -> Result<Flat<'p>> {
    let measures = Measure::all(profile)?;
    let frame_texts = FrameTexts::new(profile, names)?;
    let mut origins = Origins::new(profile, further)?;
    let mut stacks = StackKeys::new(profile, &frame_texts, stop)?;
    let mut label_sets = LabelSets::default();
    let mut groups: Interner<Vec<Group>> = Interner::default();
    // For each group and type, the sum and the number of its samples.
    let mut figures: Vec<(f64, u32)> = Vec::new();
    let mut times = profile.samples.times.iter().peekable();
    let mut links = profile.samples.links.iter().peekable();
    let mut labels = profile.labels.as_slice();
    for row in 0..profile.samples.len() {
        cancel::at_row(row, stop)?;
        let source = profile.samples.source[row];
        let time = times.next_if(|(sample, _)| *sample == row);
        let link = links.next_if(|(sample, _)| *sample == row);
        let count = labels.iter().take_while(|l| l.sample == row).count();
        let (own, rest) = labels.split_at(count);
        labels = rest;
        let group = Group {
            origin: origins.of_source[source.row()],
            minute: match time {
                Some((_, nanoseconds)) => Some(nanoseconds.div_euclid(60_000_000_000)),
                None => minute_of(&profile.sources[source.row()]),
            },
            stack: stacks.number(profile, profile.samples.stack[row])?,
            labels: label_sets.number(profile, own)?,
            trace: link.map(|(_, link)| link.trace_id),
        };
        let group = groups.intern(group)? as usize;
        if figures.len() <= group * measures.len() {
            figures.try_fill((group + 1) * measures.len(), (0.0, 0))?;
        }
        for (figure, measure) in figures[group * measures.len()..].iter_mut().zip(&measures) {
            let value = measure.value(row, source);
            if !value.is_nan() {
                *figure = (figure.0 + value, figure.1.saturating_add(1));
            }
        }
    }
    let ranks = origins.sort()?;
    let mut sums = Vec::new();
    for (group, of_types) in groups.iter().zip(figures.chunks(measures.len().max(1))) {
        let group = Group {
            origin: ranks[group.origin as usize],
            ..*group
        };
        for (type_, &(value, samples)) in of_types.iter().enumerate() {
            if samples > 0 {
                sums.try_push(Sum {
                    group,
                    type_,
                    value,
                    samples,
                })?;
            }
        }
    }
    sort_by_key(&mut sums, |sum| (sum.group.origin, sum.type_, sum.group))?;
    let frames = stacks.frames(profile, &origins.distinct, &sums, stop)?;
    let labels = label_sets.labels(&origins.distinct, &sums)?;
    let types = measures.iter().map(|m| (m.name(), m.unit())).try_vec()?;
    Ok(Flat {
        sums,
        origins: origins.distinct,
        types,
        stack_keys: stacks.keys,
        label_keys: label_sets.keys,
        frames,
        labels,
        frame_texts,
    })
}

/// The minute in which a run began.
fn minute_of(source: &Source) -> Option<i64> {
    let seconds = source.timestamp.filter(|seconds| seconds.is_finite())?;
    Some((seconds / 60.0).floor() as i64)
}

struct Origins<'p> {
    distinct: Vec<Origin<'p>>,
    /// An index for each source.
    of_source: Vec<u32>,
}

impl<'p> Origins<'p> {
    fn new(profile: &'p Profile, further: &[(&'p str, &'p str)]) -> Result<Origins<'p>> {
        let mut distinct: Interner<Vec<Origin>> = Interner::default();
        let mut of_source = with_room(profile.sources.len())?;
        for source in &profile.sources {
            let scope = source.scope.map(|scope| &profile.scopes[scope.row()]);
            let resource = scope.map(|scope| &profile.resources[scope.resource.row()]);
            let attribute = |key: &str| {
                let own = further.iter().find(|(name, _)| *name == key);
                let stored = || {
                    let text = |id| profile.strings.get(id);
                    let mut all = resource?.attributes.iter();
                    let found = all.find(|attribute| text(attribute.key) == key)?;
                    Some(text(found.value.text))
                };
                own.map(|(_, value)| *value)
                    .or_else(stored)
                    .filter(|value| !value.is_empty())
            };
            let origin = Origin {
                service: attribute("service.name").unwrap_or(UNKNOWN_SERVICE),
                version: attribute("service.version"),
                host: attribute("host.name"),
            };
            of_source.try_push(distinct.intern(origin)?)?;
        }
        Ok(Origins {
            distinct: distinct.iter().copied().try_vec()?,
            of_source,
        })
    }

    /// Sorts the origins by their names. Returns the new index of each.
    fn sort(&mut self) -> Result<Vec<u32>> {
        let mut order = (0..self.distinct.len() as u32).try_vec()?;
        sort_by_key(&mut order, |&index| self.distinct[index as usize])?;
        let mut ranks = filled(order.len(), 0)?;
        for (rank, &index) in order.iter().enumerate() {
            ranks[index as usize] = rank as u32;
        }
        self.distinct = order.iter().map(|&i| self.distinct[i as usize]).try_vec()?;
        Ok(ranks)
    }
}

/// The pairs of a service and a value that occur in sums, sorted. A service is the first origin that has it.
fn pairs_with_services(
    origins: &[Origin],
    sums: &[Sum],
    value: impl Fn(&Group) -> Option<u32>,
) -> Result<Vec<(u32, u32)>> {
    let mut first = filled(origins.len(), 0_u32)?;
    for index in 1..origins.len() {
        let same = origins[index].service == origins[index - 1].service;
        first[index] = if same { first[index - 1] } else { index as u32 };
    }
    let mut seen: HashSet<(u32, u32), RandomState> = HashSet::default();
    let mut pairs = Vec::new();
    for sum in sums {
        if let Some(value) = value(&sum.group) {
            let pair = (first[sum.group.origin as usize], value);
            if seen.try_add(pair)? {
                pairs.try_push(pair)?;
            }
        }
    }
    sort_by_key(&mut pairs, |pair| *pair)?;
    Ok(pairs)
}

impl<'p> FrameTexts<'p> {
    fn new(profile: &'p Profile, names: &'p FrameNames) -> Result<FrameTexts<'p>> {
        let count = profile.locations.len();
        let mut texts = FrameTexts {
            names: with_room(count)?,
            files: with_room(count)?,
            lines: with_room(count)?,
            packages: with_room(count)?,
            types: with_room(count)?,
        };
        for id in profile.locations.ids() {
            let frame = shown(profile, id)?;
            texts.names.try_push(Cow::Borrowed(names.of(id)))?;
            let file = Some(frame.file).filter(|file| !file.is_empty());
            texts.files.try_push(file)?;
            let line = integer_for_r(frame.line);
            texts.lines.try_push(if line == 0 { NA } else { line })?;
            texts.packages.try_push(package_of(profile, id))?;
            let location = profile.locations.get(id);
            texts.types.try_push(profile.frame_type_of(&location))?;
        }
        Ok(texts)
    }

    /// The keys of all locations.
    fn keys(&self, stop: Stop) -> Result<Vec<String>> {
        let names = self
            .names
            .iter()
            .map(|name| Some(name.as_ref()))
            .try_vec()?;
        let optional = |texts: &[Option<&'p str>]| copied(texts).map(Cells::Texts);
        let mut columns = [
            ("name", Cells::Texts(names)),
            ("file", optional(&self.files)?),
            ("line", Cells::Integers(&self.lines)),
            ("package", optional(&self.packages)?),
            ("frame_type", optional(&self.types)?),
        ];
        content_keys(&mut columns, None, self.names.len(), stop)
    }
}

/// Numbers stacks by their keys: stacks whose frames look the same have the same number.
struct StackKeys {
    location_keys: Vec<String>,
    keys: Interner<TextList>,
    /// A stack for each key.
    examples: Vec<StackId>,
    /// The number of each stack that has been looked up.
    numbers: Vec<Option<u32>>,
    space: Vec<LocationId>,
}

impl StackKeys {
    fn new(profile: &Profile, texts: &FrameTexts, stop: Stop) -> Result<StackKeys> {
        Ok(StackKeys {
            location_keys: texts.keys(stop)?,
            keys: Interner::default(),
            examples: Vec::new(),
            numbers: filled(profile.stacks.len(), None)?,
            space: Vec::new(),
        })
    }

    fn number(&mut self, profile: &Profile, stack: StackId) -> Result<u32> {
        if let Some(number) = self.numbers[stack.row()] {
            return Ok(number);
        }
        let mut hash = Hash::new();
        // All keys have the same length, so that different lists never have the same bytes.
        for location in profile.stacks.get(stack).unpacked(&mut self.space)? {
            hash.update(&self.location_keys[location.row()]);
        }
        let number = self.keys.intern(&key(hash)?)?;
        if number as usize == self.examples.len() {
            self.examples.try_push(stack)?;
        }
        self.numbers[stack.row()] = Some(number);
        Ok(number)
    }

    fn frames(
        &self,
        profile: &Profile,
        origins: &[Origin],
        sums: &[Sum],
        stop: Stop,
    ) -> Result<Vec<Frame>> {
        let mut frames = Vec::new();
        let pairs = pairs_with_services(origins, sums, |group| Some(group.stack))?;
        let mut space = Vec::new();
        for (row, &(origin, stack)) in pairs.iter().enumerate() {
            cancel::at_row(row, stop)?;
            let example = profile.stacks.get(self.examples[stack as usize]);
            for (depth, &location) in (1..).zip(example.unpacked(&mut space)?) {
                frames.try_push(Frame {
                    origin,
                    stack,
                    depth,
                    location,
                })?;
            }
        }
        Ok(frames)
    }
}

/// Numbers sets of labels by their keys.
#[derive(Default)]
struct LabelSets {
    /// The sets as they occur. The same labels in another order are another list with the same key.
    lists: Interner<Lists<Label>>,
    number_of_list: Vec<u32>,
    keys: Interner<TextList>,
    /// The list of each key.
    examples: Vec<u32>,
    list: Vec<Label>,
}

impl LabelSets {
    fn number(&mut self, profile: &Profile, labels: &[Label]) -> Result<Option<u32>> {
        if labels.is_empty() {
            return Ok(None);
        }
        self.list.clear();
        for label in labels {
            self.list.try_push(Label {
                sample: 0,
                ..*label
            })?;
        }
        let list = self.lists.intern(&self.list)?;
        if list as usize == self.number_of_list.len() {
            let number = self.keys.intern(&key_of_labels(profile, labels)?)?;
            if number as usize == self.examples.len() {
                self.examples.try_push(list)?;
            }
            self.number_of_list.try_push(number)?;
        }
        Ok(Some(self.number_of_list[list as usize]))
    }

    fn labels(&self, origins: &[Origin], sums: &[Sum]) -> Result<Vec<(u32, u32, Label)>> {
        let mut all = Vec::new();
        for (origin, set) in pairs_with_services(origins, sums, |group| group.labels)? {
            for &label in self.lists.get(self.examples[set as usize]) {
                all.try_push((origin, set, label))?;
            }
        }
        Ok(all)
    }
}

fn key_of_labels(profile: &Profile, labels: &[Label]) -> Result<String> {
    let text = |id: StringId| profile.strings.get(id);
    let values = labels.iter().map(|l| value_of(profile, l)).try_vec_of()?;
    let numbers = labels.iter().map(number_of).try_vec()?;
    let mut columns = [
        (
            "label",
            Cells::Texts(labels.iter().map(|l| Some(text(l.key))).try_vec()?),
        ),
        (
            "value",
            Cells::Texts(values.iter().map(|v| Some(v.as_ref())).try_vec()?),
        ),
        ("number", Cells::Numbers(&numbers)),
        (
            "unit",
            Cells::Texts(labels.iter().map(|l| l.unit.map(text)).try_vec()?),
        ),
    ];
    let mut keys = content_keys(&mut columns, None, labels.len(), &|| false)?;
    sort_by_key(&mut keys, |key| key.clone())?;
    let mut hash = Hash::new();
    keys.iter().for_each(|key| hash.update(key));
    key(hash)
}

/// The value of a label as a text.
pub fn value_of<'p>(profile: &'p Profile, label: &Label) -> Result<Cow<'p, str>> {
    match (label.str, label.num, label.other) {
        (Some(text), ..) => Ok(Cow::Borrowed(profile.strings.get(text))),
        (None, Some(number), _) => Ok(Cow::Owned(written(format_args!("{number}"))?)),
        (None, None, Some(other)) => Ok(Cow::Borrowed(profile.strings.get(other.text))),
        (None, None, None) => Ok(Cow::Borrowed("")),
    }
}

/// The value of a label as a number; NaN if it is not an integer.
pub fn number_of(label: &Label) -> f64 {
    label.num.map_or(f64::NAN, |number| number as f64)
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::model::Link;
    use crate::model::{Attribute, AttributeValue, Resource, Scope, ValueKind};

    fn rows<T>(profile: &Profile, further: &[(&str, &str)], read: impl FnOnce(&Flat) -> T) -> T {
        let names = FrameNames::new(profile).unwrap();
        read(&flat(profile, &names, further, &|| false).unwrap())
    }

    fn label(profile: &mut Profile, sample: usize, key: &str, value: &str) -> Label {
        let key = profile.strings.intern(key).unwrap();
        Label {
            str: Some(profile.strings.intern(value).unwrap()),
            ..Label::new(sample, key)
        }
    }

    #[test]
    fn samples_of_a_minute_with_the_same_stack_are_summed() {
        let mut profile = testing::profile(&[
            ("a>b", 1.0),
            ("a>b", 2.0),
            ("a>b", 4.0),
            ("a", 8.0),
            ("", 16.0),
        ]);
        // The last two are before 1970 and without a time of their own.
        let second = 1_000_000_000;
        profile.samples.times = vec![
            (0, 61 * second),
            (1, 119 * second),
            (2, 120 * second),
            (3, -1),
        ];
        rows(&profile, &[], |flat| {
            let sums = flat
                .sums
                .iter()
                .map(|sum| (sum.group.minute, sum.value, sum.samples));
            assert_eq!(
                sums.collect::<Vec<_>>(),
                [
                    (None, 16.0, 1),
                    (Some(-1), 8.0, 1),
                    (Some(1), 3.0, 2),
                    (Some(2), 4.0, 1)
                ]
            );
            assert_eq!(flat.types, [("samples", "count")]);
            assert_eq!(flat.stack_keys.len(), 3);
            // Two frames of `a>b`, one of `a`, and none of the empty stack.
            let depths = flat.frames.iter().map(|frame| frame.depth);
            assert_eq!(depths.collect::<Vec<_>>(), [1, 2, 1]);
            assert_eq!(flat.frame_texts.names[flat.frames[0].location.row()], "b");
        });
    }

    #[test]
    fn equal_stacks_have_equal_keys_in_every_profile() {
        let keys = |stacks: &[(&str, f64)]| {
            rows(&testing::profile(stacks), &[], |flat| {
                flat.stack_keys.iter().map(String::from).collect::<Vec<_>>()
            })
        };
        let one = keys(&[("a>p.b:3", 1.0), ("a", 1.0)]);
        assert_eq!(
            keys(&[("c", 1.0), ("a", 1.0), ("a>p.b:3", 1.0)])[1..],
            [one[1].clone(), one[0].clone()]
        );
        for other in ["a>p.b:4", "a>b:3", "p.b:3>a", "a>p.b:3>a"] {
            assert!(!one.contains(&keys(&[(other, 1.0)])[0]), "{other}");
        }
        // The keys are stored in data sets of users. Python's `hashlib` computes the same ones.
        assert_eq!(one, ["qLWBQjnkUKfXshhTUlarFA", "DdnewUKqfIi3fDAXHrAM_Q"]);
    }

    #[test]
    fn labels_have_the_same_key_in_any_order() {
        let mut profile = testing::profile(&[("a", 1.0), ("a", 2.0), ("a", 4.0), ("a", 8.0)]);
        let mut labels = vec![
            label(&mut profile, 0, "k", "v"),
            label(&mut profile, 0, "l", "5"),
            label(&mut profile, 1, "l", "5"),
            label(&mut profile, 1, "k", "v"),
            label(&mut profile, 2, "k", "v"),
            label(&mut profile, 2, "l", "5"),
        ];
        labels[5] = Label {
            str: None,
            num: Some(5),
            ..labels[5]
        };
        profile.labels = labels;
        rows(&profile, &[], |flat| {
            let sums = flat.sums.iter().map(|sum| (sum.group.labels, sum.value));
            assert_eq!(
                sums.collect::<Vec<_>>(),
                [(None, 8.0), (Some(0), 3.0), (Some(1), 4.0)]
            );
            assert_eq!(flat.labels.len(), 4);
            assert_eq!(value_of(&profile, &flat.labels[3].2).unwrap(), "5");
            assert_eq!(number_of(&flat.labels[3].2), 5.0);
            assert!(number_of(&flat.labels[1].2).is_nan());
        });
    }

    #[test]
    fn rows_are_sorted_by_what_was_profiled() {
        let mut profile = testing::profile(&[("a", 1.0), ("a", 2.0)]);
        for (source, service) in ["web", "batch"].into_iter().enumerate() {
            let key = profile.strings.intern("service.name").unwrap();
            let text = profile.strings.intern(service).unwrap();
            let value = AttributeValue {
                kind: ValueKind::String,
                text,
            };
            let resource = Resource {
                attributes: vec![Attribute::new(key, value)],
                ..Resource::default()
            };
            let resource = profile.add_resource(resource).unwrap();
            profile.sources[source].scope = Some(profile.add_scope(Scope::of(resource)).unwrap());
        }
        let trace_id = profile
            .strings
            .intern("0af7651916cd43dd8448eb211c80319c")
            .unwrap();
        profile.samples.links = vec![(
            1,
            Link {
                trace_id,
                span_id: trace_id,
            },
        )];
        rows(&profile, &[("service.version", "2.3")], |flat| {
            let services = flat
                .origins
                .iter()
                .map(|origin| (origin.service, origin.version));
            let version = Some("2.3");
            assert_eq!(
                services.collect::<Vec<_>>(),
                [("batch", version), ("web", version)]
            );
            let sums = flat.sums.iter().map(|sum| (sum.value, sum.group.trace));
            assert_eq!(
                sums.collect::<Vec<_>>(),
                [(2.0, Some(trace_id)), (1.0, None)]
            );
            // The stack of each service.
            assert_eq!(flat.frames.len(), 2);
        });
        rows(&profile, &[("service.name", "all")], |flat| {
            assert_eq!(flat.origins.len(), 1);
            assert_eq!(flat.origins[0].service, "all");
            assert_eq!(flat.frames.len(), 1);
        });
    }
}
