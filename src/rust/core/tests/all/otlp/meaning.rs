//! Tests of `content()`: it is equal for messages that differ only in their encoding, and different
//! for all others.

use super::content::*;
use super::irregular::irregular;
use super::message::*;
use super::references::each_index;
use super::same::{assert_same, difference};
use super::whole::whole;

/// A message with the same content: with reordered tables and attributes, duplicate and unused
/// rows, inline strings, and a sample for each observation.
fn disguised(mut data: Data) -> Data {
    let lengths = lengths(&mut data.dictionary);
    if lengths[4] == 0 {
        return data;
    }
    each_index(&mut data, "", &mut |table, index, _| {
        *index = turned(*index, lengths[table])
    });
    let d = &mut data.dictionary;
    turn(&mut d.mapping_table);
    turn(&mut d.location_table);
    turn(&mut d.function_table);
    turn(&mut d.link_table);
    turn(&mut d.string_table);
    turn(&mut d.attribute_table);
    turn(&mut d.stack_table);
    let strings = d.string_table.clone();
    for attribute in &mut d.attribute_table {
        attribute.value = by_value(&strings, std::mem::take(&mut attribute.value));
    }
    for resource in &mut data.resource_profiles {
        resource.resource.attributes.reverse();
        for attribute in &mut resource.resource.attributes {
            let key = attribute.key_strindex as usize;
            if key != 0 {
                attribute.key = strings[key].clone();
                attribute.key_strindex = 0;
            }
        }
        for profile in resource
            .scope_profiles
            .iter_mut()
            .flat_map(|s| &mut s.profiles)
        {
            profile.attribute_indices.reverse();
            let samples = std::mem::take(&mut profile.samples);
            profile.samples = samples.into_iter().flat_map(split).collect();
        }
    }
    data.resource_profiles.push(ResourceProfiles::default());
    data
}

fn lengths(d: &mut Dictionary) -> Vec<usize> {
    let fields = d.fields(Layout::V11).into_iter();
    let lengths = fields.map(|(_, _, slot)| match slot {
        Slot::Many(items) => items.all().len(),
        Slot::Strings(items) => items.len(),
        _ => unreachable!(),
    });
    lengths.collect()
}

/// Reverses and duplicates all rows except the first.
fn turn<T: Clone>(rows: &mut Vec<T>) {
    let tail: Vec<_> = rows
        .drain(1..)
        .rev()
        .flat_map(|row| [row.clone(), row])
        .collect();
    rows.extend(tail);
}

fn turned(index: i32, length: usize) -> i32 {
    match index {
        0 => 0,
        _ => 2 * (length as i32 - index),
    }
}

fn by_value(strings: &[String], value: AnyValue) -> AnyValue {
    match value {
        AnyValue::StringStrindex(index) => AnyValue::String(strings[index as usize].clone()),
        AnyValue::Kvlist(pairs) => AnyValue::Kvlist(pairs.into_iter().rev().collect()),
        value => value,
    }
}

/// Splits a sample into one sample per observation, with the value 1 if there was none.
fn split(sample: Sample) -> Vec<Sample> {
    let count = sample.values.len().max(sample.timestamps_unix_nano.len());
    let single = (0..count).map(|i| Sample {
        values: vec![sample.values.get(i).copied().unwrap_or(1)],
        timestamps_unix_nano: sample
            .timestamps_unix_nano
            .get(i)
            .copied()
            .into_iter()
            .collect(),
        ..sample.clone()
    });
    single.collect()
}

#[test]
fn the_way_of_saying_does_not_matter() {
    for layout in [Layout::V9, Layout::V11] {
        for seed in 0..100 {
            let data = irregular(seed, layout, false);
            let disguised = disguised(data.clone());
            assert_same(&content(&data), &content(&disguised));
        }
    }
}

/// Changes the value of a field. Returns false if the field has no value.
fn change(slot: Slot) -> bool {
    fn last<T>(values: &mut [T], change: impl Fn(&mut T)) -> bool {
        values.last_mut().map(change).is_some()
    }
    let other = |index: &mut i32| *index = i32::from(*index == 0);
    match slot {
        Slot::Int32(v) => other(v),
        Slot::Int64(v) => *v += 1,
        Slot::Uint32(v) => *v += 1,
        Slot::Uint64(v) | Slot::Fixed64(v) => *v += 1,
        Slot::String(v) => v.push('x'),
        Slot::Bytes(v) | Slot::Id(v) => v.push(1),
        Slot::Int32s(v) => return last(v, other),
        Slot::Int64s(v) => return last(v, |v| *v += 1),
        Slot::Fixed64s(v) => return last(v, |v| *v += 1),
        Slot::Strings(v) => return last(v, |v| v.push('x')),
        Slot::Any(v) => *v = AnyValue::Bool(*v != AnyValue::Bool(true)),
        Slot::One(_) | Slot::Many(_) => return false,
    }
    true
}

#[test]
fn every_field_matters() {
    let before = content(&whole());
    let mut changed = 0;
    for wanted in 0.. {
        let mut data = whole();
        let (mut count, mut place) = (0, None);
        walk(&mut data, "", &mut |at, name, slot| {
            // The content of first rows does not matter.
            let matters = !at.contains("Table[0]");
            if count == wanted && matters && change(slot) {
                place = Some(format!("{at}.{name}"));
            }
            count += 1;
        });
        if count <= wanted {
            break;
        }
        if let Some(place) = place {
            changed += 1;
            assert!(difference(&before, &content(&data)).is_some(), "{place}");
        }
    }
    assert!(changed > 90, "{changed}");
}

