use super::*;
use crate::analysis::testing::profile;

/// The rows as text: package, self, total, phases that are not 0, who asked first, and who asked.
fn rows(stacks: &[(&str, f64)]) -> Vec<String> {
    let profile = profile(stacks);
    let names = FrameNames::new(&profile).unwrap();
    let found = loading(&profile, &names, None, &|| false).unwrap();
    let rows = found.packages.iter().map(|row| {
        let phases = Phase::ALL.into_iter().zip(row.phases);
        let phases = phases.filter(|(_, part)| *part != 0.0);
        let phases: Vec<_> = phases
            .map(|(p, part)| format!("{} {part}", p.name()))
            .collect();
        format!(
            "{} {} {} [{}] first {}, asked by {:?}{}",
            row.package.unwrap_or("?"),
            row.self_[0],
            row.total[0],
            phases.join(", "),
            row.first(),
            row.askers,
            if row.is_asked_by_user {
                " and the user"
            } else {
                ""
            }
        )
    });
    rows.collect()
}

#[test]
fn the_innermost_load_has_the_time() {
    let stacks = [
        (
            "f>library(a)>loadNamespace(a)>namespaceImportFrom>loadNamespace(b)>runHook>.onLoad>work",
            3.0,
        ),
        (
            "f>library(a)>loadNamespace(a)>namespaceImportFrom>importIntoEnv",
            1.0,
        ),
        (
            "f>library(a)>loadNamespace(a)>tryCatch>assignNativeRoutines",
            2.0,
        ),
        (
            "f>library(a)>loadNamespace(a)>methods::cacheMetaData>lazyLoadDBfetch",
            4.0,
        ),
        ("f>library(a)>attachNamespace(a)>runHook>.onAttach", 5.0),
        (
            "f>library(a)>attachNamespace(a)>runHook>.onAttach>library(c)>loadNamespace(c)>readRDS",
            1.0,
        ),
        ("f>g>work", 100.0),
    ];
    assert_eq!(
        rows(&stacks),
        [
            "a 12 16 [imports 1, native 2, s4 4, attach 5] first library(a), asked by [] and the user",
            "b 3 3 [on_load 3] first a, asked by [\"a\"]",
            "c 1 1 [code 1] first a, asked by [\"a\"]",
        ]
    );
}

#[test]
fn the_first_sample_says_who_asked_first() {
    let stacks = [
        (
            "f>::>getExportedValue>asNamespace>getNamespace>tryCatch>base::loadNamespace(b)",
            1.0,
        ),
        (
            "library(a)>loadNamespace(a)>runHook>requireNamespace(b)>loadNamespace(b)",
            1.0,
        ),
        (
            "library(c)>loadNamespace(c)>loadNamespace(b)>registerS3methods",
            1.0,
        ),
        ("loadNamespace(d)>requireNamespace(d)", 1.0),
    ];
    assert_eq!(
        rows(&stacks),
        [
            "b 3 3 [s3_methods 1, other 2] first f, asked by [\"a\", \"c\"] and the user",
            "d 1 1 [other 1] first loadNamespace(d), asked by [] and the user",
            "a 0 1 [] first library(a), asked by [] and the user",
            "c 0 1 [] first library(c), asked by [] and the user",
        ]
    );
}

#[test]
fn without_titles_the_package_is_unknown() {
    let stacks = [
        ("library>loadNamespace>runHook", 1.0),
        (
            "f>loadNamespace>namespaceImportFrom>loadNamespace>lazyLoad",
            1.0,
        ),
        ("f>library", 1.0),
        // Functions of other packages with these names do not load.
        ("my.loadNamespace>runHook", 1.0),
    ];
    assert_eq!(
        rows(&stacks),
        ["? 3 3 [on_load 1, code 1, attach 1] first library, asked by [] and the user"]
    );
    // The argument of `attachNamespace()` is evaluated in it.
    assert_eq!(
        rows(&[("f>attachNamespace>loadNamespace(a)>runHook", 1.0)]),
        ["a 1 1 [on_load 1] first attachNamespace, asked by [] and the user"]
    );
    assert!(rows(&[("f>loadNamespace", 0.0)]).is_empty());
    assert!(rows(&[("f>g", 1.0)]).is_empty());
    assert!(rows(&[]).is_empty());
}
