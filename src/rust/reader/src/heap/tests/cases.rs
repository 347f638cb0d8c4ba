//! Heaps for several tests.

use super::FakeHeap;
use profile_runtime::objects::{BCODESXP, INTSXP, RAWSXP, REALSXP};

/// Each kind of object and of root.
pub fn with_everything(has_table_in_variables: bool) -> FakeHeap {
    filled(FakeHeap::new(), has_table_in_variables)
}

pub fn filled(mut heap: FakeHeap, has_table_in_variables: bool) -> FakeHeap {
    heap.has_table_in_variables = has_table_in_variables;
    let (nil, global) = (heap.known.nil, heap.known.global);
    let namespace = heap.namespace("stats");
    let (small, large) = (heap.real(3), heap.real(500));
    let named = heap.named_list(&[("a", small), ("b", large), ("", nil)]);
    let class = heap.strings(&["data.frame"]);
    let names = heap.strings(&["a", "b", "c"]);
    heap.set_attributes(named, &[("names", names), ("class", class)]);
    heap.define_global("x", named);
    let again = heap.list(&[large, small, named]);
    heap.define_global("y", again);
    let hashed = heap.hashed(
        global,
        &[&[("p", large), ("q", small)], &[], &[("r", again)]],
    );
    heap.define_global("h", hashed);
    let arguments = heap.pairlist(&[("", small), ("n", again)]);
    let call = heap.call("f", arguments);
    let local = heap.environment(global);
    let inner = heap.real(100);
    heap.define(local, "inner", inner);
    let promise = heap.promise(heap.known.unbound, call, local);
    heap.define(local, "argument", promise);
    let constants = heap.list(&[call, large]);
    let code = heap.vector(INTSXP, 8, 4);
    let code = heap.cell(BCODESXP, [code, constants, nil]);
    let closure = heap.closure(code, local);
    heap.define(namespace, "f", closure);
    heap.define_global("g", closure);
    let growable = heap.growable(2, 10);
    let lazy = heap.altrep(REALSXP, [large, again]);
    let kept = heap.external_pointer(growable, lazy);
    let weak = heap.weak_reference(kept, again, closure);
    heap.define_global("kept", kept);
    let last = heap.symbol(".Last.value");
    heap.set(last, 40, again);
    let attached = heap.environment(heap.known.base);
    let name = heap.strings(&["package:stats"]);
    heap.set_attributes(attached, &[("name", name)]);
    heap.define(attached, "f", closure);
    heap.set(global, 40, attached);
    let table = heap.environment(nil);
    heap.define(table, "env::1", local);
    heap.define(namespace, "lazy", table);
    heap.is_new = true;
    let long: Vec<u64> = (0..40).map(|row| heap.real(row % 20)).collect();
    let long = heap.list(&long);
    let frame = heap.environment(namespace);
    heap.define(frame, "long", long);
    heap.add_call(call, frame);
    let loose = heap.list(&[long, weak]);
    heap.protect(loose);
    heap.protect(frame);
    heap.push_node(again);
    let own = heap.real(30);
    heap.add_library_variable(3, own);
    let data = heap.real(40);
    let data = heap.list(&[data]);
    heap.add_callbacks(&[("1", data)]);
    let (written, lines) = (heap.vector(RAWSXP, 100, 13), heap.strings(&["line"]));
    heap.add_connections(&[("rawConnection", 0, written), ("textConnection", 16, lines)]);
    let unheld = heap.list(&[loose, frame]);
    heap.list(&[unheld]);
    heap.add_symbol_table();
    heap
}
