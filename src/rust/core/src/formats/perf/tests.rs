//! Tests the reader with small texts.

mod fields;

use super::FORMAT;
use crate::formats::Problems;
use crate::formats::testing::{self, kinds, read_with};
use crate::model::{LocationId, Profile};

pub(super) fn profile(text: &str) -> (Profile, Vec<&'static str>) {
    let (profile, problems) = testing::read(&FORMAT, text);
    (profile, kinds(&problems))
}

/// Each sample as its frames: name, `!` if inlined, type, file and line.
pub(super) fn stacks(profile: &Profile) -> Vec<String> {
    let text = |id| profile.strings.get(id);
    let frame = |id: LocationId| {
        let location = profile.locations.get(id);
        let function = profile.function_of(id);
        let name = function.map_or("?", |f| text(f.name));
        let inlined = if location.inlined { "!" } else { "" };
        let type_ = profile.frame_type_of(&location).unwrap_or("-");
        let address = profile.address_of(&location);
        let module = address
            .mapping
            .map_or("", |id| text(profile.mappings[id.row()].filename));
        let source = match location.line {
            Some(line) => format!(" {}:{line}", text(function.unwrap().filename)),
            None => String::new(),
        };
        format!(
            "{name}{inlined} {type_} {:x}@{module}{source}",
            address.address
        )
    };
    let samples = testing::samples(profile, frame).into_iter();
    samples.map(|sample| sample.frames.join(", ")).collect()
}

/// The labels of a sample.
fn labels(profile: &Profile, sample: usize) -> String {
    let text = |id| profile.strings.get(id);
    let labels = profile.labels.iter().filter(|label| label.sample == sample);
    let label = |label: &crate::model::Label| {
        let value = match label.num {
            Some(number) => number.to_string(),
            None => label.str.map(text).unwrap().to_owned(),
        };
        format!("{}={value}", text(label.key))
    };
    labels.map(label).collect::<Vec<_>>().join(" ")
}

fn types(profile: &Profile) -> Vec<String> {
    let of = |values: &crate::model::Values| {
        let column: Vec<_> = values.column.iter().map(f64::to_string).collect();
        format!(
            "{}/{}: {}",
            values.type_.name,
            values.type_.unit,
            column.join(" ")
        )
    };
    profile.values.iter().map(of).collect()
}

const ONE: &str = "# ========\n# captured on    : Sun Nov 22 2026\n#\n\
R 12/34 [001] 10.000000500:     250000 cpu-clock:u: \n\
\t            1139 inner (inlined)\n  a.c:3\n\
\t            1139 main+0x10 (/bin/a)\n  a.c:12\n\
\tffffffff81000000 entry+0x1 ([kernel.kallsyms])\n\
\n\
R 12/34 [000] 10.5:     250000 cpu-clock:u: \n\
\t            2000 [unknown] (/bin/a)\n\
\t               0 [unknown] ([unknown])\n\n";

#[test]
fn samples_have_frames_labels_and_periods() {
    let (profile, problems) = profile(ONE);
    assert!(problems.is_empty(), "{problems:?}");
    let expected = [
        "inner! native 1139@/bin/a a.c:3, main native 1139@/bin/a a.c:12, entry kernel ffffffff81000000@[kernel.kallsyms]",
        "? native 2000@/bin/a, ? - 0@",
    ];
    assert_eq!(stacks(&profile), expected);
    let frames = profile
        .stacks
        .get(profile.samples.stack[0])
        .to_vec()
        .unwrap();
    assert!(profile.is_inlined_into(frames[0], frames[1]));
    let first = "comm=R pid=12 tid=34 cpu=1 time=10000000500";
    assert_eq!(labels(&profile, 0), first);
    let expected = [
        "samples/count: 1 1",
        "cpu-clock:u/nanoseconds: 250000 250000",
    ];
    assert_eq!(types(&profile), expected);
    let source = &profile.sources[0];
    assert_eq!(source.period.as_ref().unwrap().value, 250_000.0);
    assert_eq!(source.duration, Some(499_999_500));
    assert_eq!(source.default_type.as_deref(), Some("cpu-clock:u"));
    let comment = profile.strings.get(source.comments[0]);
    assert_eq!(comment, "captured on    : Sun Nov 22 2026");
}

/// They are durations, so the time between two samples is not known.
#[test]
fn times_off_the_processor_are_durations() {
    let sample = |time: &str, period: u32| {
        format!("app  5/5 [000] {time}:     {period} offcpu-time: \n\t 1000 f (/bin/app)\n\n")
    };
    let (x, problems) = profile(&[sample("10.3", 1_000_000), sample("10.4", 250_000_000)].concat());
    assert!(problems.is_empty(), "{problems:?}");
    let expected = [
        "samples/count: 1 1",
        "offcpu-time/nanoseconds: 1000000 250000000",
    ];
    assert_eq!(types(&x), expected);
    assert_eq!(x.sources[0].default_type.as_deref(), Some("offcpu-time"));
    let (x, _) = profile(&sample("10.3", 7));
    assert_eq!(x.sources[0].period, None);
    // A trace point that is counted.
    let (x, _) = profile("a 7 1.5:  1 sched:sched_switch: \n\t 1000 f (/bin/app)\n\n");
    assert_eq!(types(&x)[1], "sched:sched_switch/count: 1");
}

