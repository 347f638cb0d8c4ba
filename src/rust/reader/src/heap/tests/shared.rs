//! The paths of objects that several others hold, and of what only roots hold.

use super::FakeHeap;
use super::rows::Rows;
use profile_runtime::contexts::RAW_NODES;

const LARGE: u64 = 48 + 8000;
const LEAST: u64 = 2048;

#[test]
fn a_shared_element_is_below_what_holds_all_of_it() {
    let mut heap = FakeHeap::new();
    let shared = heap.real(1000);
    let one = heap.named_list(&[("a", shared)]);
    let inner = heap.named_list(&[("c", shared)]);
    let other = heap.named_list(&[("b", inner)]);
    heap.define_global("one", one);
    heap.define_global("other", other);
    let rows = Rows::of(&mut heap, LEAST);
    assert_eq!(
        rows.get("globalenv > $one $a [shared] > numeric"),
        (LARGE, 1)
    );
    assert!(!rows.has("globalenv > $one > numeric"));
}

#[test]
fn shared_lists_are_below_the_list_that_holds_them() {
    let mut heap = FakeHeap::new();
    let value = heap.real(1000);
    let shared = heap.named_list(&[("value", value)]);
    let (one, other) = (heap.named_list(&[("a", shared)]), heap.list(&[shared]));
    let both = heap.named_list(&[("one", one), ("other", other)]);
    heap.define_global("x", both);
    let rows = Rows::of(&mut heap, LEAST);
    let names = ["$one $a", "$other [[*]]"].map(|way| {
        let path = format!("globalenv > $x > {way} [shared] > $value > numeric");
        rows.has(&path)
    });
    assert_eq!(names.iter().filter(|has| **has).count(), 1);
}

#[test]
fn what_several_roots_of_a_phase_hold_is_below_none_of_them() {
    let mut heap = FakeHeap::new();
    let shared = heap.real(1000);
    let namespace = heap.namespace("stats");
    heap.define(namespace, "cached", shared);
    heap.define_global("mine", shared);
    let rows = Rows::of(&mut heap, LEAST);
    let ways = ["globalenv $mine", "namespace:stats $cached"];
    let paths = [(0, 1), (1, 0)].map(|(first, then)| {
        let path = format!("{} & {} [shared] > numeric", ways[first], ways[then]);
        rows.has(&path).then(|| rows.get(&path))
    });
    assert!(paths.contains(&Some((LARGE, 1))));
}

#[test]
fn the_first_phase_that_reaches_an_object_has_it() {
    let mut heap = FakeHeap::new();
    let value = heap.real(1000);
    heap.define_global("x", value);
    let arguments = heap.pairlist(&[("", value)]);
    let call = heap.call("f", arguments);
    let frame = heap.environment(heap.known.global);
    let local = heap.real(1000);
    heap.define(frame, "argument", value);
    heap.define(frame, "local", local);
    heap.add_call(call, frame);
    let protected = heap.real(500);
    for object in [value, local, protected] {
        heap.protect(object);
    }
    let pushed = heap.real(500);
    heap.push_node(pushed);
    let cached = heap.real(500);
    heap.add_library_variable(0, cached);
    let variable = heap.real(500);
    heap.add_variable(variable);
    let unheld = heap.real(500);
    heap.list(&[unheld]);
    let rows = Rows::of(&mut heap, LEAST);
    assert_eq!(rows.bytes("globalenv > $x > numeric"), LARGE);
    assert_eq!(rows.bytes("call of f() > $local > numeric"), LARGE);
    for root in [
        "protect stack",
        "byte code stack",
        "C variables of stats.so",
        "C variables of R",
    ] {
        let path = format!("{root} > numeric");
        assert_eq!(rows.bytes(&path), 4048, "{path}");
    }
    assert_eq!(rows.bytes("no holder found > [[*]] > numeric"), 4048);
}

#[test]
fn a_weak_reference_holds_its_value_and_finalizer_but_not_its_key() {
    let mut heap = FakeHeap::new();
    let (key, value, kept) = (heap.real(1000), heap.real(1000), heap.real(1000));
    let local = heap.environment(heap.known.global);
    heap.define(local, "kept", kept);
    let finalizer = heap.closure(heap.known.nil, local);
    heap.weak_reference(key, value, finalizer);
    let rows = Rows::of(&mut heap, LEAST);
    let root = "finalizers and weak references";
    assert_eq!(rows.bytes(&format!("{root} > value > numeric")), LARGE);
    let kept = format!("{root} > finalizer > closure env > $kept > numeric");
    assert_eq!(rows.bytes(&kept), LARGE);
    assert_eq!(rows.bytes("no holder found > numeric"), LARGE);
}

#[test]
fn a_function_that_many_calls_hold_has_a_short_name() {
    let mut heap = FakeHeap::new();
    let value = heap.real(1000);
    let local = heap.environment(heap.known.global);
    heap.define(local, "value", value);
    let function = heap.closure(heap.known.nil, local);
    let call = heap.call("f", heap.known.nil);
    for _ in 0..1000 {
        let frame = heap.environment(local);
        heap.add_call_of(function, call, frame);
    }
    let rows = Rows::of(&mut heap, LEAST);
    let found = rows
        .paths()
        .find(|path| path.ends_with("> $value > numeric"));
    let path = found.unwrap();
    assert_eq!(rows.get(path), (LARGE, 1));
    assert_eq!(path.split(" & ").count(), 2, "{path}");
}

#[test]
fn the_byte_code_stack_holds_what_its_entries_refer_to() {
    let mut heap = FakeHeap::new();
    let [held, sequence, in_raw_memory, number] = [500, 600, 700, 800].map(|len| heap.real(len));
    // A larger tag is of a sequence that is only partly evaluated.
    heap.push_node(held);
    heap.push_entry(1 << 8 | 13, sequence);
    // Two entries of raw memory look like references.
    heap.push_entry(RAW_NODES.into(), 2);
    heap.push_node(in_raw_memory);
    heap.push_node(in_raw_memory);
    // A number that happens to be an address.
    heap.push_entry(14, number);
    let again = heap.real(900);
    // The rest of the first word is undefined.
    heap.push_entry(7 << 32, again);
    let rows = Rows::of(&mut heap, LEAST);
    let bytes = |len: u64| 48 + 8 * len;
    assert_eq!(
        rows.get("byte code stack > numeric"),
        (bytes(500) + bytes(600) + bytes(900), 3)
    );
    assert_eq!(
        rows.get("no holder found > numeric"),
        (bytes(700) + bytes(800), 2)
    );
}
