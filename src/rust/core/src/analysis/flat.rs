//! Flat rows for a data set: tables without lists, which every engine that reads Parquet can query.
//!
//! ```text
//! sums      service version host run period minute type unit stack labels trace -> value, samples
//! frames    stack, depth -> name file line package frame type
//! labels    labels -> label, value, number, unit
//! ```
//!
//! Samples of the same minute with the same stack, labels and trace are summed. Stacks and sets of labels have a key,
//! which is computed from their content (`content_keys.rs`), so that processes that never meet write equal keys. The
//! key of a stack does not depend on addresses or columns of the source text, which the frames do not contain either.

mod labels;
mod origins;
mod rows;
mod stacks;

use super::frame_names::FrameNames;
use super::measures::Measure;
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow};
use crate::model::{Label, Profile, Source};
use labels::LabelSets;
use origins::Origins;
use stacks::StackKeys;

pub use labels::{number_of, value_of};
pub use origins::Origin;
pub use rows::{Frame, Group, Sum};
pub use stacks::FrameTexts;

pub struct Flat<'p> {
    /// Sorted. The indices of origins have the order of their names.
    pub sums: Vec<Sum>,
    pub origins: Vec<Origin<'p>>,
    /// The keys of runs.
    pub runs: Interner<TextList>,
    /// Names and units.
    pub types: Vec<(&'p str, &'p str)>,
    pub stack_keys: Interner<TextList>,
    pub label_keys: Interner<TextList>,
    /// The frames of the stacks of each service. `origin` is the first one with that service.
    pub frames: Vec<Frame>,
    /// The labels of the sets of each service, with an index of `origins` and one of `label_keys`.
    pub labels: Vec<(u32, u32, Label)>,
    pub frame_texts: FrameTexts<'p>,
    /// The keys of frames, by location.
    pub frame_keys: Vec<String>,
}

