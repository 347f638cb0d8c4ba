//! Roots that refer to the same objects as others: the names of what they hold alone.

use super::FakeHeap;
use super::rows::Rows;
use profile_runtime::objects::{CDR, VALUE};

const LARGE: u64 = 48 + 8000;
const LEAST: u64 = 2048;

#[test]
fn attached_packages_hold_what_namespaces_do_not() {
    let mut heap = FakeHeap::new();
    let (function, data) = (heap.real(1000), heap.real(1000));
    let namespace = heap.namespace("stats");
    let attached = heap.environment(heap.known.base);
    let name = heap.strings(&["package:stats"]);
    heap.set_attributes(attached, &[("name", name)]);
    let nameless = heap.environment(attached);
    let other = heap.real(1000);
    heap.define(nameless, "other", other);
    for environment in [namespace, attached] {
        heap.define(environment, "function", function);
    }
    heap.define(attached, "data", data);
    heap.set(heap.known.global, CDR, nameless);
    let imported = heap.real(1000);
    let imports = heap.word(namespace, CDR);
    heap.define(imports, "imported", imported);
    let rows = Rows::of(&mut heap, LEAST);
    for path in [
        "namespace:stats > $function",
        "package:stats > $data",
        "attached environment > $other",
        "imports of stats > $imported",
    ] {
        assert_eq!(rows.get(&format!("{path} > numeric")), (LARGE, 1));
    }
}

#[test]
fn values_of_symbols_are_variables_of_base() {
    let mut heap = FakeHeap::new();
    let (value, last, both) = (heap.real(1000), heap.real(1000), heap.real(1000));
    for (name, value) in [
        ("letters", value),
        (".Last.value", last),
        (".Traceback", both),
    ] {
        let symbol = heap.symbol(name);
        heap.set(symbol, VALUE, value);
    }
    heap.define_global("x", both);
    let rows = Rows::of(&mut heap, LEAST);
    assert_eq!(rows.get("base > $letters > numeric"), (LARGE, 1));
    assert_eq!(rows.get(".Last.value > numeric"), (LARGE, 1));
    assert_eq!(rows.get("globalenv > $x > numeric"), (LARGE, 1));
}

#[test]
fn environments_of_lazy_loading_wait_for_other_holders() {
    let mut heap = FakeHeap::new();
    let (value, other) = (heap.real(1000), heap.real(1000));
    let (wanted, waiting) = (
        heap.environment(heap.known.base),
        heap.environment(heap.known.base),
    );
    heap.define(wanted, "value", value);
    heap.define(waiting, "other", other);
    let table = heap.environment(heap.known.base);
    heap.define(table, "env::1", wanted);
    heap.define(table, "env::2", waiting);
    let namespace = heap.namespace("stats");
    heap.define(namespace, "table", table);
    let function = heap.closure(heap.known.nil, wanted);
    let call = heap.call("f", heap.known.nil);
    let frame = heap.environment(heap.known.global);
    heap.define(frame, "function", function);
    heap.add_call(call, frame);
    let rows = Rows::of(&mut heap, LEAST);
    let path = "call of f() > $function() > closure env > $value > numeric";
    assert_eq!(rows.get(path), (LARGE, 1));
    assert_eq!(rows.get("lazy loading > $other > numeric"), (LARGE, 1));
}
