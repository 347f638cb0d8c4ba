//! Round trips: irregular messages have the same content after they were read and written.
//!
//! The exceptions are in [`settled()`]: they are documented as not kept.

use super::check::{Level, grave, violations};
use super::content::*;
use super::irregular::irregular;
use super::json::{from_json, to_json};
use super::message::*;
use super::recorded::as_recorded;
use super::same::assert_same;
use super::whole::whole;
use super::wire::{Form, Packing, decode, encode, encode_as};
use profile_core::formats::otlp::{self, Writer};
use profile_core::formats::problems::Problems;
use profile_core::formats::{self, Input, Writer as _};
use profile_core::io::input::Origin;
use profile_core::model::Profile;
use std::rc::Rc;

const GO_ON: &dyn Fn() -> bool = &|| false;
/// How many messages the tests use, and how many if they are thorough.
const SEEDS: u64 = 150;
const MANY_SEEDS: u64 = 3000;

fn read(bytes: &[u8]) -> (Profile, Problems) {
    let origin = Origin {
        name: "irregular".to_owned(),
        ..Origin::default()
    };
    formats::read(Input::Bytes(bytes), Some(&otlp::FORMAT), origin, GO_ON)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn write(profile: &Profile, options: &Writer) -> Vec<u8> {
    let mut bytes = Vec::new();
    options
        .write(profile, &mut bytes, GO_ON)
        .unwrap_or_else(|error| panic!("{error}"));
    bytes
}

fn written(profile: &Profile, options: &Writer) -> Data {
    decode(&write(profile, options), Layout::V11).unwrap()
}

/// Removes what is not kept from the content of a message.
fn settled(mut content: Content) -> Content {
    for resource in &mut content.resources {
        for scope in &mut resource.scopes {
            let attributes = &mut scope.facts.attributes;
            // Mappings that nothing refers to are no content of a message.
            attributes.retain(|a| a.key != "profile.unused_mappings");
            // The profiles of a pprof file are then in the order of its types.
            let is_order = |a: &Attribute| a.key == "pprof.scope.sample_type_order";
            if let Some(order) = attributes.iter().find(|a| is_order(a)) {
                let Resolved::Array(places) = &order.value else {
                    panic!("{order:?}");
                };
                let mut profiles: Vec<_> = places.iter().zip(scope.profiles.drain(..)).collect();
                profiles.sort_by_key(|(place, _)| *place);
                scope
                    .profiles
                    .extend(profiles.into_iter().map(|(_, profile)| profile));
            }
            attributes.retain(|a| !is_order(a));
            attributes.retain(|a| !says_none(a));
            for profile in &mut scope.profiles {
                profile.facts.attributes.retain(|a| !says_none(a));
                for observation in &mut profile.observations {
                    let mut stack = observation.stack.to_vec();
                    for frame in &mut stack {
                        frame.attributes.retain(|a| !says_none(a));
                        if let Some(module) = &mut frame.mapping {
                            module.attributes.retain(|a| !says_none(a));
                        }
                    }
                    observation.stack = Rc::new(stack);
                }
            }
        }
    }
    as_recorded(content)
}

/// Whether an attribute of pprof has the value that is assumed without it.
fn says_none(attribute: &Attribute) -> bool {
    let known = match &attribute.value {
        Resolved::Bool(false) => ["pprof.mapping.has_", "pprof.location.is_folded"].as_slice(),
        Resolved::String(text) if text.is_empty() => &[
            "pprof.profile.drop_frames",
            "pprof.profile.keep_frames",
            "pprof.profile.doc_url",
            "pprof.scope.default_sample_type",
        ],
        _ => &[],
    };
    known.iter().any(|start| attribute.key.starts_with(start))
}

#[test]
fn irregular_messages_come_back() {
    come_back(SEEDS);
}

#[test]
#[ignore = "thorough"]
fn many_irregular_messages_come_back() {
    come_back(MANY_SEEDS);
}

fn come_back(seeds: u64) {
    for layout in LAYOUTS {
        for seed in 0..seeds {
            println!("seed {seed}, {layout:?}");
            let data = irregular(seed, layout, true);
            let (profile, _) = read(&encode(&data, layout));
            let back = written(&profile, &Writer::default());
            assert_eq!(grave(&back), []);
            assert_same(&settled(content(&data)), &settled(content(&back)));
        }
    }
}

#[test]
fn it_does_not_matter_how_a_message_is_written() {
    are_written_in_other_ways(SEEDS / 10);
}

#[test]
#[ignore = "thorough"]
fn it_does_not_matter_how_many_messages_are_written() {
    are_written_in_other_ways(MANY_SEEDS / 10);
}

fn are_written_in_other_ways(seeds: u64) {
    for seed in 0..seeds {
        let data = irregular(seed, Layout::V11, true);
        let plain = write(&read(&encode(&data, Layout::V11)).0, &Writer::default());
        let again = Form {
            again: true,
            ..Form::plain(Layout::V11)
        };
        for form in Form::all(Layout::V11).into_iter().chain([again]) {
            println!("seed {seed}, {form:?}");
            // If numbers are not packed, another version may be detected.
            if form.packing != Packing::Packed {
                continue;
            }
            let (profile, _) = read(&encode_as(&data, form));
            let back = write(&profile, &Writer::default());
            if back != plain {
                let [one, other] =
                    [plain.as_slice(), &back].map(|b| decode(b, Layout::V11).unwrap());
                assert_same(&content(&one), &content(&other));
                panic!("the same content in other bytes");
            }
        }
        let json = to_json(&data).to_string();
        let (profile, _) = read(json.as_bytes());
        assert!(write(&profile, &Writer::default()) == plain, "{json}");
    }
}

#[test]
fn what_is_written_breaks_no_rule() {
    break_no_rule(SEEDS);
}

#[test]
#[ignore = "thorough"]
fn many_written_messages_break_no_rule() {
    break_no_rule(MANY_SEEDS);
}

fn break_no_rule(seeds: u64) {
    let aggregate = Writer {
        aggregate: true,
        ..Writer::default()
    };
    let json = Writer {
        json: true,
        ..aggregate.clone()
    };
    let mut kept = 0;
    for seed in 0..seeds {
        println!("seed {seed}");
        let (profile, _) = read(&encode(&irregular(seed, Layout::V11, true), Layout::V11));
        let mut bytes = Vec::new();
        if let Err(error) = aggregate.write(&profile, &mut bytes, GO_ON) {
            assert!(error.to_string().contains("exceeds 2^63"), "{error}");
            continue;
        }
        kept += 1;
        let data = decode(&bytes, Layout::V11).unwrap();
        assert_eq!(violations(&data), []);
        // The output is reproducible, also after it was read again, and as JSON.
        assert!(write(&profile, &aggregate) == bytes);
        // After samples of zeros are removed, profiles of a scope may have equal samples, and are
        // then read as one source. Therefore, bytes are compared from the second time on.
        let again = write(&read(&bytes).0, &aggregate);
        let settle = |bytes: &[u8]| settled(content(&decode(bytes, Layout::V11).unwrap()));
        assert_same(&settle(&bytes), &settle(&again));
        assert!(write(&read(&again).0, &aggregate) == again);
        let text = write(&profile, &json);
        let from = from_json(&serde_json::from_slice(&text).unwrap()).unwrap();
        assert_eq!(from, data);
        assert!(write(&read(&text).0, &aggregate) == again);
    }
    assert!(kept > seeds / 2, "{kept}");
}

#[test]
fn messages_that_should_be_otherwise_are_mended() {
    are_mended(SEEDS);
}

#[test]
#[ignore = "thorough"]
fn many_messages_that_should_be_otherwise_are_mended() {
    are_mended(MANY_SEEDS);
}

fn are_mended(seeds: u64) {
    for seed in 0..seeds {
        println!("seed {seed}");
        let data = irregular(seed, Layout::V11, false);
        let bytes = encode(&data, Layout::V11);
        if bytes.is_empty() {
            // An empty file is not read as a message, since it may be truncated.
            continue;
        }
        let (profile, _) = read(&bytes);
        let back = written(&profile, &Writer::default());
        // The writer creates the tables and distributes samples over profiles, so it must not break
        // the rules for them.
        let own = ["duplicate", "orphan", "link-zero", "sample-shape"];
        let left = violations(&back);
        assert!(left.iter().all(|v| v.level == Level::Should), "{left:?}");
        assert!(!left.iter().any(|v| own.contains(&v.rule)), "{left:?}");
        let [one, other] = [&data, &back].map(|data| joined(without_times(settled(content(data)))));
        assert_same(&one, &other);
    }
}

/// Combines profiles of a scope that differ only in their samples: samples with and without times
/// are written to separate profiles.
fn joined(mut content: Content) -> Content {
    for scope in content.resources.iter_mut().flat_map(|r| &mut r.scopes) {
        let mut all: Vec<ProfileContent> = Vec::new();
        for profile in scope.profiles.drain(..) {
            let same = |other: &&mut ProfileContent| {
                let mut facts = other.facts.clone();
                // A payload is in the first profile of its source.
                if profile.facts.original_payload.is_empty() {
                    facts.original_payload.clear();
                    facts.original_payload_format.clear();
                }
                facts == profile.facts
            };
            match all.iter_mut().find(same) {
                Some(first) => first.observations.extend(profile.observations),
                None => all.push(profile),
            }
        }
        scope.profiles = all;
    }
    content.sorted()
}

/// Removes times and durations, which are widened if samples are outside of them.
fn without_times(mut content: Content) -> Content {
    let scopes = content.resources.iter_mut().flat_map(|r| &mut r.scopes);
    for profile in scopes.flat_map(|scope| &mut scope.profiles) {
        profile.facts.time_unix_nano = 0;
        profile.facts.duration_nano = 0;
    }
    content
}

/// Two types of one source stay different types of this source, even if another source has only one
/// of them.
#[test]
fn a_type_of_one_source_is_none_of_another() {
    let mut data = whole();
    let scopes = &mut data.resource_profiles[0].scope_profiles;
    scopes[0].scope.attributes.clear();
    // One scope with both types, and one with only the second type.
    scopes[0].profiles[1].sample_type.unit_strindex = 10;
    scopes[0].profiles[1].original_payload.clear();
    scopes[0].profiles[1].original_payload_format.clear();
    let mut alone = scopes[0].clone();
    alone.scope.version = "2".to_string();
    alone.profiles.remove(0);
    alone.profiles[0].samples.pop();
    scopes.push(alone);
    let (profile, _) = read(&encode(&data, Layout::V11));
    assert_eq!(profile.sources.len(), 2);
    assert_eq!(profile.values.len(), 3);
    for aggregate in [false, true] {
        let options = Writer {
            aggregate,
            ..Writer::default()
        };
        let scopes = &written(&profile, &options).resource_profiles[0].scope_profiles;
        let counts: Vec<_> = scopes.iter().map(|scope| scope.profiles.len()).collect();
        assert_eq!(counts, [2, 1]);
        let samples = &scopes[1].profiles[0].samples;
        let values: Vec<_> = samples.iter().flat_map(|s| &s.values).collect();
        assert_eq!(values, [&3, &4]);
    }
}

/// The samples of a source without times are in profiles of their own, and in the same source after
/// reading.
#[test]
fn samples_with_and_without_times_are_one_source() {
    let mut data = whole();
    let profiles = &mut data.resource_profiles[0].scope_profiles[0].profiles;
    profiles[0].original_payload.clear();
    profiles[0].original_payload_format.clear();
    let timed = profiles[0].samples[0].clone();
    let mut other = timed.clone();
    other.timestamps_unix_nano.clear();
    other.values = vec![5];
    let (mut one, mut two) = (profiles[0].clone(), profiles[0].clone());
    one.samples = vec![timed.clone()];
    two.samples = vec![timed, other];
    two.sample_type.unit_strindex = 10;
    two.samples[0].values = vec![6, 7];
    one.samples.push(two.samples[1].clone());
    *profiles = vec![one, two];
    let (profile, _) = read(&encode(&data, Layout::V11));
    assert_eq!((profile.sources.len(), profile.samples.len()), (1, 3));
    for aggregate in [false, true] {
        let options = Writer {
            aggregate,
            ..Writer::default()
        };
        let bytes = write(&profile, &options);
        let data = decode(&bytes, Layout::V11).unwrap();
        let mut left = violations(&data);
        left.retain(|v| aggregate || v.rule != "sample-combined");
        assert_eq!(left, []);
        let profiles = &data.resource_profiles[0].scope_profiles[0].profiles;
        let shapes = profiles.iter().map(|p| {
            let mut times = p.samples.iter().map(|s| s.timestamps_unix_nano.len());
            (p.sample_type.unit_strindex, times.all(|times| times > 0))
        });
        let shapes: Vec<_> = shapes.collect();
        let [(a, true), (b, true), (c, false), (d, false)] = shapes[..] else {
            panic!("{shapes:?}");
        };
        assert!(a == c && b == d && a != b);
        let (again, _) = read(&bytes);
        assert_eq!((again.sources.len(), again.samples.len()), (1, 3));
        assert_eq!(again.samples.times, profile.samples.times);
        assert!(write(&again, &options) == bytes);
    }
    // Profiles of one type whose samples all have times are separate sources.
    let scope = &mut data.resource_profiles[0].scope_profiles[0];
    scope.scope.attributes.clear();
    let profiles = &mut scope.profiles;
    for samples in profiles.iter_mut().map(|profile| &mut profile.samples) {
        samples.truncate(1);
    }
    profiles[1].sample_type = profiles[0].sample_type.clone();
    assert_eq!(read(&encode(&data, Layout::V11)).0.sources.len(), 2);
}

#[test]
fn a_duration_that_is_written_can_be_read() {
    let mut data = whole();
    let profiles = &mut data.resource_profiles[0].scope_profiles[0].profiles;
    for profile in profiles {
        (profile.time_unix_nano, profile.duration_nano) = (1 << 62, i64::MAX as u64);
    }
    let (profile, _) = read(&encode(&data, Layout::V11));
    let (again, problems) = read(&write(&profile, &Writer::default()));
    assert!(problems.is_empty());
    assert_eq!(again.sources[0].duration, Some(i64::MAX));
}
