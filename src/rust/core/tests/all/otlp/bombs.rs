//! Small messages that could expand to a lot of data, and large messages that could take quadratic
//! time: time and memory must stay proportional to the number of bytes.

use super::damaged::{frame, refused, try_read};
use super::message::*;
use super::whole::{attribute, pair, text};
use super::wire::encode;
use profile_core::error::{Error, Position};
use profile_core::formats::otlp::{self, Writer};
use profile_core::formats::{self, Input, Writer as _};
use profile_core::io::input::Origin;
use profile_core::model::Profile as Model;

const TOO_MANY: &str =
    "The content up to here has too many frames, attributes, texts and sources for a";
const TOO_LONG: &str = "The strings up to here are too long for this file.";

pub fn strings(texts: &[&str]) -> Vec<String> {
    let all = ["", "samples", "count"].iter().chain(texts);
    all.map(|text| text.to_string()).collect()
}

pub fn profile(samples: Vec<Sample>) -> Profile {
    Profile {
        sample_type: ValueType {
            type_strindex: 1,
            unit_strindex: 2,
        },
        samples,
        ..Profile::default()
    }
}

pub fn sample(values: usize) -> Sample {
    Sample {
        values: vec![1; values],
        ..Sample::default()
    }
}

pub fn data(profiles: Vec<Profile>, dictionary: Dictionary) -> Data {
    let scope = ScopeProfiles {
        profiles,
        ..ScopeProfiles::default()
    };
    Data {
        resource_profiles: vec![ResourceProfiles {
            scope_profiles: vec![scope],
            ..ResourceProfiles::default()
        }],
        dictionary,
    }
}

fn bytes(profiles: Vec<Profile>, dictionary: Dictionary) -> Vec<u8> {
    encode(&data(profiles, dictionary), Layout::V11)
}

/// Expects an error for a message, at one of its bytes, and returns the error message.
#[track_caller]
fn too_much(bytes: &[u8]) -> String {
    let (place, message) = refused(bytes);
    assert!(matches!(place, Position::Byte(at) if at < bytes.len() as u64));
    message
}

/// Reads and writes a message that does not expand much.
#[track_caller]
fn soon(bytes: &[u8]) -> Model {
    let profile = try_read(bytes).unwrap();
    for (aggregate, json) in [(false, false), (true, true)] {
        let options = Writer {
            aggregate,
            json,
            ..Writer::default()
        };
        let mut out = Vec::new();
        options.write(&profile, &mut out, &|| false).unwrap();
        // A value of one byte may become a sample.
        assert!(out.len() < 12 * bytes.len() + 1000, "{}", out.len());
    }
    profile
}

#[test]
fn stacks_are_not_written_out_without_end() {
    let stack = |count| Stack {
        location_indices: vec![1; count],
    };
    let far = Location {
        address: 7,
        ..Location::default()
    };
    let mut dictionary = Dictionary {
        string_table: strings(&[]),
        location_table: vec![Location::default(), far.clone()],
        stack_table: vec![Stack::default(), stack(100_000)],
        ..Dictionary::default()
    };
    let one = Sample {
        stack_index: 1,
        ..sample(1)
    };
    // A stack is repeated by many samples, by many observations of one sample, and by inlined calls.
    let samples = vec![one.clone(); 100_000];
    let message = too_much(&bytes(vec![profile(samples)], dictionary.clone()));
    assert!(message.starts_with(TOO_MANY), "{message}");
    let many = Sample {
        stack_index: 1,
        ..sample(100_000)
    };
    let message = too_much(&bytes(vec![profile(vec![many])], dictionary.clone()));
    assert!(message.starts_with(TOO_MANY), "{message}");
    dictionary.location_table[1].lines = vec![Line::default(); 10_000];
    let message = too_much(&bytes(vec![profile(vec![one.clone()])], dictionary.clone()));
    assert!(message.starts_with(TOO_MANY), "{message}");
    // A thousand samples with a thousand frames are accepted.
    dictionary.location_table[1] = far;
    dictionary.stack_table[1] = stack(1000);
    let profile = soon(&bytes(vec![profile(vec![one; 1000])], dictionary));
    assert_eq!(profile.samples.len(), 1000);
}

#[test]
fn observations_have_their_attributes_but_not_without_end() {
    let dictionary = Dictionary {
        string_table: strings(&["key"]),
        attribute_table: vec![
            KeyValueAndUnit::default(),
            attribute(3, AnyValue::Int(5), 0),
        ],
        ..Dictionary::default()
    };
    let with = |attributes: Vec<i32>, values| {
        let sample = Sample {
            attribute_indices: attributes,
            ..sample(values)
        };
        bytes(vec![profile(vec![sample])], dictionary.clone())
    };
    let message = too_much(&with(vec![1; 100_000], 1_000_000));
    assert!(message.starts_with(TOO_MANY), "{message}");
    assert_eq!(soon(&with(vec![1], 1_000_000)).labels.len(), 1_000_000);
    // Index 0 means "no attribute", so any number of them is accepted.
    assert!(soon(&with(vec![0; 300_000], 300_000)).labels.is_empty());
}

