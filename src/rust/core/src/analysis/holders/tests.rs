//! Holders of small profiles with known values.

use super::*;
use crate::analysis::testing::profile as counted;
use crate::model::known_types::with_role;
use crate::model::{Role, Values};

/// A profile of these stacks, with their bytes. Stacks are of two sources in turn.
fn profile(stacks: &[(&str, f64)]) -> Profile {
    let mut profile = counted(stacks);
    let bytes = with_role(Role::InUse, "bytes").next().unwrap();
    let objects = with_role(Role::InUse, "count").next().unwrap();
    let [mut in_bytes, mut in_objects] =
        [bytes, objects].map(|known| Values::absent_known(known, 0).unwrap());
    for (_, value) in stacks {
        in_bytes.column.try_push(*value).unwrap();
        in_objects.column.try_push(1.0).unwrap();
    }
    profile.values = vec![in_bytes, in_objects];
    profile
}

fn request(base: usize) -> Request {
    Request {
        base,
        min_share: 0.005,
        most: 100,
    }
}

fn rows(profile: &Profile, request: &Request) -> Vec<Holder> {
    let names = FrameNames::new(profile).unwrap();
    let holders = holders(profile, &names, request, &|| false).unwrap();
    holders.unwrap().rows
}

/// The rows as `path total/own objects`.
fn shown(profile: &Profile, request: &Request) -> Vec<String> {
    let rows = rows(profile, request);
    let rows = rows.iter().map(|row| {
        let Holder { path, total, own } = row;
        format!(
            "{path} {}/{} {}",
            total.growth(),
            own.growth(),
            total.new[1]
        )
    });
    rows.collect()
}

#[test]
fn a_row_ends_where_the_memory_is_divided() {
    let profile = profile(&[
        ("globalenv>$fits>[[*]]>$a>numeric", 300.0),
        ("globalenv>$fits>[[*]]>$b>numeric", 300.0),
        ("globalenv>$fits>[[*]]>list", 50.0),
        ("globalenv>$other>numeric", 100.0),
        ("globalenv>$other>character", 20.0),
        ("globalenv>$small>character", 2.0),
        ("base>$x>numeric", 1.0),
    ]);
    let expected = [
        "globalenv > $fits > [[*]] 650/50 3",
        "globalenv > $fits > [[*]] > $a 300/300 1",
        "globalenv > $fits > [[*]] > $b 300/300 1",
        "globalenv > $other 120/120 2",
        "base > $x 1/1 1",
    ];
    assert_eq!(shown(&profile, &request(0)), expected);
    let first = Request {
        most: 2,
        ..request(0)
    };
    assert_eq!(shown(&profile, &first), expected[..2]);
}

#[test]
fn a_row_keeps_most_of_the_memory_of_its_start() {
    // Each child has 85% of its parent or more, but the innermost one has less than 80% of the root.
    let profile = profile(&[
        ("base>x", 10.0),
        ("base>a>x", 100.0),
        ("base>a>b>c>x", 790.0),
        ("base>a>b>x", 100.0),
    ]);
    let expected = ["base > a > b 890/100 2", "base > a > b > c 790/790 1"];
    assert_eq!(shown(&profile, &request(0)), expected);
}

#[test]
fn other_profiles_have_no_types_of_objects() {
    let profile = profile(&[("main>work>alloc", 90.0), ("main>read", 10.0)]);
    let expected = ["main > work > alloc 90/90 1", "main > read 10/10 1"];
    assert_eq!(shown(&profile, &request(0)), expected);
}

#[test]
fn types_of_frames_say_which_is_the_type_of_objects() {
    let mut profile = profile(&[("here>$x>numeric", 90.0), ("only", 10.0)]);
    let [root, type_] = ["root", "type"].map(|text| profile.frame_type(text).unwrap());
    let locations: Vec<_> = profile.locations.iter().copied().collect();
    profile.locations = Default::default();
    for (row, mut location) in locations.into_iter().enumerate() {
        // The locations of a stack were added from the outermost one on.
        location.frame_type = [root, root, type_, root][row];
        profile.locations.push(location).unwrap();
    }
    let expected = ["here > $x 90/90 1", "only 10/10 1"];
    assert_eq!(shown(&profile, &request(0)), expected);
}

#[test]
fn growth_is_found_below_unchanged_sums() {
    // Samples alternate between the base and the new profile.
    let profile = profile(&[
        ("globalenv>$a>numeric", 100.0),
        ("globalenv>$a>numeric", 180.0),
        ("globalenv>$b>numeric", 130.0),
        ("globalenv>$b>numeric", 50.0),
        ("base>$same>numeric", 1000.0),
        ("base>$same>numeric", 1000.0),
    ]);
    let rows = rows(&profile, &request(1));
    let shown = rows.iter().map(|row| {
        let Amounts { base, new } = row.total;
        format!("{} {}->{}", row.path, base[0], new[0])
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, ["globalenv > $a 100->180", "globalenv > $b 130->50"]);
}

#[test]
fn nothing_in_use_is_no_result() {
    let counts = counted(&[("a", 1.0)]);
    let names = FrameNames::new(&counts).unwrap();
    let found = holders(&counts, &names, &request(0), &|| false).unwrap();
    assert!(found.is_none());
    assert!(rows(&profile(&[]), &request(0)).is_empty());
    assert!(rows(&profile(&[("", 5.0), ("a>b", 0.0)]), &request(0)).is_empty());
}

#[test]
fn a_deep_path_needs_no_deep_recursion() {
    let frames = vec!["f"; 100_000].join(">");
    let rows = rows(&profile(&[(&frames, 1.0)]), &request(0));
    assert_eq!(rows[0].path.len(), 400_000 - 3);
}

#[test]
fn rows_that_differ_in_a_key_are_one() {
    let keys = ["$key1", "$key20", "$key3", "$key400", "$key5"];
    let mut stacks = keys.map(|key| (format!("globalenv>$cache>{key}>$value>numeric"), 10.0));
    let texts = |stacks: &[(String, f64)]| {
        let stacks: Vec<(&str, f64)> = stacks.iter().map(|(s, v)| (s.as_str(), *v)).collect();
        shown(&profile(&stacks), &request(0))
    };
    let expected = [
        "globalenv > $cache 50/0 5",
        "globalenv > $cache > $key* > $value (5) 50/50 5",
    ];
    assert_eq!(texts(&stacks), expected);
    // Few rows remain, and so do words.
    assert_eq!(texts(&stacks[..4]).len(), 5);
    for (stack, word) in stacks.iter_mut().zip(["$a", "$b", "$deadbeef", "$d", "$e"]) {
        stack.0 = stack.0.replace("$key1", word).replace("$key20", word);
        stack.0 = format!("globalenv>$cache>{word}>$value>numeric");
    }
    assert_eq!(texts(&stacks).len(), 6);
}
