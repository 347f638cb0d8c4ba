//! Tests pages of small profiles that are created for a test, and of real profiles.

mod decoded;
mod labels;
mod order;

use super::*;
use crate::collections::Lists;
use crate::error::Error;
use crate::formats::{self, Input};
use crate::io::input::Origin;
use crate::model::{
    Attribute, AttributeValue, Function, Location, Period, Source, SourceId, SourceKind, Stacks,
    ValueKind, ValueType, Values,
};
use data_encoding::BASE64;
use decoded::{between, checked, data, frame_texts, html, undelta};
use hmac_sha256::Hash;

const GO_ON: &dyn Fn() -> bool = &|| false;
const TEMPLATE: &str = "<!DOCTYPE html>\n<html><head>\n<meta charset=\"utf-8\">\n<title>t</title>\n</head>\n\
                        <body>\n<script id=\"data\" type=\"application/octet-stream\"></script>\n\
                        <script id=\"snapshot\" type=\"application/octet-stream\"></script>\n</body>\n</html>\n";

fn page() -> Page<'static> {
    Page {
        title: "a page",
        generator: "profile",
        template: TEMPLATE,
        style: "p { color: red }\n",
        script: "'use strict';\nrun();\n",
        mine: vec!["a.R", "unused.R"],
        sources: usize::MAX,
        ..Page::default()
    }
}

fn data_file(path: &str) -> Profile {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/testthat/data/");
    let path = format!("{folder}{path}");
    let input = Input::File(path.as_ref());
    formats::read(input, None, Origin::default(), GO_ON)
        .unwrap()
        .0
}

/// A profile with these stacks (a letter for each function, innermost first), as samples of one
/// source.
fn profile(kind: SourceKind, stacks: &[&str]) -> Profile {
    let mut profile = Profile::default();
    add_source(&mut profile, kind, stacks);
    let mut counts = Values::absent("samples", "count", 0).unwrap();
    counts.column.try_fill(stacks.len(), 1.0).unwrap();
    profile.values.push(counts);
    profile
}

fn add_source(profile: &mut Profile, kind: SourceKind, stacks: &[&str]) -> SourceId {
    let source = profile
        .add_source(Source {
            kind,
            ..Source::default()
        })
        .unwrap();
    for text in stacks {
        let mut stack = Vec::new();
        for name in text.split("").filter(|name| !name.is_empty()) {
            let filename = profile.strings.intern(&format!("{name}.R")).unwrap();
            stack.push(profile.frame(name, filename, 1).unwrap());
        }
        let stack = profile.stacks.intern(&stack).unwrap();
        profile.samples.stack.push(stack);
        profile.samples.source.try_push(source).unwrap();
    }
    source
}

fn values(name: &str, unit: &str, column: &[f64]) -> Values {
    let type_ = ValueType {
        name: name.to_owned(),
        unit: unit.to_owned(),
    };
    Values {
        type_,
        column: column.to_vec().into(),
        exact: Vec::new(),
    }
}

fn source_text<'t>((name, text): (&'t str, &'t str)) -> SourceText<'t> {
    let changed = true;
    SourceText {
        name,
        text,
        changed,
    }
}

#[test]
fn real_files_are_in_the_data() {
    for file in [
        "rprof/basic_all.out",
        "rprof/append_plain3.out",
        "rprof/dplyr_all.out",
    ] {
        let data = checked(&page(), &data_file(file));
        assert!(!data["order"].as_array().unwrap().is_empty());
        assert_eq!(
            (data["type"].as_i64(), data["counts"].as_i64()),
            (Some(0), Some(0))
        );
        assert!(data["sources"][0]["period"].as_f64().unwrap() > 0.0);
    }
    let data = checked(&page(), &data_file("pprof/go_cpu.pb.gz"));
    assert_eq!(data["order"], serde_json::json!([]));
    assert_eq!(data["bytes"], -1);
    let data = checked(&page(), &data_file("pprof/go_heap.pb.gz"));
    assert_eq!(
        data["types"][data["bytes"].as_u64().unwrap() as usize]["name"],
        "alloc_space"
    );
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let none = checked(&page(), &Profile::default());
    for (field, value) in [("type", -1), ("counts", -1), ("bytes", -1), ("format", 1)] {
        assert_eq!(none[field], value);
    }
    assert_eq!(none["strings"], serde_json::json!([""]));
    assert_eq!(
        none["nodes"],
        serde_json::json!({"depth": [0], "frame": [-1]})
    );
    // Samples without values, and a sample without a stack.
    let mut without_values = profile(SourceKind::MANUAL, &["ab", "", "ab"]);
    without_values.values.clear();
    let data = checked(&page(), &without_values);
    assert_eq!(data["values"], serde_json::json!([]));
    assert_eq!(data["order"][0]["run"], serde_json::json!([1, 1, 1]));
    assert_eq!(undelta(&data["order"][0]["node"]), [2, 0, 2]);
}

