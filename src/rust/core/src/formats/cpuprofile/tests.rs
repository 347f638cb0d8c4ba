//! Reads the layouts of Chrome and Node, and irregular and hostile files.

use super::*;
use crate::error::Error;
use crate::formats::testing::{self, kinds, name_of, read, read_with, rprof_profile, written};
use crate::model::{LocationId, Profile};

mod traces;

/// For each sample its stack (outermost first, with known lines) and its values.
fn samples(profile: &Profile) -> Vec<(String, Vec<f64>)> {
    let name = |id| {
        profile
            .function_of(id)
            .map_or("<unknown>", |_| name_of(profile, id))
    };
    let frame = |id: LocationId| match profile.locations.get(id).line.unwrap_or(0) {
        0 => name(id).to_owned(),
        line => format!("{}:{line}", name(id)),
    };
    let samples = testing::samples(profile, frame).into_iter();
    let shown = samples.map(|sample| (sample.outermost_first(), sample.values));
    shown.collect()
}

fn stacks(profile: &Profile) -> Vec<String> {
    let samples = samples(profile).into_iter();
    samples.map(|(stack, _)| stack).collect()
}

fn node(id: u32, name: &str, rest: &str) -> String {
    format!(
        r#"{{"id":{id},"callFrame":{{"functionName":"{name}","scriptId":"1","url":"u","lineNumber":9,"columnNumber":2}},"hitCount":1{rest}}}"#
    )
}

