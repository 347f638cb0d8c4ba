//! Tests with stacks as R's profiler writes them.

use super::*;
use crate::analysis::testing::profile;
use crate::model::Toplevel;

const A: &str = "with_labels>.profile_labelled>.profile_labels:a=1;";
const B: &str = "w:3>.profile_labelled>.profile_labels:b=%20x&a=2;";

fn frames(name: &str) -> Frames {
    Frames::of(name.rsplit('>').map(|name| (name, false))).unwrap()
}

fn labels(name: &str) -> String {
    let all = frames(name).labels;
    let all: Vec<_> = all.iter().map(|(k, v)| format!("{k}={v}")).collect();
    all.join(" ")
}

/// Stacks and labels of all samples.
fn taken(profile: &mut Profile) -> Vec<String> {
    take_labels(profile, &|| false).unwrap();
    let text = |row: usize, &stack: &StackId| {
        let stack = profile.stacks.get(stack).to_vec().unwrap();
        let frame = |&location: &LocationId| {
            let name = profile.function_of(location).unwrap().name;
            let line = profile.locations.get(location).line_for_r();
            format!("{}:{line}", profile.strings.get(name))
        };
        let stack: Vec<_> = stack.iter().rev().map(frame).collect();
        let own = profile.labels.iter().filter(|label| label.sample == row);
        let texts = own.flat_map(|label| [Some(label.key), label.str]);
        let texts: Vec<_> = texts.map(|t| profile.strings.get(t.unwrap())).collect();
        format!("{} | {}", stack.join(">"), texts.join(" "))
    };
    let rows = profile.samples.stack.iter().enumerate();
    rows.map(|(row, stack)| text(row, stack)).collect()
}

#[test]
fn marks_are_recognised_and_no_other_names() {
    let labels = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Some(Mark::Labels(pairs.collect()))
    };
    let parse = |name| Mark::parse(name).unwrap();
    assert_eq!(
        parse(".profile_labels:route=%2Fa%22%0A%C3%A9&m=;"),
        labels(&[("route", "/a\"\né"), ("m", "")])
    );
    assert_eq!(
        parse(".profile_overflow:a&b;"),
        Some(Mark::Overflow(vec!["a".into(), "b".into()]))
    );
    assert_eq!(parse(".profile_labels:;"), labels(&[]));
    assert_eq!(parse(".profile_overflow:*;"), Some(Mark::Overflow(vec![])));
    for name in [
        "",
        "f",
        ".profile_labels:",
        ".profile_labels:a;",
        ".profile_labels:=1;",
        ".profile_labels:a=1",
        ".profile_labels:a=1;x",
        ".profile_labels:a=b=c;",
        ".profile_labels:a=\";",
        ".profile_labels:a=%2;",
        ".profile_labels:a=%zz;",
        ".profile_labels:a=%FF;",
        ".profile_overflow:;",
        ".profile_overflow:a&;",
        "x.profile_labels:a=1;",
    ] {
        assert_eq!(parse(name), None, "{name}");
    }
}

#[test]
fn only_frames_of_labels_are_removed() {
    for (stack, kept) in [
        ("f>g", vec![1, 0]),
        (&format!("f>{A}>g"), vec![4, 0]),
        (&format!("f>{A}>{B}>g"), vec![7, 0]),
        (&format!("f>{A}"), vec![3]),
        // User functions with such names.
        (
            &format!("eval>with_labels>eval>{A}>with_labels>eval"),
            vec![7, 6, 5, 1, 0],
        ),
        // The outer frames were truncated.
        (".profile_labels:a=1;>g", vec![0]),
        (".profile_labelled>.profile_labels:a=1;>g", vec![0]),
        (
            "<outer calls not read>>.profile_labelled>.profile_labels:a=1;>g",
            vec![3, 0],
        ),
        ("f>.profile_labels:a=1;>g", vec![2, 0]),
        // A tick between two calls.
        ("f>with_labels>.profile_labelled", vec![2, 1]),
    ] {
        // A name also contains `>`.
        let names: Vec<_> = match stack.strip_prefix("<outer calls not read>>") {
            Some(rest) => [OUTER_CALLS].into_iter().chain(rest.split('>')).collect(),
            None => stack.split('>').collect(),
        };
        let left = Frames::of(names.iter().rev().map(|name| (*name, false)))
            .unwrap()
            .kept;
        let outermost_first: Vec<_> = left.iter().rev().copied().collect();
        assert_eq!(outermost_first, kept, "{stack}");
    }
}

