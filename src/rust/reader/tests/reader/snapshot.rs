//! What one stack needs: few system calls, and one moment.

use crate::fake::objects::Code;
use crate::fake::process::{At, BC_BODY, BC_PC, FakeR, On, frames, frames_in};
use crate::fake::{FakeMemory, Space};
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::contexts::{CLOSURE, Layout, RECORD};
use profile_runtime::objects::{CELL, DATA};
use std::time::Duration;

/// A process with twenty calls, and their records.
fn deep() -> (FakeR, Vec<u64>) {
    let mut r = FakeR::new(Layout::R_4_4);
    let file = r.srcfile("a.R");
    let [stats, lm] = ["stats", "lm"].map(|name| r.symbol(name));
    let member = r.call_of_member("::", stats, lm);
    let calls = [r.call_of("f"), r.call_of("g"), member];
    let srcrefs = [1, 2].map(|line| r.srcref(line, file));
    let code = r.byte_code(&srcrefs);
    let records = (0..20).map(|number| {
        let at = match number % 5 {
            4 => At::Relative(code, 1),
            _ => At::Srcref(srcrefs[number % 2]),
        };
        r.enter(calls[number % 3], at)
    });
    let records = records.collect();
    (r, records)
}

/// The number of system calls for a stack.
fn calls_for(memory: &FakeMemory, reader: &mut StackReader<FakeMemory>, motion: Motion) -> u64 {
    reader.plan().unwrap();
    let before = memory.calls();
    assert_eq!(frames_in(motion, reader).unwrap().len(), 21);
    memory.calls() - before
}

#[test]
fn a_stack_like_the_last_one_takes_few_system_calls() {
    let (r, _) = deep();
    let (memory, mut reader) = r.reader();
    // The test must not depend on the speed of the machine.
    reader.shortest_collection = Duration::MAX;
    assert!(calls_for(&memory, &mut reader, Motion::Free) > 40);
    // For the innermost record, and for all records, variables and objects; the records once more, if they may change.
    for _ in 0..3 {
        assert_eq!(calls_for(&memory, &mut reader, Motion::Still), 4);
        assert_eq!(calls_for(&memory, &mut reader, Motion::Free), 5);
    }
    // If the objects may have been freed meanwhile, the records are read for the third time.
    reader.shortest_collection = Duration::ZERO;
    assert_eq!(calls_for(&memory, &mut reader, Motion::Free), 6);
}

#[test]
fn a_new_function_in_such_a_stack_takes_few_more() {
    let (mut r, _) = deep();
    let (memory, mut reader) = r.reader();
    reader.shortest_collection = Duration::MAX;
    calls_for(&memory, &mut reader, Motion::Free);
    r.leave();
    let call = r.call_of("new");
    r.enter(call, At::Nowhere);
    memory.change(|space| *space = r.space.clone());
    // One for the call, and four for the name.
    assert_eq!(calls_for(&memory, &mut reader, Motion::Still), 4 + 1 + 4);
    assert_eq!(frames(&mut reader).unwrap()[0], "new");
    assert_eq!(calls_for(&memory, &mut reader, Motion::Still), 4);
}

#[test]
fn what_is_gone_since_the_last_stack_does_not_matter() {
    let (mut r, records) = deep();
    let (memory, mut reader) = r.reader();
    let whole = frames(&mut reader).unwrap();
    let (first, last) = (records[10], records[19]);
    for _ in 0..10 {
        r.leave();
    }
    let call = r.call_of("x");
    memory.change(|space| {
        *space = r.space.clone();
        // The memory of the inner ten calls on the C stack, and an object on the heap.
        space.hide(last..first);
        space.hide(call..call + CELL as u64);
    });
    for _ in 0..2 {
        // The position of the innermost function is unknown.
        let frames = frames(&mut reader).unwrap();
        assert_eq!(frames[0], "f");
        assert_eq!(frames[1..], whole[11..]);
    }
    // The memory was reused for the call of another function.
    r.enter(call, At::Nowhere);
    memory.change(|space| *space = r.space.clone());
    assert_eq!(frames(&mut reader).unwrap()[0], "x");
}