#[test]
fn the_samples_of_a_heap_snapshot_have_no_order() {
    let mut x = profile(SourceKind::named("heap"), &["ab", "b"]);
    x.values = vec![values("inuse_space", "bytes", &[8.0, 16.0])];
    let data = checked(&page(), &x);
    assert_eq!(data["order"], serde_json::json!([]));
    assert_eq!(data["sources"][0]["type"], "heap");
}

#[test]
fn only_what_samples_have_is_in_the_data() {
    let mut x = profile(SourceKind::RPROF, &["ab"]);
    let unused = x
        .frame("unused", x.strings.find("a.R").unwrap(), 3)
        .unwrap();
    x.stacks.intern(&[unused]).unwrap();
    let mut page = page();
    page.texts = [
        ("b.R", "b <- 1\n"),
        ("b.R", "second"),
        ("c.R", "c"),
        ("", "none"),
    ]
    .map(source_text)
    .to_vec();
    let data = checked(&page, &x);
    assert_eq!(
        data["strings"],
        serde_json::json!(["", "b", "b.R", "a", "a.R"])
    );
    assert_eq!(
        data["texts"],
        serde_json::json!([{"file": 2, "text": "b <- 1\n", "changed": true}])
    );
    assert_eq!(data["plumbing"], serde_json::json!([]));
    assert_eq!(data["mine"], serde_json::json!([4]));
    page.options.timeline = false;
    let data = checked(&page, &x);
    assert_eq!(data["order"], serde_json::json!([]));
    assert_eq!(data["options"]["timeline"], false);
    assert_eq!(data["options"]["labels"], true);
}

#[test]
fn plumbing_is_a_list_of_nodes() {
    let mut x = profile(SourceKind::RPROF, &[]);
    let file = x.strings.intern("").unwrap();
    let outer = ["f", "lapply", "FUN"].map(|name| x.frame(name, file, 0).unwrap());
    for inner in ["g", "eval"] {
        let inner = x.frame(inner, file, 0).unwrap();
        let stack = x
            .stacks
            .intern(&[inner, outer[2], outer[1], outer[0]])
            .unwrap();
        x.samples.stack.push(stack);
        let source = x.source_ids().next().unwrap();
        x.samples.source.try_push(source).unwrap();
        x.values[0].column.try_push(1.0).unwrap();
    }
    let data = checked(&page(), &x);
    // f > lapply > FUN > g, eval
    assert_eq!(undelta(&data["plumbing"]), [2, 3, 5]);
}

#[test]
fn functions_that_look_equal_are_one() {
    let mut x = Profile::default();
    let name = x.strings.intern("f").unwrap();
    let function = Function::recorded([name; 2], name, 0, &mut x.strings).unwrap();
    let with_package = Function {
        package: Some(x.strings.intern("p").unwrap()),
        ..function
    };
    let of = |function| Location {
        function,
        line: Some(1),
        ..Location::default()
    };
    let source = x.add_source(Source::default()).unwrap();
    for function in [Some(function), Some(with_package), Some(function), None] {
        let function = function.map(|function| x.functions.push(function).unwrap());
        let location = x.locations.push(of(function)).unwrap();
        let stack = x.stacks.push(&[location]).unwrap();
        x.samples.stack.push(stack);
        x.samples.source.try_push(source).unwrap();
    }
    x.values.push(values("samples", "count", &[1.0; 4]));
    let data = checked(&page(), &x);
    assert_eq!(data["values"][0]["value"], serde_json::json!([2, 1, 1]));
    let texts = ["f|f|0||1|", "f|f|0|p|1|", "<unknown>||0||1|"];
    assert_eq!(frame_texts(&data), texts);
}

