//! The paths and sizes of objects that one object holds.

use super::FakeHeap;
use super::rows::Rows;
use profile_runtime::objects::{EXPRSXP, REALSXP};

/// The size of a vector of 1000 numbers, which has memory of its own.
const LARGE: u64 = 48 + 8000;
const LEAST: u64 = 2048;

fn rows(define: impl FnOnce(&mut FakeHeap)) -> Rows {
    let mut heap = FakeHeap::new();
    define(&mut heap);
    Rows::of(&mut heap, LEAST)
}

#[test]
fn elements_of_a_list_have_their_names() {
    let rows = rows(|heap| {
        let (a, b) = (heap.real(1000), heap.real(500));
        let list = heap.named_list(&[("a", a), ("b", b)]);
        heap.define_global("x", list);
    });
    assert_eq!(rows.get("globalenv > $x > $a > numeric"), (LARGE, 1));
    assert_eq!(rows.get("globalenv > $x > $b > numeric"), (4048, 1));
    assert_eq!(rows.get("globalenv > $x > list"), (64, 1));
    assert_eq!(rows.get("globalenv > $x > character"), (64, 1));
}

#[test]
fn elements_without_names_are_one_step() {
    let rows = rows(|heap| {
        let (a, b) = (heap.real(1000), heap.real(1000));
        let list = heap.list(&[a, b]);
        heap.define_global("x", list);
        let (c, d) = (heap.real(1000), heap.real(1000));
        let partly = heap.named_list(&[("", c), ("d", d)]);
        heap.define_global("y", partly);
    });
    assert_eq!(rows.get("globalenv > $x > [[*]] > numeric"), (2 * LARGE, 2));
    assert_eq!(rows.get("globalenv > $y > [[*]] > numeric"), (LARGE, 1));
    assert_eq!(rows.get("globalenv > $y > $d > numeric"), (LARGE, 1));
}

#[test]
fn variables_in_a_hash_table_have_their_names() {
    let rows = rows(|heap| {
        let (a, b, c) = (heap.real(1000), heap.real(1000), heap.real(1000));
        let global = heap.known.global;
        let hashed = heap.hashed(global, &[&[("a", a), ("b", b)], &[], &[("c", c)]]);
        heap.define_global("e", hashed);
    });
    for name in ["a", "b", "c"] {
        assert_eq!(
            rows.get(&format!("globalenv > $e > ${name} > numeric")),
            (LARGE, 1)
        );
    }
    assert_eq!(rows.get("globalenv > $e > environment"), (56, 1));
    // The table, with three elements, and the cells of its lists.
    assert_eq!(rows.get("globalenv > $e > list"), (80, 1));
    assert_eq!(rows.get("globalenv > $e > pairlist"), (3 * 56, 3));
}

#[test]
fn a_closure_keeps_its_environment() {
    let rows = rows(|heap| {
        let local = heap.environment(heap.known.global);
        let (value, outer) = (heap.real(1000), heap.real(1000));
        heap.define(local, "value", value);
        let parent = heap.environment(heap.known.global);
        heap.define(parent, "outer", outer);
        heap.set(local, 40, parent);
        let closure = heap.closure(heap.known.nil, local);
        heap.define_global("f", closure);
    });
    let environment = "globalenv > $f() > closure env";
    assert_eq!(rows.get("globalenv > $f() > function"), (56, 1));
    assert_eq!(
        rows.get(&format!("{environment} > $value > numeric")),
        (LARGE, 1)
    );
    let outer = format!("{environment} > parent env > $outer > numeric");
    assert_eq!(rows.get(&outer), (LARGE, 1));
}

#[test]
fn attributes_and_classes_are_shown() {
    let rows = rows(|heap| {
        let (value, extra) = (heap.real(1000), heap.real(1000));
        let class = heap.strings(&["model", "lm"]);
        let model = heap.named_list(&[("fit", value)]);
        let names = heap.strings(&["fit"]);
        heap.set_attributes(
            model,
            &[("names", names), ("class", class), ("extra", extra)],
        );
        heap.define_global("m", model);
    });
    let model = "globalenv > $m <model>";
    assert_eq!(rows.get(&format!("{model} > <model>")), (56, 1));
    assert_eq!(rows.get(&format!("{model} > $fit > numeric")), (LARGE, 1));
    let extra = format!("{model} > attr \"extra\" > numeric");
    assert_eq!(rows.get(&extra), (LARGE, 1));
}

