//! Sources as labels: they come back, and what only looks like them stays.

use super::build::*;
use profile_core::model::{Profile, Source};
use profile_core::pprof::{self, WriteOptions};

const RUNS: &str = "sample.interval=20000\n\"f\" \"g\" \n\"f\" \"g\" \n\
    GC profiling: sample.interval=5000\n\"<GC>\" \"f\" \"g\" \n\
    GC profiling: line profiling: sample.interval=1000\n#File 1: a.R\n1#3 \"f\" \n";

fn there_and_back(profile: &Profile, aggregate: bool) -> (Profile, Vec<u8>) {
    let options = WriteOptions {
        aggregate,
        sources: true,
    };
    let bytes = write_with(profile, options);
    let (read, problems) = pprof::read(&bytes[..], origin(), &|| false).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    (read, bytes)
}

/// Without what belongs to the runs' own format.
fn plain(sources: &[Source]) -> Vec<Source> {
    let sources = sources.iter().cloned();
    sources
        .map(|source| Source {
            files: Vec::new(),
            ..source
        })
        .collect()
}

#[test]
fn sources_come_back_with_all_facts() {
    let mut profile = read_rprof(RUNS);
    profile.sources[0].timestamp = Some(1_234_567_890.123_456_7);
    profile.sources[0].default_type = Some("samples".to_owned());
    profile.sources[1].uri = None;
    profile.sources[1].duration = Some(i64::MAX);
    profile.sources[2].uri = Some(String::new());
    profile.sources[2].options = None;
    for aggregate in [true, false] {
        let (read, bytes) = there_and_back(&profile, aggregate);
        assert_eq!(plain(&read.sources), plain(&profile.sources));
        let (again, second) = there_and_back(&read, aggregate);
        assert_eq!(again.sources, read.sources);
        assert_eq!(bytes, second);
        let keys = read.labels.iter().map(|l| read.strings.get(l.key));
        assert!(keys.eq(["gc"]));
    }
    let (read, _) = there_and_back(&profile, false);
    assert_eq!(read.samples.source, profile.samples.source);
}

#[test]
fn a_source_without_a_uri_or_a_period_has_no_label_for_it() {
    let mut profile = read_rprof("\"f\" \n");
    profile.sources[0] = Source {
        kind: "manual".to_owned(),
        ..Source::default()
    };
    let (read, _) = there_and_back(&profile, true);
    assert_eq!(read.sources, profile.sources);
}

#[test]
fn labels_that_only_look_like_a_source_stay_labels() {
    let profile = read_rprof(RUNS);
    let bytes = write_with(
        &profile,
        WriteOptions {
            aggregate: false,
            sources: true,
        },
    );
    // A run whose options are neither yes nor no, and one with no type.
    for (from, to) in [
        (&b"\x32\x03yes"[..], &b"\x32\x03yep"[..]),
        (b"\x32\x0bsource_type", b"\x32\x0bsource_tyke"),
    ] {
        let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
        let mut odd = bytes.clone();
        odd[at..at + from.len()].copy_from_slice(to);
        let (read, _) = pprof::read(&odd[..], origin(), &|| false).unwrap();
        let key = |l: &&profile_core::model::Label| read.strings.get(l.key) == "source_id";
        let left = read.labels.iter().filter(key).count();
        assert!(left > 0);
        assert_eq!(read.samples.len(), 4);
        // The file's own source has those samples.
        assert_eq!(read.sources.last().unwrap().kind, "pprof");
    }
}
