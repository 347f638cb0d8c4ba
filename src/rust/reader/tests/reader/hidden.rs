//! R that does not export all variables: they are found by their values.

use crate::fake::Space;
use crate::fake::module::{Hash, Module, VARIABLES};
use crate::fake::process::{At, EXPORTED, FakeR, MODULE, On, TOPLEVEL, frames, variable};
use profile_reader::running_r::{Named, RunningR};
use profile_reader::stack::frames::Package;
use profile_runtime::contexts::{CLOSURE, Layout};
use profile_runtime::variables::{
    GLOBAL_CONTEXT, IN_BYTE_CODE, NAMESPACES, NIL, OF_CALLS, SRCREF, STACK_START,
};

/// Variables that point to the outermost record, too (`R_ToplevelContext`, `R_SessionContext`).
const TOPLEVEL_CONTEXT: u64 = MODULE + VARIABLES + 0x300;
const SESSION_CONTEXT: u64 = MODULE + VARIABLES + 0x308;

/// R without functions that run, whose module does not export these variables.
fn without(layout: Layout, hidden: &[&str]) -> FakeR {
    let mut space = Space::default();
    let mut module = Module::new(MODULE, Hash::Gnu);
    for (name, offset) in EXPORTED {
        if !hidden.contains(&name) {
            module.variable(name, offset);
        }
    }
    module.lay_out(&mut space);
    let mut r = FakeR::in_space(layout, space, 32);
    for variable in [TOPLEVEL_CONTEXT, SESSION_CONTEXT] {
        r.space.set(variable, TOPLEVEL);
    }
    r
}

/// Each variable alone, and all but the one that is part of R's API.
fn hidden() -> Vec<Vec<&'static str>> {
    let all = OF_CALLS.into_iter().filter(|name| *name != NIL).collect();
    let each = OF_CALLS.into_iter().filter(|name| *name != NIL);
    each.map(|name| vec![name]).chain([all]).collect()
}

/// What R may do: the innermost function is code with source references, or byte code.
fn in_source(r: &mut FakeR) {
    let file = r.srcfile("a.R");
    let lines = [1, 2, 3].map(|line| r.srcref(line, file));
    let calls = ["f", "g"].map(|name| r.call_of(name));
    r.enter(calls[0], At::Srcref(lines[0]));
    r.enter(calls[1], At::Srcref(lines[1]));
    r.is_at(At::Srcref(lines[2]));
}

fn in_byte_code(r: &mut FakeR) {
    let file = r.srcfile("a.R");
    let lines: Vec<_> = (10..15).map(|line| r.srcref(line, file)).collect();
    let code = r.byte_code(&lines);
    let f = r.call_of("f");
    r.record(On::C, CLOSURE, f, code.closure, At::Nowhere);
    r.is_at(At::Absolute(code, 2));
}

#[test]
fn hidden_variables_are_found_by_their_values() {
    for layout in Layout::ALL {
        for hidden in hidden() {
            assert_eq!(without(layout, &hidden).frames(), [""; 0], "{hidden:?}");
            let mut r = without(layout, &hidden);
            in_source(&mut r);
            assert_eq!(r.frames(), ["g a.R#3", "f a.R#2", "at a.R#1"], "{hidden:?}");
            let mut r = without(layout, &hidden);
            in_byte_code(&mut r);
            let (_, mut reader) = r.reader();
            reader.prepare_with(|| {}).unwrap();
            assert_eq!(frames(&mut reader).unwrap(), ["f a.R#12"], "{hidden:?}");
        }
    }
}

#[test]
fn packages_are_known_without_the_names_of_variables() {
    for hidden in hidden() {
        let mut r = without(Layout::R_4_4, &[&hidden[..], &[NAMESPACES]].concat());
        let namespace = r.namespace("mine");
        let (f, closure) = (r.call_of("f"), r.closure(namespace));
        r.record(On::C, CLOSURE, f, closure, At::Nowhere);
        let (_, mut reader) = r.reader();
        assert_eq!(frames(&mut reader).unwrap(), ["f"]);
        let package = reader.stack().frames[0].package;
        let mine = reader.texts().find("mine").unwrap();
        assert_eq!(package, Package::Named(mine), "{hidden:?}");
    }
}

