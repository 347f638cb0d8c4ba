//! The names of functions.

use crate::fake::process::{At, FakeR, On, frames};
use profile_runtime::contexts::{BUILTIN, CLOSURE, Layout};
use profile_runtime::objects::{ATTRIBUTES, CAR, CDR, CLOSXP, DATA, INTSXP, LENGTH, PRINTNAME};

/// The name that is reported for a call.
fn name(r: &FakeR, call: u64) -> String {
    let mut r = r.clone();
    r.enter(call, At::Nowhere);
    let frames = r.frames();
    assert_eq!(frames.len(), 1);
    frames.concat()
}

/// R, and the symbols `stats`, `lm`.
fn r() -> (FakeR, u64, u64) {
    let mut r = FakeR::new(Layout::R_4_4);
    let (stats, lm) = (r.symbol("stats"), r.symbol("lm"));
    (r, stats, lm)
}

#[test]
fn symbols_and_members_have_the_names_that_rprof_prints() {
    let (mut r, stats, lm) = r();
    let call = r.call(&[lm, stats]);
    assert_eq!(name(&r, call), "lm");
    for operator in ["::", ":::", "$"] {
        let call = r.call_of_member(operator, stats, lm);
        assert_eq!(name(&r, call), format!("stats{operator}lm"));
    }
    let call = r.call_of_member("[[", stats, lm);
    assert_eq!(name(&r, call), "stats[[lm]]");
    let text = r.string("a b");
    let call = r.call_of_member("[[", stats, text);
    assert_eq!(name(&r, call), "stats[[\"a b\"]]");
    for (value, text) in [(1, "1"), (-7, "-7"), (i32::MIN, "-2147483648")] {
        let value = r.integers(&[value, 2]);
        let call = r.call_of_member("[[", stats, value);
        assert_eq!(name(&r, call), format!("stats[[{text}]]"));
    }
    for (value, text) in [(1.0, "1"), (2.6, "3"), (-1e15, "-1000000000000000")] {
        let value = r.real(value);
        let call = r.call_of_member("[[", stats, value);
        assert_eq!(name(&r, call), format!("stats[[{text}]]"));
    }
}

#[test]
fn all_other_calls_are_anonymous() {
    let (mut r, stats, lm) = r();
    let nil = r.nil;
    let function = r.cell(CLOSXP, [nil; 3]);
    let list = r.list(&[lm]);
    let empty = r.integers(&[]);
    let text = r.string("lm");
    let inner = r.call(&[stats]);
    let heads = [function, text, nil];
    let mut calls: Vec<_> = heads.into_iter().map(|head| r.call(&[head])).collect();
    calls.extend([
        r.call_of_member("@", stats, lm),
        r.call_of_member("$", stats, text),
        r.call_of_member("::", inner, lm),
        r.call_of_member("[[", stats, empty),
        r.call_of_member("[[", stats, list),
        r.call_of_member("[[", stats, nil),
        r.call_of_member("[[", inner, lm),
        // `f()()`, `f(x)()`, and a function that a call returns.
        r.call(&[inner]),
    ]);
    let head = r.call(&[lm, stats]);
    calls.push(r.call(&[head]));
    for call in calls {
        assert_eq!(name(&r, call), "<Anonymous>");
    }
}

#[test]
fn builtins_have_names_and_what_is_no_call_is_left_out() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let (f, g, c, nil) = (r.call_of("f"), r.call_of("g"), r.call_of("c"), r.nil);
        let symbol = r.symbol("f");
        r.enter(f, At::Nowhere);
        // A loop, a record of `try()`, a call of something that is no call.
        r.record(On::Node, 1, f, nil, At::Nowhere);
        r.record(On::C, 32, f, nil, At::Nowhere);
        r.enter(nil, At::Nowhere);
        r.enter(symbol, At::Nowhere);
        r.record(On::Node, CLOSURE, g, nil, At::Nowhere);
        r.record(On::C, BUILTIN, c, nil, At::Nowhere);
        assert_eq!(r.frames(), ["c", "g", "f"]);
    }
}