fn tree() -> String {
    [
        node(1, "(root)", r#","children":[2,4]"#),
        node(
            2,
            "f",
            r#","children":[3],"positionTicks":[{"line":12,"ticks":1},{"line":11,"ticks":1}]"#,
        ),
        node(3, "", ""),
        node(4, "(garbage collector)", ""),
    ]
    .join(",")
}

#[test]
fn a_sample_lasts_until_the_next_one() {
    let (profile, problems) = read(
        &FORMAT,
        &format!(
            r#"{{"nodes":[{}],"startTime":100,"endTime":220,"samples":[2,3,2,4,2],"timeDeltas":[10,20,30,5,15]}}"#,
            tree()
        ),
    );
    let found = samples(&profile);
    let expected = [
        ("f:12", 20.0),
        ("f;(anonymous)", 30.0),
        ("f:11", 5.0),
        ("(garbage collector)", 15.0),
        // More samples than lines.
        ("f", 40.0),
    ];
    let expected = expected.map(|(stack, time)| (stack.to_owned(), vec![1.0, time]));
    assert_eq!(found, expected);
    assert!(problems.is_empty());
    let source = &profile.sources[0];
    assert_eq!((source.duration, source.timestamp), (Some(120_000), None));
    assert!(profile.samples.times.is_empty());
    let function = profile.functions.iter().next().unwrap();
    assert_eq!(function.start_line, 10);
}

#[test]
fn times_since_1970_are_kept() {
    let (profile, _) = read(
        &FORMAT,
        &format!(
            r#"{{"nodes":[{}],"samples":[2,1],"timeDeltas":[0,20.5],"startTime":1700000000000000,"endTime":1700000000000020.5}}"#,
            tree()
        ),
    );
    // The last sample is the mark at the end.
    assert_eq!(samples(&profile), [("f:12".to_owned(), vec![1.0, 20.5])]);
    assert_eq!(profile.sources[0].timestamp, Some(1.7e9));
    assert_eq!(profile.samples.times, [(0, 1_700_000_000_000_000_000)]);
}

#[test]
fn samples_are_sorted_by_time() {
    let (profile, problems) = read(
        &FORMAT,
        &format!(
            r#"{{"nodes":[{}],"startTime":0,"endTime":100,"samples":[2,3,4],"timeDeltas":[10,50,-20]}}"#,
            tree()
        ),
    );
    assert_eq!(
        stacks(&profile),
        ["f:12", "(garbage collector)", "f;(anonymous)"]
    );
    let times: Vec<_> = samples(&profile)
        .iter()
        .map(|(_, values)| values[1])
        .collect();
    assert_eq!(times, [30.0, 20.0, 40.0]);
    assert_eq!(kinds(&problems), ["time_backwards"]);
}

#[test]
fn old_files_are_nested_and_may_only_count() {
    let inner = r#"{"functionName":"g","url":"u","lineNumber":5,"id":3,"callUID":7,"hitCount":2,"children":[]}"#;
    let outer = format!(
        r#"{{"functionName":"f","url":"u","lineNumber":1,"children":[{inner},{}],"hitCount":3,"id":2,"positionTicks":[{{"line":2,"ticks":2}}]}}"#,
        inner
            .replace("\"id\":3", "\"id\":4")
            .replace("\"g\"", "\"h\"")
    );
    let head =
        format!(r#""head":{{"functionName":"(root)","id":1,"children":[{outer}],"hitCount":0}}"#);
    let (profile, problems) = read(
        &FORMAT,
        &format!(r#"{{{head},"startTime":10.5,"endTime":11}}"#),
    );
    let expected = [("f:2", 2.0), ("f", 1.0), ("f;g", 2.0), ("f;h", 2.0)];
    let expected = expected.map(|(stack, count)| (stack.to_owned(), vec![count]));
    assert_eq!(samples(&profile), expected);
    assert_eq!(profile.sources[0].duration, Some(500_000_000));
    assert!(problems.is_empty());
    let (profile, _) = read(
        &FORMAT,
        &format!(r#"{{{head},"samples":[2,3],"timestamps":[100,130]}}"#),
    );
    let expected = [("f:2", 30.0), ("f;g", f64::NAN)];
    let found = samples(&profile);
    assert_eq!((found[0].0.as_str(), found[0].1[1]), expected[0]);
    assert!(found[1].0 == expected[1].0 && found[1].1[1].is_nan());
}

#[test]
fn samples_without_a_time_are_counted_as_lost() {
    let text = format!(
        r#"{{"nodes":[{}],"samples":[2,3,2],"timeDeltas":[10,0,30]}}"#,
        tree()
    );
    let (profile, _) = read(&FORMAT, &text);
    assert_eq!(profile.samples.len(), 3);
    let mut out = Vec::new();
    let writer: &dyn crate::formats::Writer = &Writer;
    let losses = writer.write(&profile, &mut out, &|| false).unwrap();
    let expected = [(crate::formats::losses::LossKind::SampleWithoutValue, 1)];
    assert_eq!(losses.iter().collect::<Vec<_>>(), expected);
    // A sample that took no time is still a sample.
    let (back, _) = read(&FORMAT, &out);
    assert_eq!(samples(&back), samples(&profile)[..2]);
}

#[test]
fn deep_nesting_is_no_recursion() {
    let depth = 50_000;
    let begin = r#"{"functionName":"f","hitCount":0,"children":["#.repeat(depth);
    let leaf = r#"{"functionName":"g","hitCount":1}"#;
    let text = format!(r#"{{"head":{begin}{leaf}{}}}"#, "]}".repeat(depth));
    let (profile, _) = read(&FORMAT, &text);
    let stack = profile.stacks.get(profile.samples.stack[0]);
    assert_eq!(stack.len(), depth + 1);
}

#[test]
fn chunks_of_traces_are_joined() {
    let event = |name: &str, id: u32, tid: u32, args: &str| {
        format!(
            r#"{{"args":{args},"cat":"c","id":"0x{id}","name":"{name}","ph":"P","pid":7,"tid":{tid},"ts":1}}"#
        )
    };
    let part = |nodes: &str, rest: &str| {
        format!(
            r#"{{"data":{{"cpuProfile":{{"nodes":[{nodes}],"samples":[2,2]}},"timeDeltas":[10,20]{rest}}}}}"#
        )
    };
    let root = r#"{"id":1,"callFrame":{"functionName":"(root)"}}"#;
    let child = r#"{"id":2,"parent":1,"callFrame":{"functionName":"f"}}"#;
    let both = format!("{root},{child}");
    let events = [
        event("thread_name", 0, 3, r#"{"name":"main"}"#),
        event("Profile", 1, 3, r#"{"data":{"startTime":100}}"#),
        event(
            "Other",
            1,
            3,
            r#"{"data":{"lines":5,"startTime":"x","timeDeltas":{}}}"#,
        ),
        event("ProfileChunk", 1, 9, &part(&both, r#","lines":[4,5]"#)),
        event("ProfileChunk", 2, 9, &part(&both, "")),
        event(
            "ProfileChunk",
            1,
            9,
            &part("", r#","lines":[6,7],"endTime":180"#),
        ),
    ]
    .join(",");
    for text in [
        format!("[{events}]"),
        format!(r#"{{"metadata":{{}},"traceEvents":[{events}]}}"#),
    ] {
        let (profile, problems) = read(&FORMAT, &text);
        assert_eq!(stacks(&profile), ["f:4", "f:5", "f:6", "f:7", "f", "f"]);
        let times: Vec<_> = samples(&profile)
            .iter()
            .map(|(_, values)| values[1])
            .collect();
        assert_eq!(times[..5], [20.0, 10.0, 20.0, 20.0, 20.0]);
        assert!(times[5].is_nan());
        let comment = profile.sources[0].comments[0];
        assert_eq!(profile.strings.get(comment), "main");
        assert!(problems.is_empty());
    }
    let error = read_with(&FORMAT, &format!("[{}]", event("Other", 1, 2, "{}")), None).unwrap_err();
    assert!(error.to_string().contains("ProfileChunk"), "{error}");
}

#[test]
fn irregular_files_are_refused_with_a_position() {
    let file = |nodes: &str, samples: &str| {
        format!(r#"{{"nodes":[{nodes}],"samples":[{samples}],"timeDeltas":[1]}}"#)
    };
    let twice = format!("{},{}", node(1, "a", ""), node(1, "b", ""));
    let cycle = format!(
        "{},{}",
        node(1, "a", r#","children":[2]"#),
        node(2, "b", r#","children":[1]"#)
    );
    let heap = r#"{"id":1,"callFrame":{},"selfSize":5}"#;
    for (nodes, samples, message) in [
        (tree(), "-1", "not the id of a node"),
        (twice, "1", "Two nodes have the id 1"),
        (cycle, "1", "among its own callers"),
        (
            format!(
                "{},{}",
                node(1, "a", r#","children":[2]"#),
                node(2, "b", r#","parent":3"#)
            ),
            "2",
            "The node with the id 2 has two parents",
        ),
        (
            node(1, "a", "").replace("\"hitCount\":1", "\"hitCount\":-1"),
            "1",
            "not a number of samples",
        ),
        (heap.to_owned(), "1", "heap profile"),
    ] {
        let error = read_with(&FORMAT, &file(&nodes, samples), None).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.position().is_some());
    }
    let (profile, problems) = read(&FORMAT, &file(&tree(), "2,3,4"));
    assert_eq!(stacks(&profile).len(), 1);
    assert_eq!(kinds(&problems), ["unequal_lengths"]);
    let (profile, problems) = read(&FORMAT, &file(&node(2, "a", r#","children":[7]"#), "2"));
    assert_eq!(stacks(&profile), ["a"]);
    assert_eq!(kinds(&problems), ["missing_node"]);
}

#[test]
fn one_more_time_than_samples_is_the_end() {
    for times in [
        r#""timestamps":[100,130,190]"#,
        r#""timeDeltas":[100,30,60]"#,
    ] {
        let text = format!(r#"{{"nodes":[{}],"samples":[3,4],{times}}}"#, tree());
        let (profile, problems) = read(&FORMAT, &text);
        let times = samples(&profile).into_iter().map(|(_, values)| values[1]);
        assert_eq!(times.collect::<Vec<_>>(), [30.0, 60.0]);
        assert!(problems.is_empty());
    }
}

#[test]
fn a_truncated_file_is_read_as_far_as_it_goes() {
    let text = format!(
        r#"{{"nodes":[{}],"startTime":100,"endTime":220,"samples":[2,3,2],"timeDeltas":[10,20,30]}}"#,
        tree()
    );
    for end in text.find("\"nodes\"").unwrap() + 30..text.len() {
        match read_with(&FORMAT, &text[..end], None) {
            Ok((_, problems)) => assert!(kinds(&problems).contains(&"cut_json")),
            Err(error) => assert!(
                matches!(error, Error::Parse { .. } | Error::Foreign(_)),
                "{error}"
            ),
        }
    }
    let (profile, _) = read(&FORMAT, &text[..text.find(",\"timeDeltas").unwrap()]);
    assert_eq!(stacks(&profile), ["f:12", "f;(anonymous)", "f:11"]);
}

#[test]
fn a_small_file_cannot_take_much_memory() {
    // A chain of calls, with a sample in each.
    let nodes: Vec<_> = (1..20_000)
        .map(|id| {
            format!(
                r#"{{"id":{id},"callFrame":{{}},"children":[{}],"hitCount":1}}"#,
                id + 1
            )
        })
        .collect();
    let text = format!(r#"{{"nodes":[{}]}}"#, nodes.join(","));
    let error = read_with(&FORMAT, &text, Some(100_000_000)).unwrap_err();
    assert!(matches!(error, Error::Budget { .. }), "{error}");
}

#[test]
fn what_is_written_is_read_again() {
    let profile = rprof_profile(
        "line profiling: sample.interval=20000\n#File 1: a.R\n1#3 \"f\" 1#7 \"g\" \n1#4 \"f\" 1#8 \"g\" \n\"g\" \n",
    );
    let text = written(&Writer, &profile);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value["timeDeltas"],
        serde_json::json!([0, 20000, 20000, 20000])
    );
    assert_eq!(value["samples"].as_array().unwrap().len(), 4);
    assert_eq!(value["samples"][3], 1);
    let (back, problems) = read(&FORMAT, &text);
    assert!(problems.is_empty());
    let expected = ["g;f:3", "g;f:4", "g"].map(|stack| (stack.to_owned(), vec![1.0, 20000.0]));
    assert_eq!(samples(&back), expected);
}

/// The URL and the id of the script of each node except the outermost one.
fn scripts(text: &str) -> Vec<(String, String)> {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let nodes = value["nodes"].as_array().unwrap();
    let text_of = |node: &serde_json::Value, field: &str| {
        let text = node["callFrame"][field].as_str();
        text.unwrap().to_owned()
    };
    let script = |node| (text_of(node, "url"), text_of(node, "scriptId"));
    nodes[1..].iter().map(script).collect()
}

// They were the rows of the file names among all texts, so a copy of a profile could have others.
#[test]
fn scripts_are_numbered_as_they_occur() {
    let profile = rprof_profile(
        "line profiling: sample.interval=20000\n#File 1: z.R\n#File 2: a.R\n\
        2#1 \"f\" \n\"h\" \n2#5 \"g\" \n1#2 \"k\" \n1#3 \"m\" 2#1 \"f\" \n",
    );
    let text = written(&Writer, &profile);
    let expected = [
        ("a.R", "1"),
        ("", "0"),
        ("a.R", "1"),
        ("z.R", "2"),
        ("z.R", "2"),
    ];
    let expected = expected.map(|(url, id)| (url.to_owned(), id.to_owned()));
    assert_eq!(scripts(&text), expected);
    // Also from a profile with texts in another order.
    let (back, _) = read(&FORMAT, &text);
    assert!(back.strings.iter().ne(profile.strings.iter()));
    assert_eq!(written(&Writer, &back), text);
}

#[test]
fn functions_are_told_apart_by_url_and_line_not_by_script() {
    // Name, script, URL and line. The same file may be loaded as several scripts, which are numbered as they are loaded.
    let nodes = [
        ("f", 7, "u", 3),
        ("f", 8, "u", 3),
        ("f", 8, "v", 3),
        ("f", 7, "u", 4),
        ("g", 7, "u", 3),
    ];
    let file = |order: &[usize]| {
        let children: Vec<_> = order.iter().map(|row| (row + 2).to_string()).collect();
        let mut list = vec![node(
            1,
            "(root)",
            &format!(r#","children":[{}]"#, children.join(",")),
        )];
        list.extend(order.iter().map(|&row| {
            let (name, script, url, line) = nodes[row];
            format!(
                r#"{{"id":{},"callFrame":{{"functionName":"{name}","scriptId":"{script}","url":"{url}","lineNumber":{line}}}}}"#,
                row + 2
            )
        }));
        format!(
            r#"{{"nodes":[{}],"startTime":0,"endTime":60,"samples":[2,3,4,5,6],"timeDeltas":[10,10,10,10,10]}}"#,
            list.join(",")
        )
    };
    let functions = |profile: &Profile| -> Vec<_> {
        let of_sample = |&stack: &_| {
            let frames = profile.stacks.get(stack).to_vec().unwrap();
            let function = profile.locations.get(frames[0]).function.unwrap();
            function.row()
        };
        profile.samples.stack.iter().map(of_sample).collect()
    };
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [1, 2, 0, 4, 3]] {
        let (profile, problems) = read(&FORMAT, &file(&order));
        assert!(problems.is_empty());
        assert_eq!(profile.functions.len(), 4);
        assert_eq!(functions(&profile), [0, 0, 1, 2, 3]);
    }
}
