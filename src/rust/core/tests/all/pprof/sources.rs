//! Sources as labels of their samples: written, read again, and read from files in which these labels
//! are irregular.

use super::build::*;
use profile_core::Error;
use profile_core::formats::pprof::Writer;
use profile_core::formats::{LossKind, Writer as _};
use profile_core::model::{Period, Profile, Source, SourceKind, ValueType};

fn options(aggregate: bool) -> Writer {
    Writer {
        aggregate,
        source_labels: true,
    }
}

fn told(profile: &Profile, aggregate: bool) -> Vec<u8> {
    write_with(profile, &options(aggregate)).0
}

fn again(profile: &Profile, aggregate: bool) -> Profile {
    try_read(&told(profile, aggregate)).unwrap().0
}

/// Two runs with different intervals and options.
fn two_runs() -> Profile {
    let mut profile = read_rprof(
        "memory profiling: GC profiling: sample.interval=20000\n\
         :1:2:3:4:\"f\" \n:2:2:3:4:\"<GC>\" \"f\" \n:2:2:3:4:\"f\" \n\
         sample.interval=10000\n\"f\" \n\"f\" \n",
    );
    profile.sources[0].timestamp = Some(1_732_169_999.123_456);
    profile.sources[1].uri = None;
    profile
}

fn source_of(profile: &Profile) -> Vec<usize> {
    profile.samples.source.iter().map(|s| s.row()).collect()
}

#[test]
fn runs_come_back_as_sources() {
    let profile = two_runs();
    for aggregate in [false, true] {
        let bytes = told(&profile, aggregate);
        let read = try_read(&bytes).unwrap().0;
        assert_eq!(sources(&read), sources(&profile));
        let (of, gc) = if !aggregate {
            (vec![0, 0, 0, 1, 1], 1)
        } else {
            (vec![0, 0, 1], 1)
        };
        assert_eq!(source_of(&read), of);
        // Only the label for garbage collection remains.
        assert_eq!(read.labels.len(), gc);
        assert_eq!(told(&read, aggregate), bytes);
        let shown = |bytes: &[u8]| show(&try_read(bytes).unwrap().0);
        let values = |lines: Vec<String>| -> Vec<String> {
            let values = |line: &String| line.split('[').next().map(str::to_owned);
            lines.iter().filter_map(values).collect()
        };
        let plain = write(&profile, aggregate);
        assert_eq!(values(shown(&bytes)), values(shown(&plain)));
        assert!(!String::from_utf8_lossy(&bytes).contains("run-1"));
    }
}

#[test]
fn any_source_comes_back() {
    let mut profile = read(
        &base()
            .message(2, sample(&[1], &[1]))
            .message(2, sample(&[2], &[1])),
    );
    let source = &mut profile.sources[0];
    source.period = Some(Period {
        value: 0.1,
        exact: None,
        type_: Some(ValueType {
            name: String::new(),
            unit: "milli seconds".to_owned(),
        }),
    });
    source.duration = Some(i64::MIN);
    source.default_type = Some("samples".to_owned());
    let texts = ["a comment", "another"];
    source.comments = texts
        .map(|text| profile.strings.intern(text).unwrap())
        .into();
    let second = profile.add_source(Source {
        kind: SourceKind::named("by hand"),
        uri: Some(String::new()),
        ..Source::default()
    });
    profile.samples.source.each().unwrap()[0] = second.unwrap();
    let read = again(&profile, true);
    assert_eq!(sources(&read), sources(&profile));
    assert_eq!(comments(&read), comments(&profile));
    assert_eq!(source_of(&read), [1, 0]);
    assert!(read.labels.is_empty());
    assert_eq!(sources(&again(&read, true)), sources(&profile));
}

#[test]
fn comments_do_not_pile_up() {
    let mut profile = two_runs();
    let comment = profile.strings.intern("of the second").unwrap();
    profile.sources[1].comments = vec![comment];
    let once = again(&profile, true);
    assert_eq!(comments(&once), [vec!["of the second"], vec![]]);
    let twice = again(&once, true);
    assert_eq!(comments(&twice), comments(&once));
    assert_eq!(sources(&twice), sources(&once));
}

#[test]
fn a_source_without_samples_is_told() {
    let profile = read_rprof(
        "sample.interval=20000\n\"f\" \nsample.interval=10000\n\
         sample.interval=5000\n\"f\" \n",
    );
    let losses = write_with(&profile, &options(true)).1;
    assert_eq!(losses.count(LossKind::SourceWithoutSamples), 1);
    let losses = write_with(&profile, &Writer::default()).1;
    assert_eq!(losses.count(LossKind::SourceWithoutSamples), 0);
    let read = again(&profile, true);
    let periods: Vec<_> = read.sources.iter().map(|s| s.period.clone()).collect();
    assert_eq!(
        periods,
        [0, 2].map(|row: usize| profile.sources[row].period.clone())
    );
    // Only a comment about it remains.
    assert_eq!(comments(&read)[0], ["Rprof: Rprof.out, 10000 us"]);
    assert_eq!(sources(&again(&read, true)), sources(&read));
}

/// Source 1 of type `f` or `g`, and a sample whose labels describe it.
fn labelled(id: i64, kind: u64) -> Bytes {
    sample(&[1], &[1])
        .message(3, new().uint(1, 7).int(3, id))
        .message(3, new().uint(1, 8).uint(2, kind))
}

