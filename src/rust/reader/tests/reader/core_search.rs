//! Core files of a simulated process, without the symbols of R's variables: these are found by their values.

use super::core_file::{expect, frames, read};
use crate::fake::module::{TABLE, VARIABLES};
use crate::fake::process::{At, FakeR, MODULE, NODE_STACK, On, STACK_END, variable};
use crate::image::core::{Core, Folder};
use profile_runtime::contexts::{CLOSURE, Layout};
use std::path::PathBuf;

/// A process of R whose symbols are not in its core file. `prepare` makes it call functions.
fn without_symbols(layout: Layout, prepare: impl FnOnce(&mut FakeR)) -> FakeR {
    let mut r = FakeR::new(layout);
    prepare(&mut r);
    if layout == Layout::R_4_4 {
        let end = variable("R_BCNodeStackEnd");
        r.space.set(end, NODE_STACK + 4_800_000);
    }
    r
}

/// The frames in its core file, without and with R's symbols, which have to be the same.
fn frames_in(r: &FakeR, folder: &Folder) -> Vec<String> {
    let with = read(&write(r, folder, "/usr/lib/R/lib/libR.so", &[], true)).unwrap();
    let without = read(&write(r, folder, "/usr/lib/R/lib/libR.so", &[], false)).unwrap();
    assert_eq!(frames(&with), frames(&without));
    frames(&without)
}

fn write(
    r: &FakeR,
    folder: &Folder,
    path: &str,
    auxiliary: &[[u64; 2]],
    has_symbols: bool,
) -> PathBuf {
    let regions = r.space.regions.iter();
    let mut regions: Vec<_> = regions
        .map(|region| (region.start, region.bytes.clone()))
        .collect();
    let module = regions
        .iter_mut()
        .find(|region| region.0 == MODULE)
        .unwrap();
    if !has_symbols {
        module.1[TABLE as usize..].fill(0);
    }
    let files = [(MODULE..MODULE + VARIABLES, path)];
    let stack = STACK_END - (1 << 20)..STACK_END;
    folder.write(
        "core",
        &Core::new(regions, &files, &stack, auxiliary).bytes(),
    )
}

#[test]
fn without_symbols_variables_are_found_by_their_values() {
    let folder = Folder::new("search");
    for layout in Layout::ALL {
        let idle = without_symbols(layout, |_| {});
        assert_eq!(frames_in(&idle, &folder), [""; 0]);
        let in_source = without_symbols(layout, |r| {
            let file = r.srcfile("a.R");
            let lines = [1, 2, 3].map(|line| r.srcref(line, file));
            let calls = ["f", "g"].map(|name| r.call_of(name));
            r.enter(calls[0], At::Srcref(lines[0]));
            r.enter(calls[1], At::Srcref(lines[1]));
            r.is_at(At::Srcref(lines[2]));
        });
        assert_eq!(frames_in(&in_source, &folder), ["g a.R#3", "f a.R#2"]);
        let in_byte_code = without_symbols(layout, |r| {
            let file = r.srcfile("a.R");
            let lines: Vec<_> = (10..15).map(|line| r.srcref(line, file)).collect();
            let code = r.byte_code(&lines);
            let f = r.call_of("f");
            r.record(On::C, CLOSURE, f, code.closure, At::Nowhere);
            r.is_at(At::Absolute(code, 2));
        });
        assert_eq!(frames_in(&in_byte_code, &folder), ["f a.R#12"]);
        let without_source = without_symbols(layout, |r| {
            let f = r.call_of("f");
            r.enter(f, At::Nowhere);
        });
        assert_eq!(frames_in(&without_source, &folder), ["f"]);
    }
}

/// R in another program, which is known by the address of its headers.
#[test]
fn a_program_may_contain_r() {
    let folder = Folder::new("program");
    let r = without_symbols(Layout::R_4_4, |r| {
        let f = r.call_of("f");
        r.enter(f, At::Nowhere);
    });
    let path = write(&r, &folder, "/usr/bin/other", &[[3, MODULE + 64]], false);
    assert_eq!(frames(&read(&path).unwrap()), ["f"]);
    let path = write(&r, &folder, "/usr/bin/other", &[], false);
    expect(read(&path), "profile_error_process", "does not run R");
    let path = write(&r, &folder, "/R/bin/exec/R (deleted)", &[], false);
    assert_eq!(frames(&read(&path).unwrap()), ["f"]);
}

#[test]
fn values_that_fit_several_variables_are_not_used() {
    let folder = Folder::new("ambiguous");
    let path = |r: &FakeR| write(r, &folder, "/usr/lib/R/lib/libR.so", &[], false);
    let unused = MODULE + VARIABLES + 0x300;
    let mut r = without_symbols(Layout::R_4_4, |r| {
        let file = r.srcfile("a.R");
        let lines = [1, 2].map(|line| r.srcref(line, file));
        let f = r.call_of("f");
        r.enter(f, At::Srcref(lines[0]));
        r.is_at(At::Srcref(lines[1]));
    });
    assert_eq!(frames(&read(&path(&r)).unwrap()), ["f a.R#2"]);
    let file = r.srcfile("b.R");
    let other = r.srcref(7, file);
    r.space.set(unused, other);
    assert_eq!(frames(&read(&path(&r)).unwrap()), ["f"]);
    // Another list of records, with the same outermost one.
    let head = r.space.word(variable("R_GlobalContext"));
    let outer = r.space.word(head);
    let copy = STACK_END - 0x1000;
    r.space.set(copy, outer);
    r.space.set(copy + 8, 4);
    r.space.set(unused + 8, copy);
    expect(read(&path(&r)), "profile_error_process", "gcore");
}

#[test]
fn without_a_value_there_is_an_error() {
    let folder = Folder::new("incomplete");
    for name in ["R_GlobalContext", "R_SrcfileSymbol", "R_BCNodeStackEnd"] {
        let mut r = without_symbols(Layout::R_4_2, |r| {
            let f = r.call_of("f");
            r.enter(f, At::Nowhere);
        });
        r.space.set(variable(name), 0);
        let path = write(&r, &folder, "/usr/lib/R/lib/libR.so", &[], false);
        expect(read(&path), "profile_error_process", "gcore");
    }
}