#[test]
fn types_of_few_samples_make_no_columns_without_end() {
    let names: Vec<_> = (0..900).map(|i| format!("type {i}")).collect();
    let mut texts = strings(&[]);
    texts.extend(names);
    let dictionary = Dictionary {
        string_table: texts,
        ..Dictionary::default()
    };
    let mut profiles: Vec<_> = (0..900).map(|i| profile(vec![sample(1 + i % 2)])).collect();
    for (profile, i) in profiles.iter_mut().zip(3..) {
        profile.sample_type.type_strindex = i;
    }
    let read = soon(&bytes(profiles.clone(), dictionary.clone()));
    assert_eq!(read.values.len(), 900);
    for at in [0, 899] {
        profiles[at].samples = vec![sample(1_000_000)];
        let message = too_much(&bytes(profiles.clone(), dictionary.clone()));
        assert!(message.starts_with(TOO_MANY), "{message}");
        profiles[at].samples = vec![sample(1)];
    }
    // More types than allowed, each in a profile with the same samples.
    let profiles: Vec<_> = (0..30_000)
        .map(|i| {
            let mut profile = profile(vec![sample(1)]);
            profile.sample_type.type_strindex = i;
            profile
        })
        .collect();
    let dictionary = Dictionary {
        string_table: vec![String::new(); 30_000],
        ..Dictionary::default()
    };
    match try_read(&bytes(profiles, dictionary)) {
        Err(Error::Unsupported(message)) => assert!(message.contains("1000 sample types")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_text_is_not_copied_without_end() {
    let long = "x".repeat(400_000);
    let dictionary = |attributes: Vec<KeyValueAndUnit>| Dictionary {
        string_table: strings(&[&long, "key"]),
        attribute_table: attributes,
        ..Dictionary::default()
    };
    let none = KeyValueAndUnit::default;
    // The long string as the key of all attributes is stored once.
    let keys = vec![attribute(3, AnyValue::Empty, 0); 50_000];
    let strings = soon(&bytes(vec![profile(vec![sample(1)])], dictionary(keys))).strings;
    assert!(strings.iter().map(str::len).sum::<usize>() < 2 * long.len());
    // As an element of an array it is copied each time.
    let values = vec![AnyValue::StringStrindex(3); 50_000];
    let table = vec![none(), attribute(4, AnyValue::Array(values), 0)];
    let message = too_much(&bytes(Vec::new(), dictionary(table)));
    assert_eq!(message, TOO_LONG);
    // As the name of a type it is copied, too.
    let profiles: Vec<_> = (0..20_000)
        .map(|i| {
            let mut profile = profile(Vec::new());
            (profile.sample_type.type_strindex, profile.duration_nano) = (3, i);
            profile
        })
        .collect();
    let message = too_much(&bytes(profiles, dictionary(Vec::new())));
    assert!(
        message == TOO_LONG || message.starts_with(TOO_MANY),
        "{message}"
    );
    // The same for the metadata of sources, which is stored for each source.
    for key in [
        "pprof.profile.doc_url",
        "r.rprof.file",
        "pprof.profile.comment",
    ] {
        let mut dictionary = dictionary(vec![none(), attribute(4, text(&long), 0)]);
        dictionary.string_table[4] = key.to_owned();
        let profiles: Vec<_> = (0..20_000)
            .map(|i| Profile {
                duration_nano: i,
                attribute_indices: vec![1; 3],
                ..Profile::default()
            })
            .collect();
        let message = too_much(&bytes(profiles, dictionary));
        assert!(message.starts_with(TOO_MANY), "{message}");
    }
}

#[test]
fn a_long_attribute_may_be_of_many() {
    let long = "x".repeat(400_000);
    let keys = [
        "key",
        "profile.frame.type",
        "process.executable.build_id.gnu",
    ];
    let values = [
        text(&long),
        AnyValue::Bytes(long.clone().into_bytes()),
        AnyValue::Array(vec![text(&long), AnyValue::Int(1)]),
    ];
    for (key, value) in keys
        .iter()
        .flat_map(|key| values.iter().map(move |v| (key, v)))
    {
        let with = vec![1; 20_000];
        let location = Location {
            address: 7,
            attribute_indices: with.clone(),
            ..Location::default()
        };
        let mut locations = vec![
            Location {
                attribute_indices: vec![1],
                ..location.clone()
            };
            20_000
        ];
        locations
            .iter_mut()
            .zip(0..)
            .for_each(|(l, i)| l.address = i);
        locations[1] = location;
        let mapping = Mapping {
            attribute_indices: vec![1],
            ..Mapping::default()
        };
        let dictionary = Dictionary {
            string_table: strings(&[key]),
            attribute_table: vec![KeyValueAndUnit::default(), attribute(3, value.clone(), 0)],
            mapping_table: vec![mapping; 20_000],
            stack_table: vec![
                Stack::default(),
                Stack {
                    location_indices: (0..20_000).collect(),
                },
            ],
            location_table: locations,
            ..Dictionary::default()
        };
        let one = Sample {
            attribute_indices: vec![1],
            ..sample(1)
        };
        let mut samples = vec![one; 20_000];
        samples[0].stack_index = 1;
        soon(&bytes(vec![profile(samples)], dictionary));
    }
}

#[test]
fn many_keys_resources_scopes_and_profiles_take_no_longer_than_few() {
    let keys: Vec<_> = (0..60_000).map(|i| format!("key {i}")).collect();
    let mut texts = strings(&[]);
    texts.extend(keys.iter().cloned());
    let numbers = (0..60_000).map(|i| attribute(3 + i, AnyValue::Int(1), 0));
    let dictionary = Dictionary {
        string_table: texts,
        attribute_table: std::iter::once(KeyValueAndUnit::default())
            .chain(numbers)
            .collect(),
        ..Dictionary::default()
    };
    let with_all = Sample {
        attribute_indices: (1..60_000).collect(),
        ..sample(1)
    };
    let mut message = data(vec![profile(vec![with_all])], dictionary.clone());
    message.resource_profiles[0].resource.attributes =
        keys.iter().map(|key| pair(key, AnyValue::Empty)).collect();
    soon(&encode(&message, Layout::V11));

    let profiles: Vec<_> = (0..60_000)
        .map(|i| Profile {
            duration_nano: i,
            ..profile(vec![sample(1)])
        })
        .collect();
    let mut message = data(
        profiles.clone(),
        Dictionary {
            string_table: strings(&[]),
            ..Dictionary::default()
        },
    );
    assert_eq!(soon(&encode(&message, Layout::V11)).sources.len(), 60_000);
    let scope = |profile: &Profile| ScopeProfiles {
        profiles: vec![profile.clone()],
        ..ScopeProfiles::default()
    };
    message.resource_profiles[0].scope_profiles = profiles.iter().map(scope).collect();
    assert_eq!(soon(&encode(&message, Layout::V11)).scopes.len(), 60_000);
    let resource = |profile: &Profile| ResourceProfiles {
        scope_profiles: vec![scope(profile)],
        ..ResourceProfiles::default()
    };
    message.resource_profiles = profiles.iter().map(resource).collect();
    assert_eq!(soon(&encode(&message, Layout::V11)).resources.len(), 60_000);
}

#[test]
fn what_says_nothing_may_be_there_a_million_times() {
    let empty = bytes(vec![Profile::default(); 1_000_000], Dictionary::default());
    match try_read(&empty) {
        Ok(profile) => assert_eq!(profile.sources.len(), 1_000_000),
        Err(error) => assert!(error.to_string().contains(TOO_MANY), "{error}"),
    }
    let frames = frame(&[0x12, 0x00]).repeat(300_000);
    assert!(try_read(&frames).unwrap().sources.is_empty());
    let lines = "{\"resourceProfiles\":[]}\n".repeat(300_000);
    assert!(try_read(lines.as_bytes()).unwrap().sources.is_empty());
    // Each attribute claims to be the order of all profiles of the scope.
    let order = pair("pprof.scope.sample_type_order", AnyValue::Array(Vec::new()));
    let mut message = data(vec![Profile::default(); 100_000], Dictionary::default());
    let scope = &mut message.resource_profiles[0].scope_profiles[0].scope;
    scope.attributes = vec![order; 20_000];
    assert!(try_read(&encode(&message, Layout::V11)).is_ok());
}

#[test]
fn problems_of_a_large_json_message_have_their_places() {
    let texts = "\"\",".repeat(500_000);
    let irregular = r#"{"lines":[{"line":"-5","column":"-6"}]},"#.repeat(1500);
    let json = format!(
        r#"{{"dictionary":{{"stringTable":[{texts}""],"locationTable":[{{}},{irregular}{{}}]}}}}"#
    );
    let origin = Origin::default();
    let (_, problems) = formats::read(
        Input::Bytes(json.as_bytes()),
        Some(&otlp::FORMAT),
        origin,
        &|| false,
    )
    .unwrap();
    let places: Vec<_> = problems
        .kept()
        .iter()
        .map(|p| p.position.to_string())
        .collect();
    for (i, two) in places.chunks(2).enumerate() {
        let line = format!("dictionary.locationTable[{}].lines[0]", i + 1);
        // The first field starts at the same byte as the line, so it has the path of the line.
        assert_eq!(two, [line.clone(), format!("{line}.column")]);
    }
    assert_eq!(places.len(), 1000);
}
