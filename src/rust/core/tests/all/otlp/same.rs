//! Compares two contents, and shows only the first difference: contents are too large to be printed.

use super::content::*;
use std::fmt::Debug;

/// `assert_eq!` for contents.
#[track_caller]
pub fn assert_same(left: &Content, right: &Content) {
    if let Some(difference) = difference(left, right) {
        panic!("{difference}");
    }
}

/// Returns the first difference: its path, and the values on both sides.
pub fn difference(left: &Content, right: &Content) -> Option<String> {
    let (left, right) = (&left.resources, &right.resources);
    each("", "resource", left, right, |place, left, right| {
        two(place, &left.facts, &right.facts).or_else(|| {
            each(
                place,
                "scope",
                &left.scopes,
                &right.scopes,
                |place, left, right| {
                    two(place, &left.facts, &right.facts).or_else(|| {
                        each(
                            place,
                            "profile",
                            &left.profiles,
                            &right.profiles,
                            |place, left, right| {
                                let (l, r) = (&left.observations, &right.observations);
                                two(place, &left.facts, &right.facts)
                                    .or_else(|| each(place, "observation", l, r, two))
                            },
                        )
                    })
                },
            )
        })
    })
}

fn each<T>(
    place: &str,
    name: &str,
    left: &[T],
    right: &[T],
    differ: impl Fn(&str, &T, &T) -> Option<String>,
) -> Option<String> {
    let mut pairs = left.iter().zip(right).enumerate();
    let first = pairs.find_map(|(i, (l, r))| differ(&format!("{place}/{name} {i}"), l, r));
    first.or_else(|| {
        two(
            &format!("{place}: number of {name}s"),
            &left.len(),
            &right.len(),
        )
    })
}

fn two<T: Debug + PartialEq>(place: &str, left: &T, right: &T) -> Option<String> {
    if left == right {
        return None;
    }
    let (left, right) = (format!("{left:#?}"), format!("{right:#?}"));
    let (left, right): (Vec<_>, Vec<_>) = (left.lines().collect(), right.lines().collect());
    let same = left.iter().zip(&right).take_while(|(l, r)| l == r).count();
    let from = same.saturating_sub(4);
    let show = |lines: &[&str]| lines[from..lines.len().min(same + 12)].join("\n");
    Some(format!(
        "{place}, from line {}:\n--- left\n{}\n--- right\n{}",
        from + 1,
        show(&left),
        show(&right)
    ))
}