/// Both stacks are known. One of them becomes the other one while it is copied, in between any two reads.
#[test]
fn a_stack_that_becomes_another_one_is_one_of_both() {
    let outer = ["f", "g"];
    let inner = [&["h"][..], &["i", "h"], &["x", "y", "z"], &[]];
    for (one, other) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (0, 3)] {
        let mut r = FakeR::new(Layout::R_4_4);
        for name in outer {
            let call = r.call_of(name);
            r.enter(call, At::Nowhere);
        }
        let states = [one, other].map(|number| {
            for name in inner[number] {
                let call = r.call_of(name);
                r.enter(call, At::Nowhere);
            }
            let state = r.space.clone();
            for _ in inner[number] {
                r.leave();
            }
            let mut names = [&outer[..], inner[number]].concat();
            names.reverse();
            (state, names.join(" "))
        });
        for number in 0..60 {
            let (memory, mut reader) = r.reader();
            reader.shortest_collection = Duration::MAX;
            for (state, names) in states.iter().chain(&states) {
                memory.change(|space| *space = state.clone());
                for _ in 0..5 {
                    assert_eq!(frames(&mut reader).unwrap().join(" "), *names);
                }
            }
            memory.change(|space| *space = states[0].0.clone());
            let after = states[1].0.clone();
            memory.before_read(move |space, reads| {
                if reads == number {
                    *space = after.clone();
                }
            });
            let frames = frames(&mut reader).unwrap().join(" ");
            let is_one = states.iter().any(|(_, names)| *names == frames);
            assert!(is_one, "{one} {other} {number}: {frames}");
        }
    }
}

/// Reads a stack that becomes another one in between any two reads, after both were read. The result must be one of
/// both.
fn is_one_of_both(r: &FakeR, states: &[Space; 2], texts: [&[&str]; 2]) {
    for number in 0..60 {
        let (memory, mut reader) = r.reader();
        reader.shortest_collection = Duration::MAX;
        memory.change(|space| *space = states[0].clone());
        reader.prepare_with(|| ()).unwrap();
        for (state, text) in states.iter().zip(texts).cycle().take(4) {
            memory.change(|space| *space = state.clone());
            for _ in 0..5 {
                assert_eq!(frames(&mut reader).unwrap(), text);
            }
        }
        let [before, after] = states.clone();
        memory.change(|space| *space = before);
        memory.before_read(move |space, reads| {
            if reads == number {
                *space = after.clone();
            }
        });
        // Nothing wrong is learned either.
        for _ in 0..2 {
            let frames = frames(&mut reader).unwrap();
            assert!(
                texts.iter().any(|text| frames == *text),
                "{number}: {frames:?}"
            );
        }
    }
}

fn code_of_three_lines(r: &mut FakeR) -> Code {
    let file = r.srcfile("a.R");
    let srcrefs = [1, 2, 3].map(|line| r.srcref(line, file));
    r.byte_code(&srcrefs)
}

/// The address of an instruction.
fn position(code: Code, number: u64) -> u64 {
    code.instructions + DATA as u64 + 8 * number
}

/// The record of `g()` remains in memory, and `f()` moves on after it has returned. That of `h()` is copied before.
#[test]
fn where_a_function_was_called_is_not_where_its_caller_is_later() {
    let mut r = FakeR::new(Layout::R_4_4);
    let code = code_of_three_lines(&mut r);
    let [f, g, h, x, y] = ["f", "g", "h", "x", "y"].map(|name| r.call_of(name));
    let nil = r.nil;
    r.enter(f, At::Nowhere);
    let record = r.enter(g, At::Absolute(code, 1));
    r.record(On::Node, CLOSURE, h, nil, At::Nowhere);
    let before = r.space.clone();
    r.leave();
    r.leave();
    r.space.set(record + RECORD as u64, position(code, 2));
    r.record(On::Node, CLOSURE, x, nil, At::Nowhere);
    r.record(On::Node, CLOSURE, y, nil, At::Nowhere);
    let states = [before, r.space.clone()];
    is_one_of_both(&r, &states, [&["h", "g", "f a.R#2"], &["y", "x", "f"]]);
}

/// The position of `h()` changes when it returns.
#[test]
fn the_position_of_a_function_is_not_that_at_which_it_has_returned() {
    let mut r = FakeR::new(Layout::R_4_4);
    let code = code_of_three_lines(&mut r);
    let [f, h] = ["f", "h"].map(|name| r.call_of(name));
    let nil = r.nil;
    r.enter(f, At::Nowhere);
    r.record(On::C, CLOSURE, h, code.closure, At::Nowhere);
    r.is_at(At::Absolute(code, 1));
    let before = r.space.clone();
    let variable = r.space.word(BC_PC);
    r.leave();
    r.space.set(variable, position(code, 2));
    r.space.set(BC_BODY, nil);
    let states = [before, r.space.clone()];
    is_one_of_both(&r, &states, [&["h a.R#2", "f"], &["f"]]);
}
