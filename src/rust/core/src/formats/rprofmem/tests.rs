//! Tests the reader with small texts.

use super::FORMAT;
use crate::formats::testing::{self, kinds, name_of, read_with};

/// The allocations of a text, with their names, and the keys of problems.
fn shown(text: &[u8]) -> (Vec<String>, Vec<&'static str>) {
    let (profile, problems) = match read_with(&FORMAT, text, None) {
        Ok(result) => result,
        Err(error) => return (vec![error.to_string()], Vec::new()),
    };
    let samples = testing::samples(&profile, |id| name_of(&profile, id).to_owned()).into_iter();
    let samples =
        samples.map(|sample| format!("{}: {}", sample.values_text(), sample.innermost_first()));
    (samples.collect(), kinds(&problems))
}

#[test]
fn lines_are_allocations() {
    let (samples, problems) =
        shown(b"8048 :\"f\" \"main\" \n192 :\n18446744073709551615 :\"f\" \n");
    assert_eq!(
        samples,
        ["8048 1: f < main", "192 1: ", "18446744073709552000 1: f"]
    );
    assert!(problems.is_empty());
    assert_eq!(shown(b""), (vec![], vec![]));
}

#[test]
fn pages_have_no_bytes() {
    let (samples, problems) = shown(b"8048 :\"f\" \nnew page:\"f\" \"main\" \n");
    assert_eq!(samples, ["8048 1 0: f", "NaN NaN 1: f < main"]);
    assert!(problems.is_empty());
}

#[test]
fn old_versions_of_r_join_lines() {
    let (samples, problems) = shown(b"200 :360 :new page:8040 :\"double\" \n56 :48 :");
    let expected = [
        "200 1 0: ",
        "360 1 0: ",
        "NaN NaN 1: ",
        "8040 1 0: double",
        "56 1 0: ",
        "48 1 0: ",
    ];
    assert_eq!(samples, expected);
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn names_are_not_escaped() {
    let text = b"48 :\"a \"b \" \"l[[\"x\"]]\" \"two\nlines\" \"main\" \n48 :\"f\" \n";
    let (samples, problems) = shown(text);
    assert_eq!(
        samples,
        ["48 1: a \"b  < l[[\"x\"]] < two\nlines < main", "48 1: f"]
    );
    assert_eq!(problems, ["line_feed_in_name"]);
}

#[test]
fn truncated_lines_are_read_as_far_as_possible() {
    #[rustfmt::skip]
    let cases = [
        (&b"48 :\"f\" \"ma"[..], &["48 1: f"][..], &["cut_sample"][..]),
        (b"48 :\"f\" ", &["48 1: f"], &["no_final_line_feed"]),
        (b"48 :\n4", &["48 1: "], &["stray_text"]),
        (b"48 :\"f\" \"ma\n56 :\"g\" \n", &["48 1: f", "56 1: g"], &["torn_sample"]),
        (b"48 :\"f\" x\n", &["48 1: "], &["torn_sample"]),
        (b"48 :x \"f\" \n", &["48 1: "], &["torn_sample"]),
        (b"48 :\"f\" \nhello\n\n", &["48 1: f"], &["stray_text", "blank_line"]),
        (b"48 :\"f\" \r\n", &["48 1: f"], &["carriage_returns"]),
    ];
    for (text, samples, problem) in cases {
        let (found, problems) = shown(text);
        assert_eq!(found, samples);
        assert_eq!(problems, problem);
    }
    let hole = [b"48 :\"f\" \"m".as_slice(), &[0; 40], b"48 :\"g\" \n"].concat();
    let (samples, problems) = shown(&hole);
    assert_eq!(samples, ["48 1: f", "48 1: g"]);
    assert_eq!(problems, ["cut_sample", "nul_run"]);
}

#[test]
fn other_files_are_refused() {
    for (text, what) in [
        (&b"hello\n"[..], "`192 :`"),
        (b"\n\n", "blank lines"),
        (b"sample.interval=20000\n\"f\" \n", "Rprof"),
    ] {
        let (samples, _) = shown(text);
        assert!(samples[0].contains(what), "{samples:?}");
    }
}
