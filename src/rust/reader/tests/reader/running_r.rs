//! R in a process: which version it is, and where its parts are.

use crate::fake::module::{Hash, Module, VARIABLES};
use crate::fake::process::{
    At, FakeR, MODULE, NODE_STACK, NODE_STACK_SIZE, On, STACK_END, TOPLEVEL, variable,
};
use crate::fake::{FakeMemory, Space};
use profile_core::error::Error;
use profile_reader::running_r::c_stack::{Whereabouts, stack_at};
use profile_reader::running_r::{Named, RunningR};
use profile_runtime::contexts::{BCPC, CALLFLAG, CLOSURE, Layout, NEXT};
use profile_runtime::memory::Mapping;

fn open(r: &FakeR) -> Result<RunningR, String> {
    open_memory(&r.memory(), &r.mappings())
}

fn open_memory(memory: &FakeMemory, mappings: &[Mapping]) -> Result<RunningR, String> {
    RunningR::open(&mut memory.clone(), mappings, &Named::default()).map_err(|error| {
        assert!(matches!(error, Error::Process(_)), "{error:?}");
        error.to_string()
    })
}

/// R in a function that another one calls, with records on both stacks.
fn busy(layout: Layout) -> FakeR {
    let mut r = FakeR::new(layout);
    let (f, g, file) = (r.call_of("f"), r.call_of("g"), r.srcfile("a.R"));
    let srcref = r.srcref(3, file);
    let code = r.byte_code(&[srcref]);
    let nil = r.nil;
    r.enter(f, At::Srcref(srcref));
    r.record(On::Node, 1, nil, nil, At::Nowhere);
    r.record(On::Node, CLOSURE, g, nil, At::Absolute(code, 1));
    r.enter(g, At::Nowhere);
    r
}

#[test]
fn the_layouts_of_versions_are_told_apart() {
    for layout in Layout::ALL {
        for hash in [Hash::Gnu, Hash::SystemV] {
            let idle = FakeR::with(layout, hash, 8);
            for r in [idle, busy(layout)] {
                let found = open(&r).unwrap();
                assert_eq!(found.layout, Some(layout));
                assert_eq!(found.toplevel, TOPLEVEL);
                assert_eq!(found.node_stack, NODE_STACK..NODE_STACK + NODE_STACK_SIZE);
                assert_eq!(found.stack.end, STACK_END);
                assert!(found.stack.contains(&(STACK_END - (8 << 20))));
                assert_eq!(found.values.nil, r.nil);
                assert_eq!(found.head.addresses(), [variable("R_GlobalContext")]);
            }
        }
    }
}

/// Only names are read then, since the first fields of records are the same in all versions.
#[test]
fn of_records_that_fit_no_layout_or_several_the_names_are_read() {
    let names = |r: &FakeR| {
        assert_eq!(open(r).unwrap().layout, None);
        r.frames()
    };
    for layout in Layout::ALL {
        let mut r = busy(layout);
        let whole = r.frames();
        assert_eq!(whole, ["g", "g", "f", "at a.R#3"]);
        r.space
            .set(TOPLEVEL + layout.node_stack, NODE_STACK + NODE_STACK_SIZE);
        assert_eq!(names(&r), ["g", "g", "f"]);
    }
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        for other in Layout::ALL {
            r.space.set(TOPLEVEL + other.node_stack, NODE_STACK);
            r.space.set(TOPLEVEL + other.srcref, r.nil);
        }
        assert_eq!(names(&r), [""; 0]);
    }
}

#[test]
fn a_process_without_r_is_refused() {
    let mut space = Space::default();
    let mut module = Module::new(MODULE, Hash::Gnu);
    module.variable("Py_None", 8);
    module.undefined("R_GlobalContext");
    module.lay_out(&mut space);
    let r = FakeR::in_space_of(space);
    let error = open(&r).unwrap_err();
    assert!(error.contains("does not run R"), "{error}");
    assert!(open_memory(&r.memory(), &[]).is_err());
}

/// The mappings of a process that has loaded another module as well.
fn with_module(r: &FakeR, start: u64) -> Vec<Mapping> {
    let mut mappings = r.mappings();
    mappings.push(Mapping {
        addresses: start..start + VARIABLES,
        starts_file: true,
    });
    mappings.sort_by_key(|mapping| mapping.addresses.start);
    mappings
}