#[test]
fn inner_labels_replace_outer_ones() {
    assert_eq!(labels("f"), "");
    assert_eq!(labels(&format!("f>{A}>g")), "a=1");
    assert_eq!(labels(&format!("f>{A}>{B}>g")), "a=2 b= x");
    assert_eq!(labels(&format!("f>{B}>{A}>g")), "b= x a=1");
    assert_eq!(labels(".profile_labels:a=1&a=2;"), "a=2");
}

#[test]
fn labels_that_were_too_many_are_not_replaced_by_outer_ones() {
    let over = ".profile_overflow:a&c;";
    assert_eq!(labels(&format!("{A}>{over}>g")), "profile.overflow=a,c");
    assert_eq!(
        labels(&format!("{B}>{over}>g")),
        "b= x profile.overflow=a,c"
    );
    assert_eq!(labels(&format!("{over}>{A}>g")), "a=1 profile.overflow=c");
    assert_eq!(
        labels(&format!("{B}>.profile_overflow:*;>{A}>{over}>g")),
        "profile.overflow=*,a,c"
    );
}

#[test]
fn samples_get_labels_and_lose_frames() {
    let mut x = profile(&[
        ("f:1>g:2", 1.0),
        (&format!("f:1>{A}:5>g:2"), 1.0),
        (&format!("f:1>{A}:5>{B}:7>h:9"), 1.0),
        (&format!("f:1>{A}:5"), 1.0),
        (&format!("{A}:5"), 1.0),
        ("f:1>w:2>.profile_forwarded>.profile_labels:a=1;:5>g:2", 1.0),
        (&format!("f:1>{A}:5>{B}>g:2"), 1.0),
    ]);
    let key = x.strings.intern("old").unwrap();
    x.labels.push(Label {
        str: Some(key),
        ..Label::new(1, key)
    });
    let filename = x.strings.intern("file.R").unwrap();
    x.samples.toplevel = vec![
        Toplevel {
            sample: 3,
            filename,
            line: 1,
        },
        Toplevel {
            sample: 4,
            filename,
            line: 1,
        },
    ];
    assert_eq!(
        taken(&mut x),
        [
            "f:1>g:2 | ",
            "f:5>g:2 | old old a 1",
            "f:7>h:9 | a 2 b  x",
            "f:5 | a 1",
            " | a 1",
            "f:1>g:2 | a 1",
            "f:5>g:2 | a 2 b  x",
        ]
    );
    assert_eq!(
        x.samples
            .toplevel
            .iter()
            .map(|t| t.line)
            .collect::<Vec<_>>(),
        [1, 5]
    );
    // Nothing remains of the marks.
    let names: Vec<_> = x.functions.iter().map(|f| x.strings.get(f.name)).collect();
    assert_eq!(names, ["f", "g", "h"]);
    assert_eq!(x.locations.len(), 5);

    // A line in another file does not apply to this function.
    let mut x = profile(&[(&format!("f:1>{A}:5>g:2"), 1.0)]);
    let functions: Vec<_> = x.functions.iter().copied().collect();
    x.functions = Default::default();
    let other = x.strings.intern("other.R").unwrap();
    for mut function in functions {
        if x.strings.get(function.name).starts_with(".profile_labels") {
            function.filename = other;
        }
        x.functions.push(function).unwrap();
    }
    assert_eq!(taken(&mut x), ["f:1>g:2 | a 1"]);
}