fn keys() -> Bytes {
    base().strings(&["source_id", "source_type"])
}

fn kinds(profile: &Profile) -> Vec<&str> {
    profile.sources.iter().map(|s| s.kind.as_str()).collect()
}

#[test]
fn sources_stand_in_the_order_of_their_numbers() {
    let message = [labelled(2, 3), labelled(1, 4), labelled(2, 3)]
        .into_iter()
        .fold(keys(), |b, sample| b.message(2, sample));
    let profile = read(&message);
    assert_eq!(kinds(&profile), ["g", "f"]);
    assert_eq!(source_of(&profile), [1, 0, 1]);

    // Two files were merged, each of which has a source 1.
    let message = message.message(2, labelled(1, 3));
    let profile = read(&message);
    assert_eq!(kinds(&profile), ["f", "g", "f"]);
    assert_eq!(source_of(&profile), [0, 1, 0, 2]);
}

#[test]
fn samples_without_such_labels_are_of_the_file() {
    let message = keys()
        .strings(&["a comment"])
        .uint(13, 9)
        .int(10, 50)
        .message(2, labelled(1, 3))
        .message(
            2,
            sample(&[1], &[1]).message(3, new().uint(1, 3).uint(2, 4)),
        );
    let profile = read(&message);
    assert_eq!(kinds(&profile), ["pprof", "f"]);
    assert_eq!(source_of(&profile), [1, 0]);
    assert_eq!(profile.labels.len(), 1);
    assert_eq!(comments(&profile)[0], ["a comment"]);
    assert_eq!(profile.sources[0].duration, Some(50));
    // Times are not counted twice.
    let mut profile = profile;
    profile.sources[1].duration = Some(30);
    let whole = again(&profile, true);
    assert_eq!(sources(&whole), sources(&profile));
}

#[test]
fn the_file_keeps_the_time_that_no_source_tells() {
    // Two runs of R with 10 ms each, and 5 ms without labels.
    let rprof = read_rprof("sample.interval=10000\n\"f\" \n\"f\" \n");
    let bytes = Bytes(told(&rprof, true));
    let message = bytes.int(10, 25_000_000).message(2, sample(&[1], &[1, 5]));
    let profile = read(&message);
    assert_eq!(kinds(&profile), ["pprof", "rprof"]);
    assert_eq!(profile.sources[0].duration, Some(5_000_000));
    assert!(profile.sources[0].comments.is_empty());
}

#[test]
fn other_labels_stay_labels() {
    let label = |key: u64| new().uint(1, key);
    let with = |labels: &[Bytes]| {
        let sample = labels
            .iter()
            .fold(sample(&[1], &[1]), |b, label| b.message(3, label.clone()));
        read(&keys().message(2, sample))
    };
    let (id, kind) = (label(7).int(3, 1), label(8).uint(2, 3));
    assert_eq!(kinds(&with(&[id.clone(), kind.clone()])), ["f"]);
    assert_eq!(kinds(&with(&[kind.clone(), id.clone()])), ["f"]);
    for labels in [
        // no number
        vec![label(7).uint(2, 3), kind.clone()],
        // one that is not ours
        vec![label(7).int(3, 0), kind.clone()],
        vec![label(7).int(3, -1), kind.clone()],
        vec![label(7).int(3, i64::MIN), kind.clone()],
        vec![label(7).int(3, 1).uint(4, 6), kind.clone()],
        // both text and number
        vec![label(7).int(3, 1).uint(2, 3), kind.clone()],
        // a type that is empty, or a number
        vec![id.clone(), label(8).uint(2, 0)],
        vec![id.clone(), label(8).int(3, 1)],
        // twice
        vec![id.clone(), id.clone(), kind.clone()],
        vec![id.clone(), kind.clone(), kind.clone()],
        // alone
        vec![id.clone()],
        vec![kind.clone()],
    ] {
        let profile = with(&labels);
        assert_eq!(kinds(&profile), ["pprof"]);
        assert_eq!(profile.labels.len(), labels.len());
        // Writing does not lose anything either, and does not misinterpret these labels.
        let plain = try_read(&write(&profile, false)).unwrap().0;
        assert_eq!(show(&plain), show(&profile));
        let mut out = Vec::new();
        let error = options(false)
            .write(&profile, &mut out, &|| false)
            .unwrap_err();
        assert!(matches!(&error, Error::Lossy(text) if text.contains("`source_")));
    }
}

#[test]
fn a_small_file_has_no_large_sources() {
    let uri = "u".repeat(1 << 20);
    let message = keys().strings(&["source_uri", &uri]);
    let message = (1..=1000).fold(message, |b, id| {
        let uri = new().uint(1, 9).uint(2, 10);
        b.message(2, labelled(id, 3).message(3, uri))
    });
    let profile = read(&message);
    assert!(profile.sources.len() < 50);
    let told = profile
        .samples
        .source
        .iter()
        .filter(|s| s.row() > 0)
        .count();
    assert_eq!(profile.labels.len(), 3 * (1000 - told));
}

#[test]
fn times_that_do_not_fit_are_said() {
    let mut profile = two_runs();
    profile.sources[1].timestamp = Some(1e10);
    let mut out = Vec::new();
    let error = options(true)
        .write(&profile, &mut out, &|| false)
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Source 2") && text.contains("2262"), "{text}");
}