/// Sums the samples of a profile. `further`: attributes that replace the attributes of resources with the same keys.
/// `call`: a text that differs each time something is stored, for the keys of runs without a time.
pub fn flat<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    further: &[(&'p str, &'p str)],
    call: &str,
    stop: Stop,
) -> Result<Flat<'p>> {
    let measures = Measure::all(profile)?;
    let frame_texts = FrameTexts::new(profile, names)?;
    let mut origins = Origins::new(profile, &measures, further, call)?;
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
    // A group has a row for each type, so that it takes less time to sort groups.
    let ranked = groups.iter().zip(0_usize..).map(|(group, row)| {
        let origin = ranks[group.origin as usize];
        (Group { origin, ..*group }, row)
    });
    let mut sorted = ranked.try_vec()?;
    sorted.sort_unstable();
    let mut sums = Vec::new();
    for of_origin in sorted.chunk_by(|(a, _), (b, _)| a.origin == b.origin) {
        for type_ in 0..measures.len() {
            for &(group, row) in of_origin {
                let (value, samples) = figures[row * measures.len() + type_];
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
    }
    let frames = stacks.frames(profile, &origins.distinct, &sums, stop)?;
    let labels = label_sets.labels(&origins.distinct, &sums)?;
    let types = measures
        .iter()
        .map(|m| (m.own_name(), m.unit()))
        .try_vec()?;
    Ok(Flat {
        sums,
        origins: origins.distinct,
        runs: origins.runs,
        types,
        stack_keys: stacks.keys,
        label_keys: label_sets.keys,
        frame_keys: stacks.location_keys,
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

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use crate::model::Link;
    use crate::model::{Attribute, AttributeValue, Period, Resource, Scope, ValueKind, ValueType};

    /// All sources are parts of one run.
    fn one_run(stacks: &[(&str, f64)]) -> Profile {
        let mut profile = testing::profile(stacks);
        for source in &mut profile.sources {
            source.profile_id = Some("1".to_owned());
        }
        profile
    }

    fn rows<T>(profile: &Profile, further: &[(&str, &str)], read: impl FnOnce(&Flat) -> T) -> T {
        let names = FrameNames::new(profile).unwrap();
        read(&flat(profile, &names, further, "call", &|| false).unwrap())
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
        let mut profile = one_run(&[
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
            rows(&one_run(stacks), &[], |flat| {
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
        let mut profile = one_run(&[("a", 1.0), ("a", 2.0), ("a", 4.0), ("a", 8.0)]);
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

    /// The key and the start of the run of each source.
    fn runs(profile: &Profile, further: &[(&str, &str)]) -> Vec<(String, Option<i64>)> {
        rows(profile, further, |flat| {
            let mut found = vec![None; profile.sources.len()];
            for sum in &flat.sums {
                let origin = flat.origins[sum.group.origin as usize];
                let run = (flat.runs.get(origin.run).to_owned(), origin.start);
                // The source with this value.
                found[sum.value as usize - 1] = Some(run);
            }
            found.into_iter().flatten().collect()
        })
    }

    #[test]
    fn a_run_is_a_source_or_a_process() {
        let mut profile = one_run(&[("a", 1.0), ("a", 2.0)]);
        profile.sources[0].timestamp = Some(5.5);
        profile.sources[1].timestamp = Some(65.0);
        let two = runs(&profile, &[]);
        assert_ne!(two[0].0, two[1].0);
        assert_eq!((two[0].1, two[1].1), (Some(5), Some(65)));
        // Another profile of the same run has the same key.
        let mut other = one_run(&[("b", 1.0)]);
        other.sources[0].timestamp = Some(5.5);
        assert_eq!(runs(&other, &[]), two[..1]);
        // The parts of an agent.
        let of_process = [
            ("service.instance.id", "7"),
            ("process.creation.time", "1970-01-01T00:00:03Z"),
        ];
        let parts = runs(&profile, &of_process);
        assert_eq!(parts[0], parts[1]);
        assert_eq!(parts[0].1, Some(3));
        assert_ne!(parts, runs(&profile, &[("service.instance.id", "8")]));
        // What was read from a store keeps its key.
        let key = profile.strings.intern(crate::model::RUN).unwrap();
        let text = profile.strings.intern("k").unwrap();
        let value = AttributeValue {
            kind: ValueKind::String,
            text,
        };
        profile.sources[0].attributes = vec![Attribute::new(key, value)];
        assert_eq!(runs(&profile, &[])[0], ("k".to_owned(), Some(5)));
    }

    #[test]
    fn sources_without_a_time_are_runs_of_their_own() {
        let mut profile = testing::profile(&[("a", 1.0), ("a", 2.0)]);
        for source in &mut profile.sources {
            source.timestamp = None;
        }
        let keys = |profile: &Profile, call: &str| {
            let names = FrameNames::new(profile).unwrap();
            let flat = flat(profile, &names, &[], call, &|| false).unwrap();
            flat.runs.iter().map(String::from).collect::<Vec<_>>()
        };
        let all = [keys(&profile, "one"), keys(&profile, "two")].concat();
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 4);
        // A time identifies a run, also in other calls.
        profile.sources[0].timestamp = Some(5.0);
        let [one, two] = ["one", "two"].map(|call| keys(&profile, call));
        assert_eq!(one[0], two[0]);
        assert_ne!(one[1], two[1]);
    }

    #[test]
    fn a_sum_has_the_period_and_the_default_type_of_its_source() {
        let mut profile = one_run(&[("a", 1.0), ("a", 2.0)]);
        profile.sources[1].period = Some(Period {
            value: 10.0,
            exact: None,
            type_: Some(ValueType {
                name: "cpu".to_owned(),
                unit: "milliseconds".to_owned(),
            }),
        });
        rows(&profile, &[], |flat| {
            let of_sum = |sum: &Sum| flat.origins[sum.group.origin as usize];
            let sampled = flat.sums.iter().map(|sum| (sum.value, of_sum(sum).period));
            assert_eq!(
                sampled.collect::<Vec<_>>(),
                [
                    (1.0, None),
                    (2.0, Some((10, Some(("cpu", "milliseconds")))))
                ]
            );
            assert_eq!(of_sum(&flat.sums[0]).default_type, Some(0));
        });
    }

    #[test]
    fn rows_are_sorted_by_what_was_profiled() {
        let mut profile = one_run(&[("a", 1.0), ("a", 2.0)]);
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
