//! The packages of functions, by the environments in which they were defined.

use crate::fake::FakeMemory;
use crate::fake::process::{At, FakeR, On, frames, frames_in, variable};
use profile_reader::stack::frames::Package;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::contexts::{BUILTIN, CLOSURE, Layout};
use profile_runtime::objects::{
    CAR, CDR, DATA, ENCLOSING, ENVIRONMENT, HASHTAB, LENGTH, SPECIALSXP, TAG,
};
use profile_runtime::variables::NAMESPACES;
use std::time::Duration;

const UNKNOWN: &str = "unknown";
const NONE: &str = "none";

/// The packages of the functions of the current stack, innermost first.
fn packages(reader: &mut StackReader<FakeMemory>) -> Vec<String> {
    frames(reader).unwrap();
    let frames = reader.stack().frames.iter();
    let each = frames.map(|frame| match frame.package {
        Package::Unknown => UNKNOWN,
        Package::None => NONE,
        Package::Named(name) => reader.texts().get(name),
    });
    each.map(str::to_owned).collect()
}

/// Calls a function that was defined in an environment. Returns the function.
fn enter(r: &mut FakeR, environment: u64) -> u64 {
    let (call, closure) = (r.call_of("f"), r.closure(environment));
    r.record(On::C, CLOSURE, call, closure, At::Nowhere);
    closure
}

/// The package of a function that was defined in an environment.
fn package(r: &FakeR, environment: u64) -> String {
    let mut r = r.clone();
    enter(&mut r, environment);
    packages(&mut r.reader().1).concat()
}

/// An environment inside so many others, as those of calls are.
fn inside(r: &mut FakeR, environment: u64, count: usize) -> u64 {
    (0..count).fold(environment, |outer, _| r.environment(outer))
}

#[test]
fn a_function_belongs_to_the_namespace_that_encloses_it() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let (stats, mine) = (r.namespace("stats"), r.namespace("mine"));
        let (base, global) = (r.base, r.global);
        let inner = inside(&mut r, stats, 3);
        // An object of R6, whose environment has a hash table or not, and the environment of its methods.
        let object = r.hashed_environment(mine, &[("x", base)]);
        let method = inside(&mut r, object, 1);
        let own_object = r.hashed_environment(global, &[]);
        let own_method = inside(&mut r, own_object, 1);
        let base_namespace = r.base_namespace;
        let in_base = inside(&mut r, base_namespace, 2);
        for (environment, expected) in [
            (stats, "stats"),
            (inner, "stats"),
            (mine, "mine"),
            (object, "mine"),
            (method, "mine"),
            (global, NONE),
            (own_object, NONE),
            (own_method, NONE),
            (base, "base"),
            (base_namespace, "base"),
            (in_base, "base"),
        ] {
            assert_eq!(package(&r, environment), expected);
        }
    }
}

#[test]
fn builtins_belong_to_base() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (call, nil, global) = (r.call_of(".Call"), r.nil, r.global);
    enter(&mut r, global);
    r.record(On::C, BUILTIN, call, nil, At::Nowhere);
    // A record as of a closure, which R makes for `eval()`.
    let eval = r.cell(SPECIALSXP, [nil; 3]);
    let call = r.call_of("eval");
    r.record(On::C, CLOSURE, call, eval, At::Nowhere);
    assert_eq!(packages(&mut r.reader().1), ["base", "base", NONE]);
}

#[test]
fn other_environments_that_base_encloses_belong_to_no_known_package() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (base, base_namespace, empty) = (r.base, r.base_namespace, r.nil);
    for outer in [base, base_namespace] {
        let one = r.hashed_environment(outer, &[]);
        let two = r.hashed_environment(one, &[(".packageName", one)]);
        let inner = inside(&mut r, two, 2);
        for environment in [one, two, inner] {
            assert_eq!(package(&r, environment), UNKNOWN);
        }
    }
    let alone = r.environment(empty);
    assert_eq!(package(&r, alone), UNKNOWN);
}

