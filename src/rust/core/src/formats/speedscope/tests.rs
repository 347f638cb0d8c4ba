//! Reads files with fields in any order, evented profiles, and irregular and hostile files.

use super::layout::SCHEMA;
use super::*;
use crate::error::Error;
use crate::formats::ProblemKind;
use crate::formats::testing::{self, kinds, name_of, read, read_with, rprof_profile, written};
use crate::model::{Profile, ValueType};

/// For each sample its source, its stack (outermost first) and its value.
fn samples(profile: &Profile) -> Vec<(usize, String, f64)> {
    let samples = testing::samples(profile, |id| name_of(profile, id).to_owned());
    let shown = samples.iter().map(|sample| {
        let value = sample.known_values()[0];
        (sample.source, sample.outermost_first(), value)
    });
    shown.collect()
}

/// The stacks and values of all samples.
fn stacks(profile: &Profile) -> Vec<(String, f64)> {
    let samples = samples(profile).into_iter();
    samples.map(|(_, stack, value)| (stack, value)).collect()
}

const FRAMES: &str = r#""shared":{"frames":[{"name":"a","file":"x.R","line":3,"col":7},{"name":"b"},{"line":2,"name":""}]}"#;

#[test]
fn fields_may_come_in_any_order() {
    let expected = vec![
        (0, "a;b".to_owned(), 1.5),
        (0, "a".to_owned(), 2.0),
        (0, String::new(), 3.0),
    ];
    let profile = r#""profiles":[{"weights":[1.5,2,3],"samples":[[0, 1],[0],[]],"unit":"none","x":{"y":[]}}]"#;
    for text in [
        format!("{{{FRAMES},{profile}}}"),
        format!("{{{profile},{FRAMES}}}"),
    ] {
        let (profile, problems) = read(&FORMAT, &text);
        assert_eq!(samples(&profile), expected);
        assert!(problems.is_empty());
        assert_eq!(profile.values[0].type_.name, "samples");
        let location = profile.locations.iter().next().unwrap();
        assert_eq!((location.line, location.column), (Some(3), 7));
    }
}

