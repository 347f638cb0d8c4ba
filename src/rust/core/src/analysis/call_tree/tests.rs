//! Call trees of small profiles with known values.

use super::*;
use crate::analysis::testing::profile;

/// The nodes as `depth name self/total@x`.
fn shown(tree: &CallTree) -> Vec<String> {
    let nodes = tree.nodes.iter().map(|node| {
        let group = &tree.groups[node.group as usize];
        let line = group.line.map_or(String::new(), |line| format!(":{line}"));
        let name = group.name.unwrap_or("?");
        let Node {
            depth,
            self_,
            total,
            x,
            ..
        } = node;
        format!("{depth} {name}{line} {self_}/{total}@{x}")
    });
    nodes.collect()
}

fn tree(profile: &Profile, by: By, part: TreePart) -> Vec<String> {
    let names = FrameNames::new(profile).unwrap();
    shown(&call_tree(profile, &names, None, by, part, |_| true, &|| false).unwrap())
}

#[test]
fn equal_paths_are_one_node() {
    let profile = profile(&[
        ("main>a:1>b", 2.0),
        ("main>c", 1.0),
        ("main>a:2", 3.0),
        ("main>a:1>b", 1.0),
        ("other", 10.0),
        ("", 100.0),
    ]);
    let expected = [
        "1 other 10/10@0",
        "1 main 0/7@10",
        "2 a 3/6@10",
        "3 b 3/3@10",
        "2 c 1/1@16",
    ];
    assert_eq!(tree(&profile, By::Function, TreePart::Whole), expected);
    let expected = [
        "1 other 10/10@0",
        "1 main 0/7@10",
        "2 a:1 0/3@10",
        "3 b 3/3@10",
        "2 a:2 3/3@13",
        "2 c 1/1@16",
    ];
    assert_eq!(tree(&profile, By::Line, TreePart::Whole), expected);
    let names = FrameNames::new(&profile).unwrap();
    let whole = call_tree(
        &profile,
        &names,
        None,
        By::Line,
        TreePart::Whole,
        |_| true,
        &|| false,
    )
    .unwrap();
    let parents: Vec<_> = whole.nodes.iter().map(|node| node.parent).collect();
    assert_eq!(parents, [None, None, Some(1), Some(2), Some(1), Some(1)]);
    assert_eq!(
        (whole.counted.sum, whole.counted.sum_without_stack),
        (17.0, 100.0)
    );
}

#[test]
fn calls_inside_of_a_package_or_a_file_are_one_node() {
    let profile = profile(&[
        ("f>p.a>p.b>q.c>p.d", 2.0),
        ("f>p.b>p.a>p.b", 1.0),
        ("f>p.b>q.c>g>h", 4.0),
    ]);
    let expected = [
        "1 ? 0/7@0",
        "2 p 1/7@0",
        "3 q 0/6@0",
        "4 ? 4/4@0",
        "4 p 2/2@4",
    ];
    assert_eq!(tree(&profile, By::Package, TreePart::Whole), expected);
    let expected = ["1 file.R 7/7@0"];
    assert_eq!(tree(&profile, By::File, TreePart::Whole), expected);
    let names = FrameNames::new(&profile).unwrap();
    let functions = call_tree(
        &profile,
        &names,
        None,
        By::Function,
        TreePart::Whole,
        |_| true,
        &|| false,
    );
    let functions = functions.unwrap();
    let package = |node: &Node| functions.groups[node.group as usize].package;
    let packages: Vec<_> = functions.nodes.iter().take(3).map(package).collect();
    assert_eq!(packages, [None, Some("p"), Some("q")]);
}

#[test]
fn callees_and_callers_start_at_the_outermost_call() {
    let profile = profile(&[
        ("main>f>g>f>h", 2.0),
        ("loop>f", 3.0),
        ("main>f>h", 4.0),
        ("main>h", 5.0),
    ]);
    let expected = [
        "1 f 3/9@0",
        "2 h 4/4@0",
        "2 g 0/2@4",
        "3 f 0/2@4",
        "4 h 2/2@4",
    ];
    assert_eq!(
        tree(&profile, By::Function, TreePart::Callees("f")),
        expected
    );
    let expected = ["1 f 0/9@0", "2 main 6/6@0", "2 loop 3/3@6"];
    assert_eq!(
        tree(&profile, By::Function, TreePart::Callers("f")),
        expected
    );
    assert!(tree(&profile, By::Function, TreePart::Callers("nobody")).is_empty());
}

#[test]
fn samples_of_some_sources_are_counted() {
    let profile = profile(&[("a", 1.0), ("b", 2.0), ("a", 4.0)]);
    let only = |wanted: usize| {
        let is_wanted = |source: SourceId| source.row() == wanted;
        let names = FrameNames::new(&profile).unwrap();
        let tree = call_tree(
            &profile,
            &names,
            None,
            By::Function,
            TreePart::Whole,
            is_wanted,
            &|| false,
        );
        shown(&tree.unwrap())
    };
    assert_eq!([only(0), only(1)], [["1 a 5/5@0"], ["1 b 2/2@0"]]);
}

#[test]
fn no_frame_and_no_name_are_no_obstacle() {
    let none = profile(&[]);
    assert!(tree(&none, By::Function, TreePart::Whole).is_empty());
    let mut unknown = profile(&[("a>b", 1.0)]);
    let locations: Vec<_> = unknown.locations.iter().copied().collect();
    unknown.locations = Default::default();
    for mut location in locations {
        location.function = None;
        unknown.locations.push(location).unwrap();
    }
    let expected = ["1 <unknown> 0/1@0", "2 <unknown> 1/1@0"];
    assert_eq!(tree(&unknown, By::Function, TreePart::Whole), expected);
    assert_eq!(tree(&unknown, By::Package, TreePart::Whole), ["1 ? 1/1@0"]);
}

#[test]
fn a_deep_stack_needs_no_deep_recursion() {
    let frames = vec!["f"; 100_000].join(">");
    let deep = profile(&[(&frames, 1.0)]);
    let nodes = tree(&deep, By::Function, TreePart::Whole);
    assert_eq!(
        (nodes.len(), nodes.last().unwrap().as_str()),
        (100_000, "100000 f 1/1@0")
    );
}