#[test]
fn chains_that_are_damaged_or_too_long_belong_to_no_known_package() {
    let mut r = FakeR::new(Layout::R_4_4);
    let namespace = r.namespace("mine");
    let inner = inside(&mut r, namespace, 1);
    let empty = r.clone();
    let closure = enter(&mut r, inner);
    assert_eq!(packages(&mut r.reader().1), ["mine"]);
    let word = |address: u64, field: usize| r.space.word(address + field as u64);
    let imports = word(namespace, ENCLOSING);
    let nil = r.nil;
    let mut wrong = vec![
        (closure, 0),
        (closure + ENVIRONMENT as u64, 0),
        (closure + ENVIRONMENT as u64, u64::MAX),
        (closure + ENVIRONMENT as u64, nil),
        // Circles.
        (inner + ENCLOSING as u64, inner),
        (namespace + ENCLOSING as u64, inner),
        (inner, 0),
        (inner + ENCLOSING as u64, 0),
        (inner + ENCLOSING as u64, u64::MAX - 7),
        (namespace, 0),
        (namespace + HASHTAB as u64, 0),
        (namespace + HASHTAB as u64, nil),
        (imports + ENCLOSING as u64, 8),
        (imports, 0),
    ];
    // The variable of the namespace, and the one with its name.
    let mut environment = namespace;
    for name in [".__NAMESPACE__.", "spec"] {
        let symbol = r.symbols[name];
        let table = word(environment, HASHTAB);
        let chains = (0..7).map(|chain| word(table, DATA + 8 * chain));
        let mut cells = chains.flat_map(|first| {
            let next = |&cell: &u64| Some(word(cell, CDR)).filter(|cell| *cell != nil);
            std::iter::successors(Some(first).filter(|cell| *cell != nil), next)
        });
        let cell = cells.find(|&cell| word(cell, TAG) == symbol).unwrap();
        let value = word(cell, CAR);
        wrong.extend([
            (table, 0),
            (table + LENGTH as u64, 0),
            (cell, 0),
            (cell + TAG as u64, nil),
            (cell + TAG as u64, 0),
            (cell + CAR as u64, nil),
            (cell + CAR as u64, 0),
            (value, 0),
        ]);
        environment = value;
    }
    for (address, word) in wrong {
        let mut r = r.clone();
        r.space.set(address, word);
        let (memory, mut reader) = r.reader();
        let before = memory.reads();
        assert_eq!(packages(&mut reader), [UNKNOWN], "{address:#x}: {word:#x}");
        assert!(memory.reads() - before < 100);
    }
    let mut r = empty;
    let environment = inside(&mut r, namespace, 17);
    assert_eq!(package(&r, environment), "mine");
    let environment = inside(&mut r, environment, 10);
    assert_eq!(package(&r, environment), UNKNOWN);
}

#[test]
fn an_address_that_is_used_for_another_function_has_its_package() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (one, other, global) = (r.namespace("one"), r.namespace("other"), r.global);
    let inner = inside(&mut r, one, 1);
    let closure = enter(&mut r, inner);
    let (memory, mut reader) = r.reader();
    for motion in [Motion::Free, Motion::Still] {
        for (environment, expected) in [(one, "one"), (other, "other"), (global, NONE)] {
            memory.change(|space| space.set(inner + ENCLOSING as u64, environment));
            frames_in(motion, &mut reader).unwrap();
            assert_eq!(packages(&mut reader), [expected]);
        }
        memory.change(|space| space.set(closure + ENVIRONMENT as u64, other));
        assert_eq!(packages(&mut reader), ["other"]);
        memory.change(|space| space.set(closure + ENVIRONMENT as u64, inner));
    }
}

#[test]
fn without_rs_environments_packages_are_unknown() {
    let mut r = FakeR::new(Layout::R_4_4);
    let namespace = r.namespace("one");
    enter(&mut r, namespace);
    assert_eq!(packages(&mut r.reader().1), ["one"]);
    let nil = r.nil;
    for wrong in [0, nil, namespace] {
        r.space.set(variable(NAMESPACES), wrong);
        assert_eq!(packages(&mut r.reader().1), [UNKNOWN]);
    }
}

#[test]
fn packages_take_no_further_system_calls() {
    let mut r = FakeR::new(Layout::R_4_4);
    let namespace = r.namespace("one");
    let inner = inside(&mut r, namespace, 2);
    let global = r.global;
    for environment in [namespace, inner, global, namespace, inner] {
        enter(&mut r, environment);
    }
    let (memory, mut reader) = r.reader();
    reader.shortest_collection = Duration::MAX;
    let mut cost = |motion| {
        reader.plan().unwrap();
        let before = (memory.calls(), memory.reads());
        assert_eq!(frames_in(motion, &mut reader).unwrap().len(), 5);
        (memory.calls() - before.0, memory.reads() - before.1)
    };
    // The namespace is looked up once.
    let first = cost(Motion::Still);
    assert!(first.0 < 50, "{first:?}");
    // For the innermost record, and for all records, variables and objects, as in stacks without closures.
    for _ in 0..3 {
        let later = cost(Motion::Still);
        assert_eq!(later.0, 4);
        assert!(later.1 < 20, "{later:?}");
    }
}
