//! The position of the innermost function in its byte code.

use crate::fake::FakeMemory;
use crate::fake::module::Hash;
use crate::fake::objects::Code;
use crate::fake::process::{At, BC_BODY, BC_PC, FakeR, On, TOPLEVEL, frames, variable};
use profile_reader::stack::innermost::Seen;
use profile_reader::stack::reader::StackReader;
use profile_runtime::contexts::{CLOSURE, Layout};
use profile_runtime::objects::{BODY, CODE, LENGTH};

/// A function that is in its byte code at a.R#12.
fn r(layout: Layout) -> (FakeR, Code) {
    called(FakeR::new(layout), 1)
}

/// The same function, which has called itself so many times.
fn called(mut r: FakeR, calls: usize) -> (FakeR, Code) {
    let file = r.srcfile("a.R");
    let srcrefs: Vec<_> = (10..15).map(|line| r.srcref(line, file)).collect();
    let code = r.byte_code(&srcrefs);
    let f = r.call_of("f");
    for _ in 0..calls {
        r.record(On::C, CLOSURE, f, code.closure, At::Nowhere);
    }
    r.is_at(At::Absolute(code, 2));
    (r, code)
}

/// Prepares, and calls `pause` instead of sleeping. Returns the number of pauses.
fn prepare(reader: &mut StackReader<FakeMemory>, pause: impl FnMut()) -> usize {
    let (mut pauses, mut pause) = (0, pause);
    let pause = || {
        pauses += 1;
        pause();
    };
    reader.prepare_with(pause).unwrap();
    pauses
}

#[test]
fn the_variables_are_found_by_their_values() {
    for layout in Layout::ALL {
        let (r, _) = r(layout);
        let (_, mut reader) = r.reader();
        assert_eq!(frames(&mut reader).unwrap(), ["f"]);
        assert!(prepare(&mut reader, || {}) < 15);
        assert_eq!(frames(&mut reader).unwrap(), ["f a.R#12"]);
    }
}

#[test]
fn the_preparation_pauses() {
    let (r, _) = r(Layout::R_4_4);
    let (_, mut reader) = r.reader();
    reader.prepare().unwrap();
    assert_eq!(frames(&mut reader).unwrap(), ["f a.R#12"]);
}

#[test]
fn functions_that_are_no_byte_code_end_the_preparation() {
    let mut r = FakeR::new(Layout::R_4_4);
    let f = r.call_of("f");
    r.enter(f, At::Nowhere);
    let (_, mut reader) = r.reader();
    assert!(prepare(&mut reader, || {}) < 15);
}

#[test]
fn they_are_searched_until_there_is_a_candidate() {
    let (r, _) = r(Layout::R_4_4);
    let (memory, mut reader) = r.reader();
    let body = r.space.word(BC_BODY);
    // Whenever the variables are searched, the function has returned, and another one runs.
    memory.change(|space| space.set(BC_BODY, 0));
    let mut frames = || {
        let frames = frames(&mut reader).unwrap();
        reader.search_further().unwrap();
        frames
    };
    for _ in 0..6 {
        assert_eq!(frames(), ["f"]);
    }
    memory.change(|space| space.set(BC_BODY, body));
    let read = (0..24).find(|_| frames() == ["f a.R#12"]);
    assert!(read > Some(5), "{read:?}");
}

#[test]
fn variables_with_the_same_values_are_told_apart_by_time() {
    let (mut r, code) = r(Layout::R_4_4);
    let pc = r.space.word(BC_PC);
    r.space.set(BC_BODY + 0x40, code.object);
    r.space.set(BC_PC + 0x40, pc);
    // The other variables always have the same values.
    let (_, mut reader) = r.reader();
    assert!(prepare(&mut reader, || {}) > 30);
    assert_eq!(frames(&mut reader).unwrap(), ["f"]);
    // They have the same values half of the time.
    let (memory, mut reader) = r.reader();
    let mut number = 0;
    prepare(&mut reader, || {
        number += 1;
        let (body, pc) = if number % 2 == 0 {
            (code.object, pc)
        } else {
            (0, 0)
        };
        memory.change(|space| {
            space.set(BC_BODY + 0x40, body);
            space.set(BC_PC + 0x40, pc);
        });
    });
    assert_eq!(frames(&mut reader).unwrap(), ["f a.R#12"]);
}

#[test]
fn a_variable_needs_the_value_more_than_half_of_the_time() {
    let (r, code) = r(Layout::R_4_4);
    for (part, is_found) in [(3, false), (1, true)] {
        let (memory, mut reader) = r.reader();
        let mut number = 0;
        prepare(&mut reader, || {
            number += 1;
            let body = if number % part == 0 { code.object } else { 0 };
            memory.change(|space| space.set(BC_BODY, body));
        });
        memory.change(|space| space.set(BC_BODY, code.object));
        let expected = if is_found { "f a.R#12" } else { "f" };
        assert_eq!(frames(&mut reader).unwrap(), [expected]);
    }
}