#[test]
fn they_are_found_while_nothing_distinguishes_them() {
    for layout in Layout::ALL {
        for hidden in hidden() {
            for what in [in_source, in_byte_code] {
                let r = without(layout, &hidden);
                let (memory, mut reader) = r.reader();
                assert_eq!(frames(&mut reader).unwrap(), [""; 0]);
                let mut busy = r.clone();
                what(&mut busy);
                memory.change(|space| *space = busy.space.clone());
                for _ in 0..2 {
                    frames(&mut reader).unwrap();
                    reader.search_further().unwrap();
                }
                reader.prepare_with(|| {}).unwrap();
                let found = frames(&mut reader).unwrap();
                assert_eq!(found, busy.frames_when_prepared(), "{hidden:?}");
                memory.change(|space| *space = r.space.clone());
                assert_eq!(frames(&mut reader).unwrap(), [""; 0]);
            }
        }
    }
}

/// An error cannot return from the call of native code by another one: `R_ToplevelContext` is its record meanwhile.
#[test]
fn the_variable_with_the_longest_list_points_to_the_innermost_record() {
    for layout in Layout::ALL {
        let mut r = without(layout, &[GLOBAL_CONTEXT]);
        let f = r.call_of("f");
        let outer = r.enter(f, At::Nowhere);
        r.space.set(TOPLEVEL_CONTEXT, outer);
        let (memory, mut reader) = r.reader();
        assert_eq!(frames(&mut reader).unwrap(), ["f"]);
        let g = r.call_of("g");
        r.enter(g, At::Nowhere);
        memory.change(|space| *space = r.space.clone());
        assert_eq!(frames(&mut reader).unwrap(), ["g", "f"]);
    }
}

#[test]
fn r_in_another_thread_is_found() {
    for layout in Layout::ALL {
        for hidden in hidden() {
            let mut r = without(layout, &hidden);
            r.change_thread();
            in_source(&mut r);
            assert_eq!(
                r.frames_when_prepared(),
                ["g a.R#3", "f a.R#2", "at a.R#1"],
                "{hidden:?}"
            );
        }
    }
}

/// R calls functions and returns from them while it is searched.
#[test]
fn variables_are_found_while_r_goes_on() {
    for layout in Layout::ALL {
        let idle = without(layout, &[GLOBAL_CONTEXT, SRCREF, IN_BYTE_CODE]);
        let mut busy = idle.clone();
        in_source(&mut busy);
        let memory = busy.memory();
        let head = variable(GLOBAL_CONTEXT);
        let (inner, outer) = (busy.head, busy.space.word(busy.head));
        memory.before_read(move |space, reads| {
            space.set(head, if reads % 7 < 3 { inner } else { outer });
        });
        let found =
            RunningR::open(&mut memory.clone(), &busy.mappings(), &Named::default()).unwrap();
        assert_eq!(found.head.read(&mut busy.memory()), Some((head, inner)));
        assert_eq!(found.layout, Some(layout));
    }
}

#[test]
fn what_is_not_found_is_named() {
    for name in OF_CALLS.into_iter().filter(|name| *name != NIL) {
        let mut r = without(Layout::R_4_4, &[name]);
        in_source(&mut r);
        r.space.set(variable(name), 0);
        if name == GLOBAL_CONTEXT {
            r.space.set(TOPLEVEL_CONTEXT, 0);
            r.space.set(SESSION_CONTEXT, 0);
        }
        match RunningR::open(&mut r.memory(), &r.mappings(), &Named::default()) {
            // Any address on the stack shows where it is.
            Ok(_) if name == STACK_START => {}
            // Only the line of the innermost function is missing.
            Ok(_) => {
                assert_eq!(name, SRCREF);
                assert_eq!(r.frames(), ["g", "f a.R#2", "at a.R#1"]);
            }
            Err(error) => assert!(error.to_string().contains(name), "{error}"),
        }
    }
}
