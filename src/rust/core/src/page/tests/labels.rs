//! Labels of samples in the data of a page.

use super::*;
use crate::model::{Label, Link};

/// Labels a sample.
fn label(profile: &mut Profile, sample: usize, key: &str, value: &str) {
    let [key, value] = [key, value].map(|text| profile.strings.intern(text).unwrap());
    profile.labels.push(Label {
        str: Some(value),
        ..Label::new(sample, key)
    });
}

#[test]
fn samples_are_summed_by_their_labels() {
    let mut x = profile(SourceKind::RPROF, &["ab", "ab", "b", "b", "ab"]);
    label(&mut x, 0, "route", "/b");
    label(&mut x, 1, "user", "me");
    label(&mut x, 1, "route", "/a");
    label(&mut x, 2, "route", "/a");
    label(&mut x, 2, "user", "me");
    // A label may occur twice.
    label(&mut x, 2, "user", "me");
    let data = checked(&page(), &x);
    let parts = data["values"].as_array().unwrap();
    let sums = parts.iter().map(|part| {
        let column = |name: &str| {
            part[name]
                .as_array()
                .unwrap()
                .iter()
                .map(|v| v.as_i64().unwrap())
        };
        let node = column("node").scan(0, |node, by| {
            *node += by;
            Some(*node)
        });
        (
            part["set"].as_i64().unwrap(),
            node.zip(column("value")).collect::<Vec<_>>(),
        )
    });
    // Nodes: 1 is `b`, 2 is `a` within `b`.
    assert_eq!(
        sums.collect::<Vec<_>>(),
        [
            (0, vec![(2, 1)]),
            (1, vec![(1, 1), (2, 1)]),
            (2, vec![(1, 1), (2, 1)])
        ]
    );
    assert_eq!(
        data["labels"],
        serde_json::json!([
            {"key": "route", "value": "/a", "set": [1]},
            {"key": "route", "value": "/b", "set": [0]},
            {"key": "user", "value": "me", "set": [1]},
        ])
    );
    let order = &data["order"][0];
    assert_eq!(order["run"], serde_json::json!([1, 1, 1, 1, 1]));
    assert_eq!(order["set"], serde_json::json!([0, 1, 1, 2, 2]));
    // Without labels there is nothing of them.
    let mut without = page();
    without.options.labels = false;
    let data = checked(&without, &x);
    assert_eq!(data["labels"], serde_json::json!([]));
    assert!(data["order"][0].get("set").is_none() && data["values"][0].get("set").is_none());
}

#[test]
fn labels_with_many_values_are_left_out() {
    let mut x = profile(SourceKind::RPROF, &vec!["a"; 3000]);
    for sample in 0..3000 {
        label(&mut x, sample, "id", &sample.to_string());
        // 60 * 50 sets.
        label(&mut x, sample, "minute", &(sample % 60).to_string());
        label(&mut x, sample, "route", &(sample / 60).to_string());
    }
    let data = checked(&page(), &x);
    let labels = data["labels"].as_array().unwrap();
    assert_eq!(labels.len(), 50);
    assert!(labels.iter().all(|label| label["key"] == "route"));
    // At most 20 keys are kept.
    let mut many = profile(SourceKind::RPROF, &["a"]);
    for key in 10..50 {
        label(&mut many, 0, &format!("key {key}"), "value");
    }
    let data = checked(&page(), &many);
    assert_eq!(data["labels"].as_array().unwrap().len(), 20);
    // In differences, shares are relative to the sums of sources.
    x.values[0].column = vec![-1.0; 3000].into();
    assert_eq!(checked(&page(), &x)["labels"], serde_json::json!([]));
}

#[test]
fn of_many_values_those_with_the_most_samples_are_kept() {
    // Value `i` has `i % 5 + 1` samples, so each number of samples from 1 to 5 occurs for 60 values.
    let values: Vec<_> = (0..300).flat_map(|i| vec![i; i % 5 + 1]).collect();
    let mut x = profile(SourceKind::RPROF, &vec!["a"; values.len()]);
    for (sample, value) in values.iter().enumerate() {
        label(&mut x, sample, "user", &format!("u{value:03}"));
    }
    let data = checked(&page(), &x);
    let labels = data["labels"].as_array().unwrap();
    let texts: Vec<_> = labels
        .iter()
        .map(|label| label["value"].as_str().unwrap())
        .collect();
    assert_eq!(texts.len(), 201);
    // Of the values with two samples, the first in alphabetical order.
    assert!(
        ["u002", "u003", "u004", "u001", "u096"]
            .iter()
            .all(|text| texts.contains(text))
    );
    assert!(
        ["u000", "u101", "u296"]
            .iter()
            .all(|text| !texts.contains(text))
    );
    assert_eq!(texts[200], "100 others");
    // Samples of other values have the same set.
    assert_eq!(labels[200]["set"].as_array().unwrap().len(), 1);
    // Also values with a single sample are kept, if others have more.
    let mut x = profile(SourceKind::RPROF, &vec!["a"; 302]);
    for sample in 0..302 {
        label(&mut x, sample, "user", &format!("u{:03}", sample.min(300)));
    }
    let data = checked(&page(), &x);
    let labels = data["labels"].as_array().unwrap();
    assert_eq!(labels.len(), 201);
    assert_eq!(labels[199]["value"], "u300");
    assert_eq!(labels[200]["value"], "101 others");
}

#[test]
fn the_ids_of_spans_are_labels() {
    let mut x = profile(SourceKind::RPROF, &["ab", "ab", "b"]);
    let mut link = |sample, trace: &str, span: &str| {
        let [trace_id, span_id] = [trace, span].map(|text| x.strings.intern(text).unwrap());
        x.samples.links.push((sample, Link { trace_id, span_id }));
    };
    link(0, "t1", "s1");
    link(2, "t1", "s2");
    label(&mut x, 1, "route", "/a");
    let data = checked(&page(), &x);
    assert_eq!(
        data["labels"],
        serde_json::json!([
            {"key": "route", "value": "/a", "set": [1]},
            {"key": "span_id", "value": "s1", "set": [0]},
            {"key": "span_id", "value": "s2", "set": [2]},
            {"key": "trace_id", "value": "t1", "set": [0, 2]},
        ])
    );
}