#[test]
fn a_promise_has_its_value_and_before_that_its_environment() {
    let rows = rows(|heap| {
        let (value, waiting) = (heap.real(1000), heap.real(1000));
        let nil = heap.known.nil;
        let code = heap.symbol("code");
        let done = heap.promise(value, code, nil);
        heap.define_global("done", done);
        let local = heap.environment(heap.known.global);
        heap.define(local, "waiting", waiting);
        let open = heap.promise(heap.known.unbound, code, local);
        heap.define_global("open", open);
    });
    assert_eq!(rows.get("globalenv > $done > numeric"), (LARGE, 1));
    assert_eq!(rows.get("globalenv > $done > promise"), (56, 1));
    let waiting = "globalenv > $open > promise env > $waiting > numeric";
    assert_eq!(rows.get(waiting), (LARGE, 1));
}

#[test]
fn pointers_and_altrep_keep_data() {
    let rows = rows(|heap| {
        let [kept, tag, data] = [1000, 500, 1000].map(|length| heap.real(length));
        let nil = heap.known.nil;
        let pointer = heap.external_pointer(kept, tag);
        heap.define_global("p", pointer);
        let wrapper = heap.altrep(REALSXP, [data, nil]);
        heap.define_global("w", wrapper);
    });
    let kept = "globalenv > $p > kept by pointer > numeric";
    assert_eq!(rows.get(kept), (LARGE, 1));
    let tag = "globalenv > $p > pointer tag > numeric";
    assert_eq!(rows.get(tag), (4048, 1));
    assert_eq!(rows.get("globalenv > $w > numeric"), (LARGE + 56, 2));
}

#[test]
fn a_weak_reference_has_a_value_and_a_finalizer() {
    let rows = rows(|heap| {
        let [key, value, finalizer] = [1000, 600, 500].map(|length| heap.real(length));
        let list = heap.named_list(&[("a", value)]);
        let weak = heap.weak_reference(key, list, finalizer);
        heap.define_global("weak", weak);
        let code = heap.closure(heap.known.nil, heap.known.global);
        let kept = heap.real(400);
        heap.set_attributes(code, &[("kept", kept)]);
        let nil = heap.known.nil;
        let other = heap.weak_reference(key, nil, code);
        heap.define_global("other", other);
    });
    let value = "globalenv > $weak > value > $a > numeric";
    assert_eq!(rows.get(value), (4848, 1));
    let finalizer = "globalenv > $weak > finalizer > numeric";
    assert_eq!(rows.get(finalizer), (4048, 1));
    let kept = "globalenv > $other > finalizer > attr \"kept\" > numeric";
    assert_eq!(rows.get(kept), (3248, 1));
}

#[test]
fn expressions_have_the_names_of_lists() {
    let rows = rows(|heap| {
        let (a, b) = (heap.real(1000), heap.real(500));
        let expression = heap.pointers(EXPRSXP, &[a, b]);
        let names = heap.strings(&["a", ""]);
        heap.set_attributes(expression, &[("names", names)]);
        heap.define_global("e", expression);
    });
    assert_eq!(rows.get("globalenv > $e > $a > numeric"), (LARGE, 1));
    assert_eq!(rows.get("globalenv > $e > [[*]] > numeric"), (4048, 1));
}

#[test]
fn a_growable_vector_has_the_size_of_its_memory() {
    let rows = rows(|heap| {
        let vector = heap.growable(10, 1000);
        heap.define_global("v", vector);
    });
    assert_eq!(rows.get("globalenv > $v > numeric"), (LARGE, 1));
}

#[test]
fn small_objects_belong_to_what_holds_them() {
    let rows = rows(|heap| {
        let elements: Vec<u64> = (0..100).map(|_| heap.real(1)).collect();
        let list = heap.list(&elements);
        heap.define_global("x", list);
    });
    assert_eq!(rows.get("globalenv > $x > numeric"), (100 * 56, 100));
}

#[test]
fn a_list_of_100000_environments_has_a_short_path() {
    let rows = rows(|heap| {
        let (global, end) = (heap.known.global, heap.real(1000));
        let mut next = end;
        for _ in 0..100_000 {
            let node = heap.environment(global);
            heap.define(node, "next", next);
            next = node;
        }
        heap.define_global("first", next);
    });
    assert!(rows.deepest() <= 5, "{}", rows.deepest());
    let path = "globalenv > $first > $next";
    // Steps to objects of different classes differ.
    assert_eq!(rows.bytes(&format!("{path} > $next > numeric")), LARGE);
    let environments = rows.get(&format!("{path} > environment")).1;
    assert!(environments > 99_000, "{environments}");
}