#[test]
fn every_sample_and_profile_matters() {
    let before = content(&whole());
    let drops: [fn(&mut Data); 4] = [
        |data| data.resource_profiles.clear(),
        |data| drop(data.resource_profiles[0].scope_profiles[0].profiles.pop()),
        |data| {
            drop(
                data.resource_profiles[0].scope_profiles[0].profiles[0]
                    .samples
                    .pop(),
            )
        },
        |data| data.dictionary.location_table[1].lines.clear(),
    ];
    for (i, drop) in drops.iter().enumerate() {
        let mut data = whole();
        drop(&mut data);
        assert!(difference(&before, &content(&data)).is_some(), "{i}");
    }
}

/// The content of `whole()`, written by hand.
#[test]
fn content_is_resolved() {
    let content = content(&whole());
    let resource = &content.resources[0];
    assert_eq!(
        resource.facts.attributes[0].value,
        Resolved::String("r".to_string())
    );
    let profile = &resource.scopes[0].profiles[1];
    let facts = &profile.facts;
    assert_eq!(
        facts.sample_type,
        ("samples".to_string(), "count".to_string())
    );
    assert_eq!(facts.comments, ["note"]);
    let keys: Vec<_> = facts.attributes.iter().map(|a| a.key.as_str()).collect();
    assert_eq!(keys, ["pprof.profile.doc_url"]);

    let seen = profile.observations.iter();
    let seen: Vec<_> = seen
        .map(|o| (o.value, o.timestamp, o.attributes[0].key.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            (3, Some(100), "allocation"),
            (4, Some(109), "allocation"),
            (3, Some(100), "nested"),
            (4, Some(109), "nested")
        ]
    );
    let observation = &profile.observations[0];
    assert_eq!(observation.link, Some((vec![1; 16], vec![2; 8])));
    assert_eq!(
        (
            observation.attributes[0].unit.as_str(),
            observation.stack.len()
        ),
        ("By", 2)
    );
    let frame = &observation.stack[0];
    assert_eq!(
        (frame.address, frame.lines[0].line, frame.lines[0].column),
        (0x1800, 3, 1)
    );
    let code = &frame.lines[0].function;
    assert_eq!(
        (code.name.as_str(), code.filename.as_str(), code.start_line),
        ("f", "f.c", 2)
    );
    let module = frame.mapping.as_ref().unwrap();
    assert_eq!(
        (module.filename.as_str(), module.attributes.len()),
        ("lib.so", 2)
    );
}

#[test]
fn time_stamps_alone_have_the_value_1() {
    let mut data = whole();
    let profile = &mut data.resource_profiles[0].scope_profiles[0].profiles[0];
    profile.samples[0].values.clear();
    let content = content(&data);
    let observations = &content.resources[0].scopes[0].profiles[0].observations;
    let values: Vec<_> = observations.iter().map(|o| o.value).collect();
    assert_eq!(values, [1, 1, 3, 4]);
}

#[test]
fn comments_have_two_forms() {
    let with = |pairs: &[(&str, AnyValue)]| {
        let mut data = whole();
        let d = &mut data.dictionary;
        let profile = &mut data.resource_profiles[0].scope_profiles[0].profiles[0];
        profile.attribute_indices.clear();
        for (key, value) in pairs {
            d.string_table.push(key.to_string());
            profile
                .attribute_indices
                .push(d.attribute_table.len() as i32);
            d.attribute_table.push(KeyValueAndUnit {
                key_strindex: d.string_table.len() as i32 - 1,
                value: value.clone(),
                unit_strindex: 0,
            });
        }
        content(&data).resources[0].scopes[0].profiles[0]
            .facts
            .clone()
    };
    let text = |text: &str| AnyValue::String(text.to_string());
    let list = AnyValue::Array(vec![text("z"), text("a")]);
    let facts = with(&[("pprof.profile.comment", list)]);
    assert_eq!(
        (&facts.comments[..], facts.attributes.len()),
        (&["z".to_string(), "a".to_string()][..], 0)
    );
    // Keys are ordered by number, not as text.
    let numbered = [
        ("pprof.profile.comment.10", text("a")),
        ("pprof.profile.comment.9", text("z")),
    ];
    assert_eq!(with(&numbered), facts);
    // Attributes that are not comments stay attributes.
    let facts = with(&[
        ("pprof.profile.comment", AnyValue::Int(1)),
        ("pprof.profile.comment.x", text("a")),
    ]);
    assert_eq!((facts.comments.len(), facts.attributes.len()), (0, 2));
}

#[test]
fn differences_are_shown_where_they_are() {
    let mut data = whole();
    data.resource_profiles[0].scope_profiles[0].profiles[1].samples[1].values[0] = 5;
    let (left, right) = (content(&whole()), content(&data));
    let shown = difference(&left, &right).unwrap();
    assert!(
        shown.starts_with("/resource 0/scope 0/profile 1/observation 2, from line"),
        "{shown}"
    );
    assert!(
        shown.contains("value: 3,") && shown.contains("value: 5,"),
        "{shown}"
    );

    // After sorting, the order of samples does not matter.
    data = whole();
    data.resource_profiles[0].scope_profiles[0].profiles[1]
        .samples
        .reverse();
    assert!(difference(&left, &content(&data)).is_some());
    assert_same(&left.sorted(), &content(&data).sorted());
}
