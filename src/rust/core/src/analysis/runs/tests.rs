//! Figures of runs with known samples. The samples of `profile()` alternate between two sources.

use super::*;
use crate::analysis::testing::profile;
use std::collections::BTreeMap;

type Key = (Option<String>, Option<i32>, usize);

fn shown(runs: &Runs) -> BTreeMap<Key, (f64, f64)> {
    let figures = runs.figures.iter().map(|figure| {
        let group = &runs.groups[figure.group as usize];
        let name = group.name.map(str::to_owned);
        let key = (name, group.line, figure.run.row());
        (key, (figure.self_, figure.total))
    });
    figures.collect()
}

fn of(profile: &Profile, by: By) -> BTreeMap<Key, (f64, f64)> {
    let names = FrameNames::new(profile).unwrap();
    shown(&by_run(profile, &names, None, by, &|| false).unwrap())
}

#[test]
fn each_run_has_its_own_sums() {
    let profile = profile(&[
        ("a>b", 1.0),
        ("a>c", 2.0),
        ("a>b>a", 4.0),
        ("a", 8.0),
        ("", 16.0),
        ("d", 0.0),
    ]);
    let key = |name: &str, run| (Some(name.to_owned()), None, run);
    let expected = [
        (key("a", 0), (4.0, 5.0)),
        (key("b", 0), (1.0, 5.0)),
        (key("a", 1), (8.0, 10.0)),
        (key("c", 1), (2.0, 2.0)),
    ];
    assert_eq!(of(&profile, By::Function), expected.into());
    let names = FrameNames::new(&profile).unwrap();
    let runs = by_run(&profile, &names, None, By::Function, &|| false).unwrap();
    assert_eq!(runs.type_, ("samples", "count"));
    let sums: Vec<_> = runs
        .counted
        .iter()
        .map(|c| (c.sum, c.sum_without_stack))
        .collect();
    assert_eq!(sums, [(5.0, 16.0), (10.0, 0.0)]);
}

#[test]
fn the_last_stack_of_a_run_may_be_the_first_of_the_next() {
    let profile = profile(&[("a", 1.0), ("a", 2.0)]);
    let runs = of(&profile, By::Function);
    assert_eq!(
        runs.into_values().collect::<Vec<_>>(),
        [(1.0, 1.0), (2.0, 2.0)]
    );
}

#[test]
fn lines_and_packages_are_groups() {
    let profile = profile(&[("p.f:1>p.g:2", 1.0), ("p.f:1", 1.0), ("p.f:3>q.h", 2.0)]);
    let by_line = of(&profile, By::Line);
    assert_eq!(by_line[&(Some("p.f".into()), Some(1), 0)], (0.0, 1.0));
    assert_eq!(by_line[&(Some("p.f".into()), Some(3), 0)], (0.0, 2.0));
    let by_package = of(&profile, By::Package);
    assert_eq!(by_package[&(Some("p".into()), None, 0)], (1.0, 3.0));
    assert_eq!(by_package[&(Some("q".into()), None, 0)], (2.0, 2.0));
}

#[test]
fn counts_are_multiplied_by_the_period_of_their_run() {
    let mut profile = profile(&[("a", 3.0), ("a", 3.0)]);
    for (source, microseconds) in profile.sources.iter_mut().zip([1000, 2000]) {
        source.period = Some(Period::from_rprof(microseconds).unwrap());
    }
    let names = FrameNames::new(&profile).unwrap();
    let runs = by_run(&profile, &names, None, By::Function, &|| false).unwrap();
    assert_eq!(runs.type_, ("time", "nanoseconds"));
    assert_eq!(runs.periods, [Some(1e6), Some(2e6)]);
    let totals: Vec<_> = runs.figures.iter().map(|figure| figure.total).collect();
    assert_eq!(totals, [3e6, 6e6]);
    let counts = by_run(&profile, &names, Some("samples"), By::Function, &|| false).unwrap();
    assert_eq!(counts.figures[1].total, 3.0);
    profile.sources[1].period = None;
    let runs = by_run(&profile, &names, None, By::Function, &|| false).unwrap();
    assert_eq!(runs.type_, ("samples", "count"));
    assert_eq!(runs.periods, [Some(1e6), None]);
}

#[test]
fn a_profile_without_samples_has_no_figures() {
    let profile = profile(&[]);
    let names = FrameNames::new(&profile).unwrap();
    let runs = by_run(&profile, &names, None, By::Function, &|| false).unwrap();
    assert!(runs.figures.is_empty());
    assert_eq!(runs.counted.len(), 2);
}
