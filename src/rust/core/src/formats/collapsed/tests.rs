//! Tests the reader with small texts.

use super::FORMAT;
use crate::formats::testing::{self, kinds, name_of, read_with};
use crate::model::LocationId;

/// The stacks of a text, each as its names with types, its values, and the keys of problems.
fn shown(text: &[u8]) -> (Vec<String>, Vec<&'static str>) {
    let (profile, problems) = match read_with(&FORMAT, text, None) {
        Ok(result) => result,
        Err(error) => return (vec![error.to_string()], Vec::new()),
    };
    let frame = |id: LocationId| {
        let location = profile.locations.get(id);
        let name = name_of(&profile, id);
        let type_ = profile.frame_type_of(&location).unwrap_or("");
        let inlined = if location.inlined { "!" } else { "" };
        format!("{name}{inlined}{type_}")
    };
    let samples = testing::samples(&profile, frame).into_iter();
    let samples =
        samples.map(|sample| format!("{}: {}", sample.innermost_first(), sample.values_text()));
    (samples.collect(), kinds(&problems))
}

#[test]
fn lines_are_stacks_and_counts() {
    let text = b"main;f x;g 5\nmain;f x 2\nmain;f x;gg 1.5\n main 1e3\nmain;f x;g 7\n";
    let samples = [
        "g < f x < main: 5",
        "f x < main: 2",
        "gg < f x < main: 1.5",
        " main: 1000",
        "g < f x < main: 7",
    ];
    assert_eq!(shown(text).0, samples);
    assert!(shown(text).1.is_empty());
    // Stacks with empty names of callers, and without any frames.
    assert_eq!(shown(b"a 1\n 2\n").0, ["a: 1", ": 2"]);
}

#[test]
fn suffixes_are_types_of_frames() {
    let text = b"main;in_[i];jit_[j];sys_[k];w_[w];_[k] 1\n";
    let frames = "_[k] < wwaker < syskernel < jitjit < in! < main: 1";
    assert_eq!(shown(text).0, [frames]);
    // The types of async-profiler: one function, whoever runs it.
    let text = b"main;f_[0] 1\nmain;f_[j] 2\nmain;f_[1] 3\nmain;f 4\nmain;f_[2] 5\n";
    let frames = [
        "finterpreted < main: 1",
        "fjit < main: 2",
        "fc1 < main: 3",
        "f < main: 4",
        "f_[2] < main: 5",
    ];
    assert_eq!(shown(text).0, frames);
    let (profile, _) = testing::read(&FORMAT, text);
    assert_eq!(profile.functions.len(), 3);
}

#[test]
fn differences_have_two_counts() {
    let (samples, problems) = shown(b"a;b 1 2\na 3 4\nc 5\n");
    assert_eq!(samples, ["b 1 < a: 2", "a 3: 4", "c: 5"]);
    assert!(problems.is_empty());
    let (samples, problems) = shown(b"a;b 1 2\na 3 4\n");
    assert_eq!(samples, ["b < a: 1 2", "a: 3 4"]);
    assert_eq!(problems, ["two_counts"]);
}

#[test]
fn irregular_lines_are_reported() {
    let (samples, problems) = shown(b"\xef\xbb\xbfa;b 1\r\n\r\nhello\na;;b 2\ncaf\xe9 3\na;b 1");
    let expected = ["b < a: 1", "b < <Anonymous> < a: 2", "café: 3", "b < a: 1"];
    assert_eq!(samples, expected);
    let keys = [
        "byte_order_mark",
        "carriage_returns",
        "blank_line",
        "stray_text",
        "empty_name",
        "not_utf8",
        "no_final_line_feed",
    ];
    assert_eq!(problems, keys);
    let (samples, problems) = shown(b"a;b 1\na;b");
    assert_eq!((samples.len(), problems), (1, vec!["cut_line"]));
    let hole = [b"a;b 1\na;".as_slice(), &[0; 40], b"c 3\nd 4\n"].concat();
    let (samples, problems) = shown(&hole);
    assert_eq!(samples, ["b < a: 1", "c: 3", "d: 4"]);
    assert_eq!(problems, ["cut_line", "nul_run"]);
}

#[test]
fn other_files_are_refused() {
    for (text, what) in [
        (&b""[..], "empty"),
        (b"\n\n", "blank lines"),
        (b"hello\n", "a count"),
        (b"hello", "a count"),
        (b"{\"a\": 1}\n", "JSON"),
        (b"sample.interval=20000\n\"f\" \n", "Rprof"),
        (&[0; 50], "NUL"),
    ] {
        let (samples, _) = shown(text);
        assert!(samples[0].contains(what), "{samples:?}");
    }
}

#[test]
fn a_million_frames_are_read() {
    let deep = [b"f;".repeat(1_000_000), b"g 1\n".to_vec()].concat();
    let (profile, _) = testing::read(&FORMAT, &deep);
    assert_eq!(
        profile.stacks.get(profile.samples.stack[0]).len(),
        1_000_001
    );
}