#[test]
fn of_several_libraries_the_one_that_runs_is_found() {
    for start in [MODULE - 0x10_0000, MODULE + 0x10_0000] {
        let mut r = busy(Layout::R_4_4);
        let mut copy = Module::new(start, Hash::Gnu);
        for (name, offset) in crate::fake::process::EXPORTED {
            copy.variable(name, offset);
        }
        copy.lay_out(&mut r.space);
        let mappings = with_module(&r, start);
        let found = open_memory(&r.memory(), &mappings).unwrap();
        assert_eq!(found.head.addresses(), [variable("R_GlobalContext")]);
        assert_eq!(found.modules, [MODULE]);
        // Neither of them runs.
        r.space.set(variable("R_GlobalContext"), 0);
        let error = open_memory(&r.memory(), &mappings).unwrap_err();
        assert!(error.contains("only starting"), "{error}");
    }
}

#[test]
fn a_program_may_have_copies_of_variables() {
    let copies = MODULE - 0x10_0000;
    let mut program = Module::new(copies, Hash::Gnu);
    program.variable("R_GlobalContext", 0x20);
    program.variable("R_NilValue", 0x28);
    let mut r = busy(Layout::R_4_4);
    let own = [("R_GlobalContext", 0x20), ("R_NilValue", 0x28)];
    program.lay_out(&mut r.space);
    for (name, offset) in own {
        let value = r.space.word(variable(name));
        r.space.set(copies + VARIABLES + offset, value);
        r.space.set(variable(name), 0);
    }
    let mut mappings = r.mappings();
    let at = mappings
        .iter()
        .position(|mapping| mapping.starts_file)
        .unwrap();
    let addresses = copies..copies + VARIABLES;
    mappings.insert(
        at,
        Mapping {
            addresses,
            starts_file: true,
        },
    );
    let found = open_memory(&r.memory(), &mappings).unwrap();
    assert_eq!(found.toplevel, TOPLEVEL);
    assert_eq!(found.head.addresses(), [copies + VARIABLES + 0x20]);
    assert_eq!(found.values.nil, r.nil);
    // Without the program, R seems to be starting.
    assert!(open(&r).unwrap_err().contains("only starting"));
}

#[test]
fn r_that_is_starting_is_refused() {
    for name in [
        "R_NilValue",
        "R_InBCInterpreter",
        "R_SrcfileSymbol",
        "R_GlobalContext",
    ] {
        let mut r = busy(Layout::R_4_4);
        r.space.set(variable(name), 0);
        let error = open(&r).unwrap_err();
        assert!(error.contains("only starting"), "{name}: {error}");
    }
}

#[test]
fn the_stack_is_known_by_a_variable_until_r_runs() {
    let (mut idle, mut r) = (FakeR::new(Layout::R_4_4), busy(Layout::R_4_4));
    let start = variable("R_CStackStart");
    let whole = open(&r).unwrap().stack;
    for no_stack in [0, 7, STACK_END + 0x1000, u64::MAX] {
        idle.space.set(start, no_stack);
        assert!(open(&idle).unwrap().stack.is_empty());
        r.space.set(start, no_stack);
        assert_eq!(open(&r).unwrap().stack, whole);
    }
    // R on a system with arguments of a program above the stack.
    idle.space.set(start, STACK_END);
    assert_eq!(open(&idle).unwrap().stack, whole);
}

#[test]
fn the_outermost_record_is_a_variable_of_r() {
    let mut r = FakeR::new(Layout::R_4_4);
    let f = r.call_of("f");
    r.enter(f, At::Nowhere);
    assert!(open(&r).is_ok());
    r.space.set(r.head + NEXT, 0);
    assert!(open(&r).unwrap_err().contains("does not end with"));
}

#[test]
fn the_node_stack_is_not_higher_when_outer_calls_are_made() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let f = r.call_of("f");
        let record = r.enter(f, At::Nowhere);
        for other in Layout::ALL.into_iter().filter(|other| *other != layout) {
            r.space.set(record + other.node_stack, NODE_STACK);
            r.space.set(record + other.srcref, r.nil);
            r.space.set(TOPLEVEL + other.node_stack, NODE_STACK + 8);
            r.space.set(TOPLEVEL + other.srcref, r.nil);
        }
        assert_eq!(open(&r).unwrap().layout, Some(layout));
    }
}

#[test]
fn lists_without_an_end_are_refused_soon() {
    // A cycle on either stack, or across both.
    for (from, to) in [(0, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 2)] {
        let mut r = busy(Layout::R_4_4);
        let mut records = vec![r.head];
        for _ in 0..3 {
            records.push(r.space.word(records[records.len() - 1] + NEXT));
        }
        r.space.set(records[from] + NEXT, records[to]);
        let memory = r.memory();
        let error = open_memory(&memory, &r.mappings()).unwrap_err();
        assert!(error.contains("does not end with"), "{error}");
        assert!(memory.reads() < 10_000, "{}", memory.reads());
    }
}

