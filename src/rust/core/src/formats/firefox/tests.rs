//! Reads the layouts of several versions, and irregular and hostile files.

use super::*;
use crate::error::Error;
use crate::formats::testing::{self, kinds, name_of, read, read_with, rprof_profile, written};
use crate::model::{LocationId, Profile};

/// For each sample its source, its stack (outermost first) and its values.
fn samples(profile: &Profile) -> Vec<(usize, String, Vec<f64>)> {
    let frame = |id: LocationId| {
        let location = profile.locations.get(id);
        match profile.function_of(id) {
            Some(function) => {
                let file = profile.strings.get(function.filename);
                format!("{}@{file}:{}", name_of(profile, id), location.line.unwrap())
            }
            None => {
                let address = profile.address_of(&location);
                let mapping = address.mapping.unwrap();
                let file = profile.mappings[mapping.row()].filename;
                format!("{:#x}@{}", address.address, profile.strings.get(file))
            }
        }
    };
    let samples = testing::samples(profile, frame);
    let shown = samples.iter().map(|sample| {
        let values = sample.known_values();
        (sample.source, sample.outermost_first(), values)
    });
    shown.collect()
}

fn stacks(profile: &Profile) -> Vec<String> {
    let samples = samples(profile).into_iter();
    samples.map(|(_, stack, _)| stack).collect()
}

const STACKS: &str = r#""stackTable":{"length":3,"frame":[0,1,0],"prefixOffset":[0,1,0]}"#;
const OLD_STACKS: &str = r#""stackTable":{"length":3,"frame":[0,1,0],"prefix":[null,0,null]}"#;
const FRAMES: &str = r#""frameTable":{"length":2,"func":[0,1],"line":[3,null],"column":[null,null],"address":[-1,256]}"#;
const FUNCS: &str = r#""funcTable":{"length":2,"name":[0,1],"source":[0,null],"lineNumber":[1,null],"resource":[-1,0]},"resourceTable":{"name":[0],"lib":[0]},"sources":{"filename":[2]}"#;
const OLD_FUNCS: &str = r#""funcTable":{"length":2,"name":[0,1],"fileName":[2,null],"lineNumber":[1,null],"resource":[-1,0]},"resourceTable":{"name":[0],"lib":[0]}"#;
const STRINGS: &str = r#""stringArray":["f","0x100","a.R"]"#;
const LIBS: &str =
    r#""libs":[{"name":"libx.so","path":"/lib/libx.so","codeId":null,"breakpadId":"AB"}]"#;
const SAMPLES: &str = r#""samples":{"length":2,"stack":[1,null],"timeDeltas":[5,2.5],"weight":null,"weightType":"samples"}"#;
const META: &str =
    r#""meta":{"interval":10,"startTime":1600000000000,"preprocessedProfileVersion":66}"#;
const EXPECTED: [&str; 2] = ["f@a.R:3;0x100@/lib/libx.so", ""];