#[test]
fn kinds_of_frames_are_kept() {
    let mut x = profile(SourceKind::RPROF, &["a"]);
    let native = x.frame_type("native").unwrap();
    let inlined = x
        .locations
        .get(x.stacks.get(x.samples.stack[0]).first().unwrap());
    let inlined = Location {
        frame_type: native,
        inlined: true,
        ..inlined
    };
    let inner = x.locations.intern(inlined).unwrap();
    let outer = x
        .locations
        .intern(Location {
            inlined: false,
            ..inlined
        })
        .unwrap();
    x.samples.stack[0] = x.stacks.push(&[inner, outer]).unwrap();
    let data = checked(&page(), &x);
    assert_eq!(undelta(&data["nodes"]["depth"]), [0, 1, 2]);
    assert_eq!(data["frames"]["kind"].as_array().unwrap().len(), 1);
}

#[test]
fn packed_stacks_are_read() {
    let mut x = profile(SourceKind::PPROF, &["ab", "b"]);
    let mut packed = Lists::default();
    for list in [&[1, 2][..], &[2], &[], &[1, 2]] {
        packed.push(list).unwrap();
    }
    x.stacks = Stacks::from_packed(packed, 2).unwrap();
    x.samples.stack = x.stacks.ids().collect();
    for _ in 0..2 {
        x.samples
            .source
            .try_push(x.source_ids().next().unwrap())
            .unwrap();
    }
    x.values = vec![values("samples", "count", &[1.0, 2.0, 4.0, 8.0])];
    let data = checked(&page(), &x);
    // Equal stacks in two rows are one node.
    assert_eq!(data["values"][0]["value"], serde_json::json!([4, 2, 9]));
}

#[test]
fn sources_and_types_are_kept_apart() {
    let mut x = profile(SourceKind::RPROF, &["ab", "b", "ab"]);
    add_source(&mut x, SourceKind::MANUAL, &["cb", "b", "", "b"]);
    x.samples.source.each().unwrap().swap(0, 6);
    let no = f64::NAN;
    x.values = vec![
        values("samples", "count", &[no, 1.0, 1.0, no, no, no, 1.0]),
        values("vsize_small", "bytes", &[1.0; 7]),
        values(
            "alloc_size",
            "bytes",
            &[0.5, -1.0, 0.0, 3.0, 1.0, 2.0, 1e300],
        ),
        values("zeros", "count", &[0.0; 7]),
    ];
    x.sources[0].uri = Some("https://host/a/x.out?token=1".to_owned());
    x.sources[0].timestamp = Some(1.5);
    x.sources[0].period = Some(Period::from_rprof(20_000).unwrap());
    x.sources[1].uri = Some("C:\\dir\\y.out".to_owned());
    let mut page = page();
    page.sources = 1;
    let data = checked(&page, &x);
    let names = data["types"].as_array().unwrap().iter().map(|t| &t["name"]);
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["samples", "alloc_size", "zeros"]
    );
    assert_eq!(
        (data["type"].as_i64(), data["bytes"].as_i64()),
        (Some(0), Some(1))
    );
    assert_eq!(
        data["sources"],
        serde_json::json!([
            {"name": "x.out", "type": "rprof", "period": 20000000, "start": 1.5, "samples": 3, "base": false},
            {"name": "y.out", "type": "manual", "period": null, "start": null, "samples": 0, "base": true},
        ])
    );
    assert_eq!(
        data["order"].as_array().unwrap().len(),
        1,
        "missing counts are not once"
    );
}

#[test]
fn sums_that_pass_zero_are_complete() {
    let mut x = profile(SourceKind::MANUAL, &["a", "a", "a", "b", "b"]);
    x.values = vec![values("v", "bytes", &[1.0, -1.0, 5.0, 2.0, -2.0])];
    let data = checked(&page(), &x);
    assert_eq!(data["values"][0]["node"], serde_json::json!([1]));
}

#[test]
fn samples_have_an_order_where_it_is_known() {
    let order = |x: &Profile| data(&page(), x)["order"].as_array().unwrap().len();
    let of = |kind| profile(kind, &["a", "b"]);
    assert_eq!(order(&of(SourceKind::RPROF)), 1);
    assert_eq!(order(&of(SourceKind::MANUAL)), 1);
    assert_eq!(order(&of(SourceKind::PPROF)), 0);
    assert_eq!(order(&of(SourceKind::named("otlp"))), 0);
    let mut aggregated = of(SourceKind::RPROF);
    aggregated.values[0] = values("samples", "count", &[1.0, 2.0]);
    assert_eq!(order(&aggregated), 0);
    // Samples are sorted by time if all have one.
    let mut timed = of(SourceKind::named("otlp"));
    timed.samples.times = vec![(0, 7)];
    assert_eq!(order(&timed), 0);
    timed.samples.times = vec![(0, 7), (1, 5)];
    let data = data(&page(), &timed);
    assert_eq!(undelta(&data["order"][0]["node"]), [2, 1]);
}