#[test]
fn labels_of_the_user_replace_the_names_of_spans() {
    let own = |labels: &str| format!("f>w>.profile_labelled>.profile_labels:{labels};>g");
    let mut x = profile(&[
        ("f", 1.0),
        (&own("a=1"), 1.0),
        (&own("span.name=mine"), 1.0),
        ("f>w>.profile_labelled>.profile_overflow:b;>g", 1.0),
    ]);
    for sample in 0..4 {
        for (key, text) in [(SPAN_NAME, "GET"), (OVERFLOW_KEY, "c"), ("a", "other")] {
            let key = x.strings.intern(key).unwrap();
            let str = Some(x.strings.intern(text).unwrap());
            x.labels.push(Label {
                str,
                ..Label::new(sample, key)
            });
        }
    }
    assert_eq!(
        taken(&mut x),
        [
            "f:0 | span.name GET profile.overflow c a other",
            "f:0>g:0 | span.name GET profile.overflow c a other a 1",
            "f:0>g:0 | profile.overflow c a other span.name mine",
            "f:0>g:0 | span.name GET a other profile.overflow b",
        ]
    );
}

#[test]
fn a_profile_without_labels_stays_as_it_is() {
    let mut x = profile(&[
        ("f:1>with_labels:2>eval", 1.0),
        ("f:1>with_labels:2>eval", 2.0),
    ]);
    let before = format!("{x:?}");
    take_labels(&mut x, &|| false).unwrap();
    assert_eq!(format!("{x:?}"), before);
}

#[test]
fn labels_of_a_file_are_counted_before_they_take_memory() {
    let mut x = profile(&[
        (&format!("f:1>{B}:5"), 1.0),
        (&format!("{A}>g:1"), 1.0),
        ("g", 1.0),
    ]);
    let mut needed = 0;
    let refuse = |bytes| {
        needed = bytes;
        Err(crate::error::Error::Memory)
    };
    assert!(take_labels_of_file(&mut x, refuse, &|| false).is_err());
    assert_eq!(needed, 3 * size_of::<Label>() as u64);
    assert_eq!(x.labels.len(), 0);
}

#[test]
fn units_of_work_are_labels_and_remain_frames() {
    let own = "with_labels>.profile_labelled>.profile_labels:shiny.reactive=mine;";
    let mut x = profile(&[
        ("main>DATA>f>SAVE>g", 1.0),
        ("main", 1.0),
        (&format!("main>DATA>{own}>f"), 1.0),
        (&format!("main>{A}>DATA"), 1.0),
        // Names that several units have count only if there is no other.
        ("SAVE>UNNAMED>g", 1.0),
        ("UNNAMED>OUTPUT>g", 1.0),
        ("UNNAMED>OUTPUT>DATA", 1.0),
        (&format!("UNNAMED>{own}>f"), 1.0),
    ]);
    let functions: Vec<_> = x.functions.iter().copied().collect();
    x.functions = Default::default();
    for mut function in functions {
        let unit = match x.strings.get(function.name) {
            "DATA" => Some("<reactive:data>"),
            "SAVE" => Some("<observer:save>"),
            "UNNAMED" => Some("<observer>"),
            "OUTPUT" => Some("private$withCurrentOutput"),
            _ => None,
        };
        if let Some(unit) = unit {
            function.name = x.strings.intern(unit).unwrap();
            function.system_name = function.name;
        }
        x.functions.push(function).unwrap();
    }
    assert_eq!(
        taken(&mut x),
        [
            "main:0><reactive:data>:0>f:0><observer:save>:0>g:0 | shiny.reactive <observer:save>",
            "main:0 | ",
            "main:0><reactive:data>:0>f:0 | shiny.reactive mine",
            "main:0><reactive:data>:0 | a 1 shiny.reactive <reactive:data>",
            "<observer:save>:0><observer>:0>g:0 | shiny.reactive <observer:save>",
            "<observer>:0>private$withCurrentOutput:0>g:0 | shiny.reactive <output>",
            "<observer>:0>private$withCurrentOutput:0><reactive:data>:0 | shiny.reactive <reactive:data>",
            "<observer>:0>f:0 | shiny.reactive mine",
        ]
    );
}