/// Such as text that was pasted into a message.
#[test]
fn frames_may_follow_a_blank_line_or_have_no_indentation() {
    let text = "a 7 1.5: 2 cycles:\n\n\t1139 f (/m)\n\t1140 g (/m)\n\n\
                a 7 1.6: 3 cycles:\n1139 f (/m)\nffffffff81 k ([kernel.kallsyms])\n\n\
                a 7 1.7: 4 cycles:\n\na 7 1.8: 5 cycles:\n\t1140 g (/m)\n";
    let (profile, problems) = profile(text);
    assert!(problems.is_empty(), "{problems:?}");
    let expected = [
        "f native 1139@/m, g native 1140@/m",
        "f native 1139@/m, k kernel ffffffff81@[kernel.kallsyms]",
        "",
        "g native 1140@/m",
    ];
    assert_eq!(stacks(&profile), expected);
}

/// Blank lines that contain blanks end samples, but no stack is then found by its text.
#[test]
fn known_stacks_are_those_that_their_lines_mean() {
    let head = |row: usize| format!("a {row}/{row} {row}.5: {row} cpu-clock: \n");
    let stacks = [
        "\t            1139 f (m)\n\t            1140 g (m)\n",
        "\t            1139 f (m)\n",
        "\t            1139 inner (inlined)\n  a.c:3\n\t            1139 main (/bin/a)\n  a.c:12\n",
        "\t0x1/0x2/P/-\n\t            1139 f (m)\n",
        "            1139 f (m)\n",
        "\t\0f (m)\n",
        "\t            1139 f (m)\nb 1 1.5: 1 cpu-clock: \n\t            1140 g (m)\n",
        "stray\n\t            1139 f (m)\n",
        "",
    ];
    let mut text = String::new();
    for row in 0..200 {
        text += &head(row);
        text += stacks[row * row % 31 % stacks.len()];
        text += if row % 50 == 49 { "\nstray\n\n" } else { "\n" };
    }
    text += &head(200);
    text += stacks[0];
    let (fast, problems) = testing::read(&FORMAT, &text);
    let (slow, same_problems) = testing::read(&FORMAT, &text.replace("\n\n", "\n \n"));
    assert!(problems.kept().len() > 4);
    let places = |problems: &Problems| format!("{:?}", problems.kept());
    assert_eq!(places(&problems), places(&same_problems));
    assert_eq!(super::tests::stacks(&fast), super::tests::stacks(&slow));
    assert_eq!(fast.labels, slow.labels);
    assert_eq!(types(&fast), types(&slow));
}

#[test]
fn events_are_sample_types() {
    let text = "a 1 1.0: 7 cycles: \n\tf (m)\n\na 1 2.0: 1 page-faults: \n\tf (m)\n\na 1 3.0: 8 cycles: \n\tf (m)\n";
    let (profile, problems) = profile(text);
    assert!(problems.is_empty());
    let expected = ["cycles/count: 7 NaN 8", "page-faults/count: NaN 1 NaN"];
    assert_eq!(types(&profile), expected);
    assert_eq!(profile.sources[0].period, None);
}

#[test]
fn frames_may_be_on_the_first_line() {
    let text = "a 1 1.0: cycles:  7f0 main+0x1 (/bin/a)\n\
                a 1 2.0: sched:sched_switch: prev=a ==> next=b\n\
                a 1 3.0: cycles:  7f0 x (y)\n\tg (m)\n\n\
                a 1 4.0: cycles: \n \t0x1/0x2/P/-/-/0 \n";
    let (profile, problems) = profile(text);
    assert!(problems.is_empty());
    let expected = ["main native 7f0@/bin/a", "", "g native 0@m", ""];
    assert_eq!(stacks(&profile), expected);
}

#[test]
fn irregular_files_are_read_as_far_as_possible() {
    #[rustfmt::skip]
    let cases = [
        ("a 1 1.0: c: \n\tf (m)", &["f native 0@m"][..], &["no_final_line_feed"][..]),
        ("a 1 1.0: c: \n\tf (m)\n\tg (", &["f native 0@m"], &["cut_sample"]),
        ("a 1 1.0: c: \n\tf (m)\n\na 1 2.", &["f native 0@m"], &["cut_line"]),
        ("a 1 1.0: c: \n\tf (m)\nhello\n\tg (m)\n", &["f native 0@m"], &["stray_text"]),
        ("a 1 1.0: c: \r\n\tf (m)\r\n\r\n", &["f native 0@m"], &["carriage_returns"]),
        ("a 1 1.0: PERF_RECORD_COMM exec: sh:1/1\na 1 1.0: c: \n", &[""], &[]),
        // No blank line between samples, and no time.
        ("a 1 c: \n\tf (m)\nb 2 c: \n\tg (m)\n", &["f native 0@m", "g native 0@m"], &[]),
    ];
    for (text, samples, problem) in cases {
        let (profile, problems) = profile(text);
        assert_eq!(stacks(&profile), samples, "{text}");
        assert_eq!(problems, problem, "{text}");
    }
    for (text, what) in [
        ("", "empty"),
        ("hello\n", "cpu-clock"),
        ("# a script\nx = 1\n", "cpu-clock"),
    ] {
        let error = read_with(&FORMAT, text, None).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn there_may_not_be_a_thousand_events() {
    let lines: String = (0..2000).map(|i| format!("a 1 1.0: e{i}: \n\n")).collect();
    let error = read_with(&FORMAT, &lines, None).unwrap_err();
    assert!(error.to_string().contains("1000 events"), "{error}");
}
