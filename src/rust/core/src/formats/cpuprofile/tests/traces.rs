//! Traces of Chrome: parts in any order, lost parts, times of different clocks, several profiles.

use super::*;

/// An event of a process, with the content of `data`.
fn event(name: &str, id: &str, time: f64, data: &str) -> String {
    format!(
        r#"{{"args":{{"data":{{{data}}}}},"id":{id},"name":"{name}","ph":"P","pid":7,"tid":3,"ts":{time}}}"#
    )
}

fn chunk(id: &str, time: f64, nodes: &str, samples: &str, rest: &str) -> String {
    event(
        "ProfileChunk",
        id,
        time,
        &format!(r#""cpuProfile":{{"nodes":[{nodes}],"samples":[{samples}]}}{rest}"#),
    )
}

const ROOT_NODE: &str = r#"{"id":1,"callFrame":{"functionName":"(root)"}}"#;

fn child(id: u32, name: &str) -> String {
    format!(r#"{{"id":{id},"parent":1,"callFrame":{{"functionName":"{name}"}}}}"#)
}

fn trace(events: &[String]) -> (Profile, Vec<&'static str>) {
    let (profile, problems) = read(&FORMAT, &format!("[{}]", events.join(",")));
    (profile, kinds(&problems))
}

fn times(profile: &Profile) -> Vec<f64> {
    let samples = samples(profile).into_iter();
    samples.map(|(_, values)| values[1]).collect()
}

/// Equal, or both unknown.
fn assert_times(profile: &Profile, expected: &[f64]) {
    let shown = |times: &[f64]| times.iter().map(f64::to_string).collect::<Vec<_>>();
    assert_eq!(shown(&times(profile)), shown(expected));
}

#[test]
fn a_start_is_paired_with_the_end_beside_it() {
    let nodes = format!("{ROOT_NODE},{}", child(2, "f"));
    let own = |span: &str| {
        let whole = format!(r#""cpuProfile":{{"nodes":[{nodes}],{span}"samples":[2,2]}}"#);
        event(
            "ProfileChunk",
            "1",
            11.0,
            &format!(r#"{whole},"timeDeltas":[10,20]"#),
        )
    };
    let end = |time: f64| event("ProfileChunk", "1", 12.0, &format!(r#""endTime":{time}"#));
    let start = |time: f64| event("Profile", "1", 10.0, &format!(r#""startTime":{time}"#));
    for (events, last, duration) in [
        (vec![start(100.0), own(""), end(150.0)], 20.0, Some(50_000)),
        // Both clocks are known, or only the one of the profile.
        (
            vec![
                start(100.0),
                own(r#""startTime":5,"endTime":65,"#),
                end(150.0),
            ],
            30.0,
            Some(60_000),
        ),
        (
            vec![start(0.0), own(r#""startTime":5,"endTime":65,"#)],
            30.0,
            Some(60_000),
        ),
        // No end belongs to the start.
        (
            vec![start(100.0), own(r#""endTime":9e11,"#)],
            f64::NAN,
            None,
        ),
        (vec![start(0.0), own(""), end(9e11)], f64::NAN, None),
        (vec![own(""), end(9e11)], f64::NAN, None),
        (vec![start(100.0), own("")], f64::NAN, None),
    ] {
        let (profile, problems) = trace(&events);
        assert_times(&profile, &[20.0, last]);
        assert_eq!(profile.sources[0].duration, duration);
        assert!(problems.is_empty());
    }
}

#[test]
fn events_need_not_be_in_the_order_of_their_times() {
    let first = chunk(
        "\"0x1\"",
        11.0,
        &format!("{ROOT_NODE},{}", child(2, "f")),
        "2,2",
        r#","timeDeltas":[10,20]"#,
    );
    let second = chunk(
        "\"0x1\"",
        12.0,
        &child(3, "g"),
        "3,2",
        r#","timeDeltas":[30,40],"lines":[8,9]"#,
    );
    let start = event("Profile", "\"0x1\"", 10.0, r#""startTime":100"#);
    for events in [
        [&start, &first, &second],
        [&second, &first, &start],
        [&first, &start, &second],
    ] {
        let (profile, problems) = trace(&events.map(String::clone));
        // The first part has no lines.
        assert_eq!(stacks(&profile), ["f", "f", "g:8", "f:9"]);
        assert_times(&profile, &[20.0, 30.0, 40.0, f64::NAN]);
        assert!(problems.is_empty());
    }
}

#[test]
fn profiles_with_the_same_id_are_several_sources() {
    let nodes = format!("{ROOT_NODE},{}", child(2, "f"));
    let part = |time| chunk("1", time, &nodes, "2", r#","timeDeltas":[10]"#);
    let start = |time| event("Profile", "1", time, "");
    let whole = |id: &str| {
        let part = format!(r#""cpuProfile":{{"nodes":[{nodes}],"samples":[2]}}"#);
        event("CpuProfile", id, 5.0, &part)
    };
    let of_process = |id: &str| part(1.0).replace("\"id\":1,\"name\"", &format!("{id},\"name\""));
    for (events, count) in [
        (vec![start(1.0), part(2.0), start(3.0), part(4.0)], 2),
        (vec![whole("1"), whole("1"), part(1.0)], 3),
        (
            vec![
                of_process(r#""id2":{"local":"0x1"}"#),
                of_process(r#""id2":{"local":"0x2"}"#),
            ],
            2,
        ),
    ] {
        let (profile, problems) = trace(&events);
        assert_eq!(
            (profile.sources.len(), profile.samples.len()),
            (count, count)
        );
        assert!(problems.is_empty());
    }
}

#[test]
fn a_lost_chunk_costs_its_nodes_only() {
    let kept = chunk(
        "1",
        11.0,
        &format!("{ROOT_NODE},{}", child(2, "f")),
        "2,2",
        r#","timeDeltas":[10,20]"#,
    );
    let orphan = r#"{"id":8,"parent":7,"callFrame":{"functionName":"orphan"}}"#;
    let later = chunk(
        "1",
        13.0,
        orphan,
        "8,2,7,9",
        r#","timeDeltas":[30,40,50,60],"endTime":99999"#,
    );
    let start = event("Profile", "1", 10.0, r#""startTime":100"#);
    let (profile, problems) = trace(&[start, kept, later]);
    assert_eq!(problems, ["missing_node"]);
    let expected = ["f", "f", "<unknown>;orphan", "f", "<unknown>", "<unknown>"];
    assert_eq!(stacks(&profile), expected);
    // The time of lost samples is not assigned to the last sample.
    assert_times(&profile, &[20.0, 30.0, 40.0, 50.0, 60.0, f64::NAN]);
}

/// The format allows that the last bracket is missing, with or without a comma before it.
#[test]
fn an_array_of_events_may_be_open() {
    let event = r#"{"name":"CpuProfile","ph":"I","pid":1,"tid":1,"ts":5,"args":{"data":{"cpuProfile":{"nodes":[{"id":1,"callFrame":{"functionName":"f"}}],"samples":[1,1],"timeDeltas":[0,10],"endTime":20}}}}"#;
    let whole = read(&FORMAT, &format!("[{event}]"));
    for end in ["", "\n", ",", ",\n", " , "] {
        let (profile, problems) = read(&FORMAT, &format!("[{event}{end}"));
        assert_eq!(stacks(&profile), stacks(&whole.0), "{end:?}");
        assert!(problems.is_empty(), "{end:?}");
    }
    for cut in [
        format!("[{event},{{\"name\":"),
        format!("[{event},{{\"name\":\"a\"}},["),
        format!("{{\"traceEvents\":[{event}"),
        format!("{{\"traceEvents\":[{event}]"),
    ] {
        let (profile, problems) = read(&FORMAT, &cut);
        assert_eq!(stacks(&profile), stacks(&whole.0), "{cut}");
        assert_eq!(kinds(&problems), ["cut_json"], "{cut}");
    }
}