#[test]
fn values_that_were_read_while_the_calls_changed_do_not_count() {
    let (r, _) = r(Layout::R_4_4);
    let (memory, mut reader) = r.reader();
    // The first reads search all variables.
    for _ in 0..6 {
        frames(&mut reader).unwrap();
    }
    let before = memory.reads();
    frames(&mut reader).unwrap();
    let reads_of_one = memory.reads() - before;
    let head = r.head;
    let mut first_found = None;
    for number in 0..2 * reads_of_one {
        let (memory, mut reader) = r.reader();
        for _ in 0..6 {
            frames(&mut reader).unwrap();
        }
        // The function returns before this read, and is called again later.
        let returns = || {
            memory.change(|space| space.set(variable("R_GlobalContext"), head));
            memory.before_read(move |space, reads| {
                if reads == number {
                    space.set(variable("R_GlobalContext"), TOPLEVEL);
                }
            });
        };
        returns();
        prepare(&mut reader, returns);
        memory.leave_alone();
        memory.change(|space| space.set(variable("R_GlobalContext"), head));
        if frames(&mut reader).unwrap() == ["f a.R#12"] {
            first_found = first_found.or(Some(number));
        }
    }
    // The variables are read in the middle.
    assert!(first_found > Some(0) && first_found < Some(reads_of_one));
}

#[test]
fn damaged_functions_get_no_vote() {
    let (r, code) = r(Layout::R_4_4);
    for (address, word) in [
        (code.closure, 0),
        (code.closure + BODY as u64, 0),
        (code.closure + BODY as u64, u64::MAX),
        (code.object, 0),
        (code.object + CODE as u64, u64::MAX - 60),
        (code.instructions, 0),
        (code.instructions + LENGTH as u64, 0),
        (code.instructions + LENGTH as u64, 1 << 63),
        (code.instructions + LENGTH as u64, u64::MAX),
        (BC_PC, 0),
        (BC_PC, u64::MAX - 7),
        (BC_BODY, 0),
    ] {
        let mut r = r.clone();
        r.space.set(address, word);
        let (_, mut reader) = r.reader();
        prepare(&mut reader, || {});
        assert_eq!(frames(&mut reader).unwrap(), ["f"], "{address:#x}");
    }
}

#[test]
fn many_variables_with_the_values_do_not_take_long() {
    let (mut r, code) = r(Layout::R_4_4);
    let pc = r.space.word(BC_PC);
    for offset in (0x40..0x500).step_by(16) {
        r.space.set(BC_BODY + offset, code.object);
        r.space.set(BC_BODY + offset + 8, pc);
    }
    let (memory, mut reader) = r.reader();
    prepare(&mut reader, || {});
    assert!(memory.reads() < 100_000);
    assert_eq!(frames(&mut reader).unwrap(), ["f"]);
}

#[test]
fn the_preparation_reads_few_calls_of_a_deep_stack() {
    let (r, _) = called(FakeR::with(Layout::R_4_4, Hash::Gnu, 600), 500);
    let (memory, mut reader) = r.reader();
    let before = memory.reads();
    let looks = prepare(&mut reader, || {}) as u64 + 1;
    // For each call: the record, its identifying fields, and the object of the call.
    assert!(memory.reads() - before < looks * 20 * 8);
    let stack = frames(&mut reader).unwrap();
    assert_eq!(stack.len(), 500);
    assert_eq!(stack[0], "f a.R#12");
}

#[test]
fn a_fork_needs_no_preparation() {
    let (r, _) = r(Layout::R_4_4);
    let (memory, mut reader) = r.reader();
    prepare(&mut reader, || {});
    let mut fork = reader.of_fork(memory.clone()).unwrap().unwrap();
    assert_eq!(frames(&mut fork).unwrap(), ["f a.R#12"]);
    // Another process has another R there.
    memory.change(|space| space.set(variable("R_NilValue"), 8));
    assert!(reader.of_fork(memory).unwrap().is_none());
}

#[test]
fn a_variable_that_refers_to_an_old_place_on_the_stack_is_told_apart_by_depth() {
    let (mut r, code) = r(Layout::R_4_4);
    let old = r.space.word(BC_PC);
    r.space.set(BC_PC + 0x40, old);
    let (memory, mut reader) = r.reader();
    let mut seen = Seen::default();
    // What is there still looks like the position, at the same depth.
    for _ in 0..2 {
        assert_eq!(reader.find_positions(&mut seen).unwrap(), None);
    }
    memory.change(|space| {
        let deeper = old - 0x40;
        space.set(deeper, space.word(old));
        space.set(old, code.object);
        space.set(BC_PC, deeper);
    });
    let found = reader.find_positions(&mut seen).unwrap();
    assert_eq!(
        found.map(|found| (found.code, found.pc)),
        Some((BC_BODY, BC_PC))
    );
}
