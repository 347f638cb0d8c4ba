//! Links to spans are labels in files, and links again when files are read.

use super::build::*;
use profile_core::model::{Label, Link, Profile};

const TRACE: &str = "5b8efff798038103d269b633813fc60c";
const SPAN: &str = "eee19b7ec3c1b174";

/// Four samples with the same stack.
fn profile() -> Profile {
    read_rprof("sample.interval=20000\n\"f\" \n\"f\" \n\"f\" \n\"f\" \n")
}

fn link(profile: &mut Profile, sample: usize, trace: &str, span: &str) {
    let link = Link {
        trace_id: profile.strings.intern(trace).unwrap(),
        span_id: profile.strings.intern(span).unwrap(),
    };
    profile.samples.links.push((sample, link));
}

fn label(profile: &mut Profile, sample: usize, key: &str, str: &str) {
    let key = profile.strings.intern(key).unwrap();
    let label = Label {
        str: Some(profile.strings.intern(str).unwrap()),
        ..Label::new(sample, key)
    };
    profile.labels.push(label);
}

/// The links and labels of a profile as text.
fn shown(profile: &Profile) -> Vec<String> {
    let text = |id| profile.strings.get(id);
    let links = profile.samples.links.iter();
    let links =
        links.map(|(row, link)| format!("{row} in {}/{}", text(link.trace_id), text(link.span_id)));
    let labels = profile.labels.iter().map(|label| {
        let value = label.str.map_or("", text);
        format!("{} {}={value}", label.sample, text(label.key))
    });
    links.chain(labels).collect()
}

fn again(profile: &Profile, aggregate: bool) -> Profile {
    let written = write(profile, aggregate);
    let read = try_read(&written).unwrap().0;
    // What is written from there is the same.
    assert_eq!(
        shown(&try_read(&write(&read, aggregate)).unwrap().0),
        shown(&read)
    );
    read
}

#[test]
fn links_are_kept() {
    let mut profile = profile();
    link(&mut profile, 1, TRACE, SPAN);
    link(&mut profile, 2, TRACE, SPAN);
    label(&mut profile, 2, "route", "/a");
    label(&mut profile, 3, "route", "/a");
    let every = format!("in {TRACE}/{SPAN}");
    let expected = [format!("1 {every}"), format!("2 {every}")];
    let labels = ["2 route=/a", "3 route=/a"].map(str::to_owned);
    assert_eq!(shown(&again(&profile, false)), [expected, labels].concat());
    // Samples of different spans are not merged.
    let summed = again(&profile, true);
    assert_eq!(summed.samples.len(), 4);
    profile.labels.clear();
    let summed = again(&profile, true);
    assert_eq!(summed.samples.len(), 2);
    assert_eq!(shown(&summed), [format!("1 {every}")]);
}

#[test]
fn only_labels_with_ids_become_links() {
    let zeros = "0".repeat(16);
    let upper = SPAN.to_uppercase();
    let invalid = [
        vec![("trace_id", TRACE)],
        vec![("span_id", SPAN)],
        vec![("trace_id", TRACE), ("span_id", "7")],
        vec![("trace_id", TRACE), ("span_id", &zeros)],
        vec![("trace_id", TRACE), ("span_id", &upper)],
        vec![("trace_id", SPAN), ("span_id", SPAN)],
        vec![
            ("trace_id", TRACE),
            ("span_id", SPAN),
            ("span_id", "0000000000000001"),
        ],
    ];
    for labels in invalid {
        let mut profile = profile();
        for &(key, value) in &labels {
            label(&mut profile, 1, key, value);
        }
        // Another sample has valid ones.
        label(&mut profile, 2, "trace_id", TRACE);
        label(&mut profile, 2, "span_id", SPAN);
        let kept = labels.iter().map(|(key, value)| format!("1 {key}={value}"));
        let expected: Vec<_> = [format!("2 in {TRACE}/{SPAN}")]
            .into_iter()
            .chain(kept)
            .collect();
        assert_eq!(shown(&again(&profile, false)), expected);
    }
}

#[test]
fn labels_and_ids_that_a_sample_has_already_are_not_repeated() {
    let mut profile = profile();
    label(&mut profile, 0, "span_id", "mine");
    link(&mut profile, 0, TRACE, SPAN);
    // One of two ids may be unknown.
    link(&mut profile, 1, "", SPAN);
    assert_eq!(
        shown(&again(&profile, false)),
        [
            "0 span_id=mine".to_owned(),
            format!("0 trace_id={TRACE}"),
            format!("1 span_id={SPAN}")
        ]
    );
}