#[test]
fn times_are_stored_where_they_are_not_regular() {
    let times = |period: Option<f64>, times: &[i64]| {
        let mut x = profile(SourceKind::named("process"), &vec!["a"; times.len()]);
        x.sources[0].period = period.map(|value| Period {
            value,
            exact: None,
            type_: Some(ValueType {
                name: "wall".to_owned(),
                unit: "nanoseconds".to_owned(),
            }),
        });
        x.samples.times = times.iter().copied().enumerate().collect();
        let data = data(&page(), &x);
        let times = &data["order"][0]["times"];
        let at = times["at"].as_array().unwrap();
        (
            times["start"].as_f64().unwrap(),
            times["step"].as_f64().unwrap(),
            undelta(&times["sample"]),
            at.iter().map(|at| at.as_f64().unwrap()).collect::<Vec<_>>(),
        )
    };
    let begin = 1_000_000_000;
    let at = |offsets: &[i64]| offsets.iter().map(|at| begin + at).collect::<Vec<_>>();
    assert_eq!(
        times(Some(10.0), &at(&[0, 10, 21, 30])),
        (1.0, 10.0, vec![0], vec![0.0])
    );
    // A gap, and samples that come earlier.
    assert_eq!(
        times(Some(10.0), &at(&[0, 10, 50, 60, 63])),
        (1.0, 10.0, vec![0, 2, 4], vec![0.0, 50.0, 63.0])
    );
    // Without a period, the mean distance is the step.
    assert_eq!(
        times(None, &at(&[0, 10, 30])),
        (1.0, 15.0, vec![0], vec![0.0])
    );
    assert_eq!(times(None, &[7]), (7e-9, 1.0, vec![0], vec![0.0]));
    let extreme = times(None, &[i64::MIN, i64::MAX]);
    assert_eq!(extreme.3, [0.0]);
}

#[test]
fn no_text_leaves_its_place() {
    let long = "x".repeat(1 << 20);
    let hostile = "</script><script>alert(1)</script><!--\"'\u{2028}\u{202e}\u{7f}\0&amp;";
    let mut x = Profile::default();
    let source = x.add_source(Source {
        uri: Some(hostile.to_owned()),
        ..Source::default()
    });
    let file = x.strings.intern(hostile).unwrap();
    let stack = [hostile, &long].map(|name| x.frame(name, file, 1).unwrap());
    let stack = x.stacks.push(&stack).unwrap();
    x.samples.stack.push(stack);
    x.samples.source.try_push(source.unwrap()).unwrap();
    x.values.push(values(hostile, &long, &[1.0]));
    let page = Page {
        title: hostile,
        texts: vec![source_text((hostile, hostile))],
        ..page()
    };
    let data = checked(&page, &x);
    assert_eq!(
        (&data["title"], &data["texts"][0]["text"]),
        (&hostile.into(), &hostile.into())
    );
    let html = html(&page, &x);
    assert_eq!(html.matches("<script").count(), 3);
    assert_eq!(html.matches("</script").count(), 3);
    assert!(!html.contains("<!--"));
    let title = between(&html, "<title>", "</title>");
    assert!(
        !title.contains(['<', '>']) && title.ends_with("&amp;amp;"),
        "{title}"
    );
}

#[test]
fn the_policy_has_the_hashes_of_script_and_style() {
    let html = html(&page(), &Profile::default());
    let hash = |start, end| BASE64.encode(&Hash::hash(between(&html, start, end).as_bytes()));
    let expected = format!(
        "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n",
        hash("<script>", "</script>"),
        hash("<style>", "</style>")
    );
    assert!(html.contains(&expected), "{html}");
    assert!(html.ends_with("run();\n</script>\n</body>\n</html>\n"));
    // The known hash of an empty text.
    let empty = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    assert_eq!(BASE64.encode(&Hash::hash(b"")), empty);
}

#[test]
fn parts_that_do_not_fit_are_errors() {
    let error = |page: Page| {
        let mut out = Vec::new();
        let error = page
            .write(&Profile::default(), &mut out, GO_ON)
            .unwrap_err();
        error.to_string()
    };
    let template = TEMPLATE.replace("</head>", "");
    let template = Page {
        template: &template,
        ..page()
    };
    assert!(error(template).contains("`</head>`"));
    for script in ["'</script>'", "'<!--'"] {
        assert!(error(Page { script, ..page() }).contains("`</script`"));
    }
    assert!(
        error(Page {
            style: "</style>",
            ..page()
        })
        .contains("`</style`")
    );
}