#[test]
fn deep_stacks_are_followed_to_their_end() {
    let mut r = FakeR::with(Layout::R_4_4, Hash::Gnu, 30_000);
    let f = r.call_of("f");
    for _ in 0..30_000 {
        r.enter(f, At::Nowhere);
    }
    assert_eq!(open(&r).unwrap().toplevel, TOPLEVEL);
}

#[test]
fn a_list_that_changes_is_read_again() {
    let r = busy(Layout::R_4_4);
    let memory = r.memory();
    // R returns from a function, calls it again, and so on.
    let (head, inner) = (variable("R_GlobalContext"), r.head);
    let outer = r.space.word(inner + NEXT);
    memory.before_read(move |space, reads| {
        space.set(head, if reads % 3 == 0 { inner } else { outer });
    });
    assert_eq!(
        open_memory(&memory, &r.mappings()).unwrap().toplevel,
        TOPLEVEL
    );
    // Invalid records in the meantime are ignored.
    let memory = r.memory();
    memory.before_read(move |space, reads| {
        let flags = if reads < 60 { 1 << 20 } else { CLOSURE };
        space.write(inner + CALLFLAG, &flags.to_le_bytes());
    });
    assert_eq!(
        open_memory(&memory, &r.mappings()).unwrap().layout,
        Some(r.layout)
    );
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let r = busy(Layout::R_4_4);
    let whole = open(&r).map(|found| found.toplevel);
    assert_eq!(whole, Ok(TOPLEVEL));
    let outer = r.space.word(r.head + NEXT);
    for address in [
        MODULE,
        variable("R_GlobalContext"),
        variable("R_NilValue"),
        r.head,
        outer,
        TOPLEVEL,
    ] {
        let mut r = r.clone();
        r.space.hide(address..address + 8);
        assert!(open(&r).is_err(), "{address:#x}");
    }
}

#[test]
fn a_call_by_native_code_may_have_a_null_pointer_as_srcref() {
    for layout in Layout::ALL {
        let mut r = busy(layout);
        let h = r.call_of("h");
        r.enter(h, At::Srcref(0));
        let found = open(&r).unwrap();
        assert_eq!(found.layout, Some(layout));
    }
}

#[test]
fn r_runs_on_the_stack_of_its_innermost_record() {
    for layout in Layout::ALL {
        let mut r = FakeR::new(layout);
        let f = r.call_of("f");
        let place = |r: &FakeR| {
            let found = open(r).unwrap();
            (found.stack.clone(), found.whereabouts(&mut r.memory()))
        };
        // It runs no function, so only R's own variable is known.
        let (idle, nowhere) = place(&r);
        assert_eq!((idle.end, nowhere), (STACK_END, None));
        let stack = r.change_thread();
        let record = r.enter(f, At::Nowhere);
        assert_eq!(
            place(&r),
            (stack.clone(), Some(Whereabouts::Record(record)))
        );
        assert_eq!(r.frames(), ["f"]);
        // Records on the node stack are passed over.
        let nil = r.nil;
        r.record(On::Node, CLOSURE, f, nil, At::Nowhere);
        assert_eq!(place(&r), (stack, Some(Whereabouts::Record(record))));
    }
}

#[test]
fn a_variable_of_the_interpreter_shows_the_stack_if_no_record_does() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (f, nil) = (r.call_of("f"), r.nil);
    let stack = r.change_thread();
    let outer = r.record(On::Node, CLOSURE, f, nil, At::Nowhere);
    let inner = r.record(On::Node, CLOSURE, f, nil, At::Nowhere);
    let variable = stack.end - 0x80;
    let position = |r: &FakeR| open(r).unwrap().whereabouts(&mut r.memory());
    assert_eq!(position(&r), None);
    // An address that cannot be a variable there.
    r.space.set(inner + BCPC, outer);
    r.space.set(outer + BCPC, variable);
    assert_eq!(position(&r), Some(Whereabouts::Position(variable)));
    assert_eq!(open(&r).unwrap().stack, stack);
}

#[test]
fn a_stack_ends_where_something_else_is_mapped() {
    let mapped = [0x1000..0x2000, 0x5000..0x9000, 0x9000..0xa000];
    let stack = |address| stack_at(mapped.iter().cloned(), address);
    assert_eq!(stack(0x6000), Some(0x2000..0x9000));
    assert_eq!(stack(0x9000), Some(0x9000..0xa000));
    assert_eq!(stack(0x3000), None);
    // It takes no more than this, even if nothing is mapped below.
    let high = 1 << 40..(1 << 40) + 0x1000;
    let found = stack_at([0..0x1000, high.clone()].into_iter(), high.start);
    assert_eq!(found, Some(high.end - (1 << 36)..high.end));
}