#[test]
fn a_name_may_have_any_bytes() {
    let mut r = FakeR::new(Layout::R_4_4);
    for (bytes, text) in [
        ("größer".as_bytes(), "größer"),
        (b"gr\xf6\xdfer", "größer"),
        (b"", ""),
    ] {
        let symbol = r.symbol("f");
        let bytes = r.text(bytes);
        r.space.set(symbol + PRINTNAME as u64, bytes);
        let call = r.call(&[symbol]);
        assert_eq!(name(&r, call), text);
    }
}

#[test]
fn symbols_without_a_proper_name_make_the_attempt_fail() {
    let mut r = FakeR::new(Layout::R_4_4);
    let f = r.symbol("f");
    let call = r.call(&[f]);
    let text = r.space.word(f + PRINTNAME as u64);
    r.enter(call, At::Nowhere);
    let fails = |address: u64, word: u64| {
        let mut r = r.clone();
        r.space.set(address, word);
        let (memory, mut reader) = r.reader();
        assert_eq!(frames(&mut reader), None, "{word:#x}");
        assert!(memory.reads() < 300);
    };
    for length in [10_001, 10 << 30, 1 << 31, 1 << 63, u64::MAX] {
        fails(text + LENGTH as u64, length);
    }
    fails(text, u64::from(INTSXP.0));
    fails(f + PRINTNAME as u64, 0);
    fails(f + PRINTNAME as u64, u64::MAX);
    fails(call + CAR as u64, 16);
    fails(call + CAR as u64, u64::MAX - 8);
}

#[test]
fn damaged_members_are_anonymous() {
    let (mut r, stats, lm) = r();
    let call = r.call_of_member("[[", stats, lm);
    let head = r.space.word(call + CAR as u64);
    let first = r.element(head, 1);
    let second = r.element(head, 2);
    for (address, word) in [
        (head + CDR as u64, 0),
        (head + CDR as u64, u64::MAX),
        (first + CDR as u64, 24),
        (first + CAR as u64, 0),
        (second + CAR as u64, 0),
        (second + CAR as u64, u64::MAX - 40),
    ] {
        let mut r = r.clone();
        r.space.set(address, word);
        assert_eq!(name(&r, call), "<Anonymous>");
    }
    // A constant whose length is too large is accepted, since only its first element is used.
    for length in [1 << 31, 1 << 63, u64::MAX] {
        let mut r = r.clone();
        let text = r.string("a");
        r.space.set(text + LENGTH as u64, length);
        r.space.set(second + CAR as u64, text);
        assert_eq!(name(&r, call), "stats[[\"a\"]]");
        let element = r.space.word(text + DATA as u64);
        r.space.set(element + LENGTH as u64, length);
        assert_eq!(name(&r, call), "<Anonymous>");
    }
}

#[test]
fn names_that_many_functions_have_are_followed_by_the_place_of_the_definition() {
    let mut r = FakeR::new(Layout::R_4_4);
    let file = r.srcfile("/srv/app/report.R");
    let here = r.srcref(12, file);
    let (nil, name, other) = (r.nil, r.symbol("srcref"), r.symbol("class"));
    let function = r.cell(CLOSXP, [nil; 3]);
    r.attribute(function, &[(other, nil), (name, here)]);
    // Code that was typed has lines, but no file.
    let nowhere = r.srcfile("");
    let there = r.srcref(12, nowhere);
    let typed = r.cell(CLOSXP, [nil; 3]);
    r.attribute(typed, &[(name, there)]);
    let without = r.cell(CLOSXP, [nil; 3]);
    let inner = r.call_of("f");
    let anonymous = r.call(&[inner]);
    let [common, own] = ["FUN", "square"].map(|name| r.call_of(name));
    let of = |call, function| {
        let mut r = r.clone();
        r.record(On::C, CLOSURE, call, function, At::Nowhere);
        r.frames()
    };
    assert_eq!(of(common, function), ["FUN (report.R:12)"]);
    assert_eq!(of(anonymous, function), ["<Anonymous> (report.R:12)"]);
    assert_eq!(of(own, function), ["square"]);
    for other in [typed, without, nil, 0, 8, u64::MAX, here] {
        assert_eq!(of(common, other), ["FUN"]);
    }
    // A list of attributes without an end.
    let list = r.space.word(function + ATTRIBUTES as u64);
    r.space.set(list + CDR as u64, list);
    r.record(On::C, CLOSURE, common, function, At::Nowhere);
    assert_eq!(r.frames(), ["FUN"]);
}