#[test]
fn it_can_be_interrupted() {
    let x = data_file("rprof/basic_all.out");
    let result = page().write(&x, &mut Vec::new(), &|| true);
    assert!(matches!(result, Err(Error::Interrupted)));
}

#[test]
fn sources_have_the_name_of_what_their_process_runs() {
    const COMMAND: &str = "process.command_line";
    const PROGRAM: &str = "process.executable.name";
    const SCRIPT: &str = "profile.process.script";
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[(PROGRAM, "R"), (SCRIPT, "my app.R")], "my app.R pid:1"),
        (&[(PROGRAM, "R")], "R pid:1"),
        // Other tools may have recorded these.
        (&[(PROGRAM, "/usr/bin/python3")], "python3 pid:1"),
        (
            &[(
                COMMAND,
                "/usr/lib/R/bin/exec/R --no-echo --file=/srv/my app.R --args --file=x",
            )],
            "my app.R pid:1",
        ),
        (
            &[(COMMAND, "/usr/lib/R/bin/exec/R -e f('token')")],
            "R pid:1",
        ),
        (
            &[(COMMAND, "python3 app.py"), (PROGRAM, "")],
            "python3 pid:1",
        ),
        (&[(COMMAND, "")], "pid:1"),
        (&[], "pid:1"),
    ];
    for (attributes, name) in cases {
        let mut x = profile(SourceKind::RPROF, &["a"]);
        for (key, text) in attributes {
            let [key, text] = [key, text].map(|t| x.strings.intern(t).unwrap());
            let kind = ValueKind::String;
            let value = AttributeValue { kind, text };
            x.sources[0].attributes.push(Attribute::new(key, value));
        }
        x.sources[0].uri = Some("pid:1".to_owned());
        assert_eq!(checked(&page(), &x)["sources"][0]["name"], name);
    }
}

#[test]
fn processes_that_work_together_have_their_role_and_times() {
    let mut x = profile(SourceKind::named("process"), &["a", "a"]);
    add_source(&mut x, SourceKind::named("process"), &["b", "b"]);
    x.values = vec![values("cpu", "nanoseconds", &[10.0; 4])];
    x.samples.times = vec![(0, 1_000_000_000), (1, 1_000_000_010), (2, 3_000_000_000)];
    x.samples.times.push((3, 3_000_000_050));
    for (row, role) in ["master", "worker 1 of 1"].into_iter().enumerate() {
        let attributes = [
            ("process.pid", (row + 7).to_string()),
            ("profile.process.role", role.to_owned()),
        ];
        x.sources[row].attributes = attributes
            .map(|(key, value)| {
                let text = x.strings.intern(&value).unwrap();
                let kind = ValueKind::String;
                Attribute::new(
                    x.strings.intern(key).unwrap(),
                    AttributeValue { kind, text },
                )
            })
            .to_vec();
    }
    x.sources[1].duration = Some(2_500_000_000);
    let data = checked(&page(), &x);
    let field = |row: usize, name: &str| data["sources"][row][name].clone();
    assert_eq!(field(0, "name"), "master, pid 7");
    assert_eq!(field(1, "name"), "worker 1 of 1, pid 8");
    assert_eq!(
        (field(0, "seconds"), field(1, "seconds")),
        (serde_json::Value::Null, 2.5.into())
    );
    let start = |row: usize| data["order"][row]["times"]["start"].clone();
    assert_eq!((start(0), start(1)), (1.into(), 3.into()));
}

#[test]
fn a_page_has_the_data_of_its_snapshot() {
    let x = profile(SourceKind::named("rprof"), &["f"]);
    let held = profile(SourceKind::named("snapshot"), &["cache"]);
    let of_snapshot = html(&page(), &held);
    let both = Page {
        snapshot: Some(of_snapshot.as_bytes()),
        ..page()
    };
    let block = |html: &str, id: &str| {
        let start = format!("<script id=\"{id}\" type=\"application/octet-stream\">");
        between(html, &start, "</script>").to_owned()
    };
    let with = html(&both, &x);
    assert_eq!(block(&with, "data"), block(&html(&page(), &x), "data"));
    assert_eq!(block(&with, "snapshot"), block(&of_snapshot, "data"));
    assert_eq!(block(&of_snapshot, "snapshot"), "");
    let broken = Page {
        snapshot: Some(b"no page"),
        ..page()
    };
    assert!(broken.write(&x, &mut Vec::new(), GO_ON).is_err());
}