#[test]
fn time_between_events_becomes_samples() {
    let event = |kind: &str, frame: u32, at: &str| {
        format!(r#"{{"frame":{frame},"at":{at},"type":"{kind}"}}"#)
    };
    let file = |events: &[String]| {
        let events = events.join(",");
        format!(
            r#"{{{FRAMES},"profiles":[{{"type":"evented","unit":"microseconds","events":[{events}]}}]}}"#
        )
    };
    let (profile, problems) = read(
        &FORMAT,
        &file(&[
            event("O", 0, "10"),
            event("O", 1, "10"),
            event("C", 1, "12"),
            event("O", 1, "12.5"),
            event("C", 1, "13"),
            event("C", 0, "13"),
            event("O", 1, "20"),
            event("C", 1, "21"),
        ]),
    );
    let expected = [("a;b", 2.0), ("a", 0.5), ("a;b", 0.5), ("b", 1.0)];
    assert_eq!(
        stacks(&profile),
        expected.map(|(stack, time)| (stack.to_owned(), time))
    );
    assert!(problems.is_empty());
    assert_eq!(profile.values[0].type_.unit, "microseconds");

    // Events that do not match, and times that go back.
    let (profile, problems) = read(
        &FORMAT,
        &file(&[
            event("O", 0, "0"),
            event("O", 1, "1"),
            event("C", 2, "2"),
            event("C", 0, "3"),
            event("O", 1, "2"),
            event("C", 1, "5"),
        ]),
    );
    let expected = [("a", 1.0), ("a;b", 1.0), ("a;b", 1.0), ("b", 2.0)];
    assert_eq!(
        stacks(&profile),
        expected.map(|(stack, time)| (stack.to_owned(), time))
    );
    assert_eq!(kinds(&problems), ["unbalanced_event", "time_backwards"]);
}

#[test]
fn values_of_different_types_stay_apart() {
    let types = |profile: &Profile| -> Vec<_> {
        let sums = profile.values.iter().map(|values| {
            let known = values.column.iter().filter(|value| !value.is_nan());
            let ValueType { name, unit } = &values.type_;
            (name.clone(), unit.clone(), known.sum::<f64>())
        });
        sums.collect()
    };
    let of_unit = |unit: &str, value: i32| {
        format!(r#"{{"name":"p","unit":"{unit}","samples":[[0]],"weights":[{value}]}}"#)
    };
    for units in [["none", "furlongs"], ["bytes", "ms"], ["seconds", "none"]] {
        let profiles = [of_unit(units[0], 3), of_unit(units[1], 1000)].join(",");
        let (profile, _) = read(&FORMAT, &format!(r#"{{{FRAMES},"profiles":[{profiles}]}}"#));
        let text = written(&Writer::default(), &profile);
        assert_eq!(types(&read(&FORMAT, &text).0), types(&profile));
        // The format has a unit for all of these.
        assert_eq!(text.contains("sampleType"), units != ["seconds", "none"]);
    }
    // The same unit for several types.
    let (mut profile, _) = read(
        &FORMAT,
        &format!(
            r#"{{{FRAMES},"profiles":[{},{}]}}"#,
            of_unit("bytes", 3),
            of_unit("none", 5)
        ),
    );
    profile.values[1].type_.unit = "bytes".to_owned();
    for source in &mut profile.sources {
        source.types.clear();
    }
    let text = written(&Writer::default(), &profile);
    assert_eq!(types(&read(&FORMAT, &text).0), types(&profile));
}

#[test]
fn frames_that_are_not_closed_end_with_the_profile() {
    let open = r#""events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":10},{"type":"C","frame":1,"at":30}]"#;
    let found = |fields: &str| {
        let text = format!(
            r#"{{{FRAMES},"profiles":[{{"type":"evented","unit":"milliseconds",{fields}}}]}}"#
        );
        let (profile, problems) = read(&FORMAT, &text);
        let times = stacks(&profile).into_iter().map(|(_, time)| time);
        (times.collect::<Vec<_>>(), kinds(&problems))
    };
    let closed = open.replace("}]", r#"},{"type":"C","frame":0,"at":30}]"#);
    #[rustfmt::skip]
    let cases = [
        (format!(r#"{open},"endValue":100"#), vec![10.0, 20.0, 70.0], vec!["open_frame"]),
        (format!(r#""endValue":100,{open}"#), vec![10.0, 20.0, 70.0], vec!["open_frame"]),
        (format!(r#"{open},"endValue":30"#), vec![10.0, 20.0], vec!["open_frame"]),
        (format!(r#"{open},"endValue":29"#), vec![10.0, 20.0], vec!["unknown_end"]),
        (open.to_owned(), vec![10.0, 20.0], vec!["unknown_end"]),
        (format!(r#"{closed},"endValue":100"#), vec![10.0, 20.0], vec![]),
    ];
    for (fields, times, problems) in cases {
        assert_eq!(found(&fields), (times, problems), "{fields}");
    }
    // A truncated file may have closed it.
    let text = format!(r#"{{{FRAMES},"profiles":[{{"endValue":100,{open}"#);
    let (profile, problems) = read(&FORMAT, &text[..text.len() - 1]);
    assert_eq!(stacks(&profile).len(), 2);
    assert_eq!(kinds(&problems), ["cut_json"]);
}

#[test]
fn units_and_names_are_kept() {
    let profile = |unit: &str| {
        format!(
            r#"{{"name":"p","unit":"{unit}","startValue":1,"endValue":3,"samples":[[0]],"weights":[2]}}"#
        )
    };
    let profiles = ["seconds", "bytes", "none", "seconds"]
        .map(profile)
        .join(",");
    let text = format!(
        r#"{{{FRAMES},"profiles":[{profiles}],"name":"f","exporter":"e","activeProfileIndex":1}}"#
    );
    let (profile, _) = read(&FORMAT, &text);
    let types = profile
        .values
        .iter()
        .map(|v| (v.type_.name.as_str(), v.type_.unit.as_str()));
    assert_eq!(
        types.collect::<Vec<_>>(),
        [
            ("time", "seconds"),
            ("memory", "bytes"),
            ("samples", "count")
        ]
    );
    let sources = &profile.sources;
    assert_eq!(sources[0].duration, Some(2_000_000_000));
    assert_eq!(sources[1].duration, None);
    assert_eq!(sources[1].default_type.as_deref(), Some("memory"));
    let comments = |row: usize| -> Vec<_> {
        sources[row]
            .comments
            .iter()
            .map(|&text| profile.strings.get(text))
            .collect()
    };
    assert_eq!(comments(0), ["p", "f", "e"]);
    assert_eq!(comments(3), ["p"]);
    assert_eq!(samples(&profile).len(), 4);
}

#[test]
fn irregular_files_are_read_or_refused() {
    let (profile, problems) = read(
        &FORMAT,
        &format!(
            r#"{{{FRAMES},"profiles":[{{"samples":[[0],[1],[1]],"weights":[1,9007199254740993],"unit":"none"}}]}}"#
        ),
    );
    assert_eq!(samples(&profile).len(), 2);
    assert_eq!(kinds(&problems), ["imprecise_value", "unequal_lengths"]);
    assert_eq!(profile.values[0].exact(1), Some(9007199254740993));
    for (stack, message) in [
        ("[3]", "out of range"),
        ("[-1]", "not a list of indices"),
        ("[0,]", "not a list of indices"),
        ("[0.5]", "not a list of indices"),
        ("[[0]]", "Expected an array of numbers"),
        ("7", "Expected an array"),
    ] {
        let text = format!(r#"{{{FRAMES},"profiles":[{{"samples":[{stack}],"weights":[1]}}]}}"#);
        let error = read_with(&FORMAT, &text, None).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.position().is_some());
    }
}

#[test]
fn a_truncated_file_is_read_as_far_as_it_goes() {
    let text = format!(
        r#"{{{FRAMES},"profiles":[{{"unit":"none","samples":[[0],[1]],"weights":[1,2]}},{{"unit":"none","weights":[3,4],"samples":[[0],[1]]}}]}}"#
    );
    let mut counts = Vec::new();
    for end in text.find("\"profiles\"").unwrap()..text.len() {
        let (profile, problems) = read(&FORMAT, &text[..end]);
        assert!(problems.has(ProblemKind::CutJson));
        counts.push(samples(&profile).len());
    }
    counts.dedup();
    assert_eq!(counts, [0, 1, 2, 3, 4]);
}

#[test]
fn a_small_file_cannot_take_much_memory() {
    // Each event adds a frame, so the stacks have n^2 / 2 frames.
    let events: Vec<_> = (0..20_000)
        .map(|at| format!(r#"{{"type":"O","frame":0,"at":{at}}}"#))
        .collect();
    let text = format!(
        r#"{{{FRAMES},"profiles":[{{"events":[{}]}}]}}"#,
        events.join(",")
    );
    let error = read_with(&FORMAT, &text, Some(100_000_000)).unwrap_err();
    assert!(matches!(error, Error::Budget { .. }), "{error}");
}

#[test]
fn what_is_written_is_read_again() {
    let profile = rprof_profile(
        "sample.interval=20000\n\"a\\\\b\" \"g\" \n\"g\" \n\"g\" \n\"a\\\\b\" \"g\" \n",
    );
    for (aggregate, counts) in [(false, vec![1.0, 2.0, 1.0]), (true, vec![2.0, 2.0])] {
        let writer = Writer {
            aggregate: Some(aggregate),
        };
        let text = written(&writer, &profile);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["$schema"], SCHEMA);
        assert_eq!(value["profiles"][1]["endValue"], 80_000_000);
        assert_eq!(value["activeProfileIndex"], 1);
        let (back, problems) = read(&FORMAT, &text);
        assert!(problems.is_empty());
        let values: Vec<_> = samples(&back)
            .into_iter()
            .filter(|s| s.0 == 0)
            .map(|s| s.2)
            .collect();
        assert_eq!(values, counts);
    }
}

#[test]
fn a_profile_whose_frames_last_no_time_is_reported() {
    let events = |list: &str| {
        format!(
            r#"{{"shared":{{"frames":[{{"name":"a"}}]}},"profiles":[{{"type":"evented","unit":"none","startValue":0,"endValue":9,"events":[{list}]}}]}}"#
        )
    };
    let (open, close) = (
        r#"{"type":"O","frame":0,"at":5}"#,
        r#"{"type":"C","frame":0,"at":5}"#,
    );
    for (list, expected) in [
        (format!("{open},{close}"), &["zero_time"][..]),
        (format!("{open},{close},{open},{close}"), &["zero_time"]),
        (String::new(), &[]),
        (format!("{open},{}", close.replace('5', "6")), &[]),
    ] {
        let (profile, problems) = read(&FORMAT, &events(&list));
        assert_eq!(kinds(&problems), expected, "{list}");
        assert_eq!(profile.samples.is_empty(), !list.contains('6'), "{list}");
    }
}