#[test]
fn tables_may_be_shared_or_those_of_threads() {
    let thread =
        |own: &str| format!(r#""threads":[{{{own}"name":"main","pid":"7","tid":8,{SAMPLES}}}]"#);
    let shared = |tables: &[&str]| format!(r#""shared":{{{}}}"#, tables.join(","));
    let files = [
        // Version 66, with threads first and last.
        [
            META,
            LIBS,
            &shared(&[STACKS, FRAMES, FUNCS, STRINGS]),
            &thread(""),
        ]
        .join(","),
        [
            &*thread(""),
            &shared(&[STRINGS, FUNCS, FRAMES, STACKS]),
            LIBS,
            META,
        ]
        .join(","),
        // Version 60.
        [
            META,
            LIBS,
            &shared(&[OLD_STACKS, FRAMES, FUNCS, STRINGS]),
            &thread(""),
        ]
        .join(","),
        // Versions 56 and 58, in which threads have tables.
        [
            META,
            LIBS,
            &shared(&[STRINGS]),
            &thread(&format!("{OLD_STACKS},{FRAMES},{OLD_FUNCS},")),
        ]
        .join(","),
        // Version 41.
        [
            META,
            LIBS,
            &thread(&format!("{STRINGS},{OLD_STACKS},{FRAMES},{OLD_FUNCS},")),
        ]
        .join(","),
        // Version 40.
        [
            META,
            &thread(&format!(
                "{STRINGS},{LIBS},{OLD_STACKS},{FRAMES},{OLD_FUNCS},"
            )),
        ]
        .join(","),
    ];
    for file in files {
        let (profile, problems) = read(&FORMAT, &format!("{{{file}}}"));
        assert_eq!(stacks(&profile), EXPECTED, "{file}");
        assert!(problems.is_empty());
        assert_eq!(profile.mappings.len(), 1);
        assert_eq!(profile.strings.get(profile.mappings[0].build_id), "AB");
        let source = &profile.sources[0];
        assert_eq!(source.timestamp, Some(1.6e9));
        assert_eq!(source.period.as_ref().unwrap().nanoseconds(), Some(1e7));
        let start = 1_600_000_000_000_000_000;
        assert_eq!(
            profile.samples.times,
            [(0, start + 5_000_000), (1, start + 7_500_000)]
        );
        let comments = source
            .comments
            .iter()
            .map(|&text| profile.strings.get(text));
        assert_eq!(
            comments.collect::<Vec<_>>(),
            ["main", "process  7, thread 8"]
        );
    }
}

fn with_threads(threads: &str) -> String {
    format!(
        r#"{{{META},{LIBS},"shared":{{{STACKS},{FRAMES},{FUNCS},{STRINGS}}},"threads":[{threads}]}}"#
    )
}

#[test]
fn weights_have_types() {
    let thread = |type_: &str, weight: &str| {
        format!(
            r#"{{"samples":{{"stack":[0,0],"time":[1,2],"weight":{weight},"weightType":"{type_}","threadCPUDelta":[null,30]}}}}"#
        )
    };
    let allocations = r#"{"samples":{"stack":[]},"nativeAllocations":{"stack":[0,1],"time":[1,2],"weight":[64,-64]}}"#;
    let threads = [
        &thread("samples", "[2,3]"),
        &thread("tracing-ms", "[2.5,3]"),
        &thread("bytes", "[100,-7]"),
        allocations,
        r#"{"name":"empty","samples":{"stack":[],"time":[]}}"#,
    ];
    let (profile, problems) = read(&FORMAT, &with_threads(&threads.join(",")));
    assert!(problems.is_empty());
    let types = profile
        .values
        .iter()
        .map(|v| (v.type_.name.as_str(), v.type_.unit.as_str()));
    assert_eq!(
        types.collect::<Vec<_>>(),
        [
            ("samples", "count"),
            ("cpu", "microseconds"),
            ("time", "milliseconds"),
            ("memory", "bytes"),
            ("alloc_space", "bytes"),
            ("dealloc_space", "bytes"),
        ]
    );
    let found: Vec<_> = samples(&profile)
        .into_iter()
        .map(|(source, _, values)| (source, values))
        .collect();
    let expected = [
        (0, vec![2.0]),
        (0, vec![3.0, 30.0]),
        (1, vec![2.5]),
        (1, vec![30.0, 3.0]),
        (2, vec![100.0]),
        (2, vec![30.0, -7.0]),
        (3, vec![64.0]),
        (3, vec![64.0]),
    ];
    assert_eq!(found, expected);
    assert_eq!(profile.sources.len(), 4);
    assert_eq!(profile.sources[1].types.len(), 2);
}

#[test]
fn irregular_files_are_refused_or_reported() {
    let thread = |stack: &str| format!(r#"{{"samples":{{"stack":[{stack}],"time":[1]}}}}"#);
    let error = read_with(&FORMAT, &with_threads(&thread("9")), None).unwrap_err();
    assert!(
        error.to_string().contains("Stack 9 is out of range"),
        "{error}"
    );
    let cycle = format!(
        r#"{{{META},"threads":[{{{STRINGS},"stackTable":{{"frame":[0,0],"prefix":[1,0]}},{FRAMES},{OLD_FUNCS},{SAMPLES}}}]}}"#
    );
    let error = read_with(&FORMAT, &cycle, None).unwrap_err();
    assert!(
        error.to_string().contains("among its own callers"),
        "{error}"
    );
    let (profile, problems) = read(&FORMAT, &with_threads(&thread("0,0,0")));
    assert_eq!(stacks(&profile).len(), 1);
    assert_eq!(kinds(&problems), ["unequal_lengths"]);
    let gecko = r#"{"meta":{"version":24,"stackwalk":1},"threads":[{"samples":{"schema":{"stack":0},"data":[]}}]}"#;
    let error = read_with(&FORMAT, gecko, None).unwrap_err();
    assert!(
        error.to_string().contains("Firefox itself records"),
        "{error}"
    );
    assert!(matches!(
        read_with(&FORMAT, r#"{"meta":{}}"#, None),
        Err(Error::Foreign(_))
    ));
}

#[test]
fn a_number_that_is_no_row_of_a_table_is_an_error() {
    let file = [
        META,
        LIBS,
        &format!(r#""shared":{{{STACKS},{FRAMES},{FUNCS},{STRINGS}}}"#),
        &format!(r#""threads":[{{{SAMPLES}}}]"#),
    ];
    let file = format!("{{{}}}", file.join(","));
    let (profile, problems) = read(&FORMAT, &file);
    assert!(stacks(&profile) == EXPECTED && problems.is_empty());
    let columns = [
        (STACKS, r#""frame":[0,1,"#, r#""frame":[0,?,"#),
        (STACKS, r#""prefixOffset":[0,1,"#, r#""prefixOffset":[0,?,"#),
        (FRAMES, r#""func":[0,1]"#, r#""func":[0,?]"#),
        (FRAMES, r#""address":[-1,"#, r#""address":[?,"#),
        (FUNCS, r#""name":[0,1]"#, r#""name":[?,1]"#),
        (FUNCS, r#""source":[0,"#, r#""source":[?,"#),
        (FUNCS, r#""resource":[-1,0]"#, r#""resource":[-1,?]"#),
        (FUNCS, r#""lib":[0]"#, r#""lib":[?]"#),
        (FUNCS, r#""filename":[2]"#, r#""filename":[?]"#),
        (SAMPLES, r#""stack":[1,"#, r#""stack":[?,"#),
    ];
    for (table, column, changed) in columns {
        for number in [
            "-2",
            "-1e9",
            "0.5",
            "99",
            "4294967296",
            "1e300",
            "\"1\"",
            "{}",
        ] {
            // An address has more digits.
            if column.contains("address") && ["99", "4294967296"].contains(&number) {
                continue;
            }
            let damaged =
                file.replace(table, &table.replace(column, &changed.replace('?', number)));
            assert_ne!(damaged, file);
            let error = read_with(&FORMAT, &damaged, None);
            assert!(
                matches!(error, Err(Error::Parse { .. })),
                "{column} {number}: {error:?}"
            );
        }
    }
    // A column may end before its table does, with the last row that has a value.
    let shorter = file
        .replace(r#""resource":[-1,0]"#, r#""resource":[-1,1]"#)
        .replace(r#"{"name":[0],"lib":[0]}"#, r#"{"name":[0,0],"lib":[0]}"#);
    assert_ne!(shorter, file);
    let (_, problems) = read(&FORMAT, &shorter);
    assert!(problems.is_empty());
    let damaged = file.replace(r#""prefixOffset":[0,1,"#, r#""prefixOffset":[0,-1,"#);
    let error = read_with(&FORMAT, &damaged, None).unwrap_err().to_string();
    assert!(
        error.contains("The `prefixOffset` of stack 1 leads to no stack."),
        "{error}"
    );
}

#[test]
fn a_truncated_file_is_read_as_far_as_it_goes() {
    let text = with_threads(&format!(r#"{{{SAMPLES}}},{{{SAMPLES}}}"#));
    let mut counts = Vec::new();
    for end in 10..text.len() {
        match read_with(&FORMAT, &text[..end], None) {
            Ok((profile, problems)) => {
                assert!(!problems.is_empty());
                counts.push(profile.samples.len());
            }
            Err(error) => assert!(
                matches!(error, Error::Parse { .. } | Error::Foreign(_)),
                "{error}"
            ),
        }
    }
    assert!(counts.contains(&4));
}

#[test]
fn a_small_file_cannot_take_much_memory() {
    // A chain of calls, with a sample in each.
    let rows = 20_000;
    let frame = vec!["0"; rows].join(",");
    let offset = vec!["1"; rows - 1].join(",");
    let stack: Vec<_> = (0..rows).map(|row| row.to_string()).collect();
    let text = format!(
        r#"{{{META},"shared":{{"stackTable":{{"frame":[{frame}],"prefixOffset":[0,{offset}]}},{FRAMES},{FUNCS},{STRINGS}}},"threads":[{{"samples":{{"stack":[{}]}}}}]}}"#,
        stack.join(",")
    );
    let error = read_with(&FORMAT, &text, Some(100_000_000)).unwrap_err();
    assert!(matches!(error, Error::Budget { .. }), "{error}");
}

#[test]
fn what_is_written_is_read_again() {
    let profile = rprof_profile(
        "memory profiling: GC profiling: line profiling: sample.interval=20000\n#File 1: a.R\n:1:2:3:0:1#3 \"f\" 1#7 \"g\" \n:1:2:3:0:\"<GC>\" 1#4 \"f\" 1#8 \"g\" \n:9:2:3:0:\"g\" \n",
    );
    let writer = Writer {
        texts: vec![Text {
            file: "a.R",
            text: "one\ntwo\n",
        }],
    };
    let text = written(&writer, &profile);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let shared = &value["shared"];
    for (table, content) in shared.as_object().unwrap() {
        for (name, column) in content.as_object().into_iter().flatten() {
            if let Some(column) = column.as_array() {
                assert_eq!(column.len() as u64, content["length"], "{table}.{name}");
            }
        }
    }
    assert_eq!(shared["sources"]["content"][0], "one\ntwo\n");
    let samples_json = &value["threads"][0]["samples"];
    assert_eq!(samples_json["timeDeltas"], serde_json::json!([0, 20, 20]));
    assert_eq!(samples_json["weightType"], "tracing-ms");
    let (back, problems) = read(&FORMAT, &text);
    assert!(problems.is_empty());
    let found: Vec<_> = samples(&back)
        .into_iter()
        .map(|(_, stack, values)| (stack, values))
        .collect();
    let expected = [
        ("g@a.R:7;f@a.R:3", 20.0),
        ("g@a.R:8;f@a.R:4;<GC>@:0", 20.0),
        ("g@:0", 20.0),
    ];
    let expected = expected.map(|(stack, time)| (stack.to_owned(), vec![time]));
    assert_eq!(found[..3], expected);
    assert!(
        found[3..]
            .iter()
            .all(|(stack, _)| expected.iter().any(|(other, _)| other == stack))
    );
}
