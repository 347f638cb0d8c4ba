//! What the last stack needed is read at once.

use crate::fake::Space;
use crate::fake::objects::Code;
use crate::fake::process::{At, BC_BODY, BC_PC, FakeR, On, frames};
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

#[test]
fn a_stack_like_the_last_one_takes_few_system_calls() {
    let (r, _) = deep();
    let (memory, mut reader) = r.reader();
    // The test must not depend on the speed of the machine.
    reader.shortest_collection = Duration::MAX;
    let mut calls = || {
        let before = memory.calls();
        assert_eq!(frames(&mut reader).unwrap().len(), 21);
        memory.calls() - before
    };
    assert!(calls() > 40);
    calls();
    // By now it is known what has to be copied, and the last stacks have records in common.
    for _ in 0..10 {
        calls();
    }
    // Two system calls copy the records. This is done twice, since the first time is slow. Another one copies calls,
    // byte code, its constants and srcrefs.
    assert_eq!(calls(), 5);
}

#[test]
fn a_new_function_in_such_a_stack_takes_few_more() {
    let (mut r, _) = deep();
    let (memory, mut reader) = r.reader();
    reader.shortest_collection = Duration::MAX;
    for _ in 0..10 {
        frames(&mut reader).unwrap();
    }
    r.leave();
    let call = r.call_of("new");
    r.enter(call, At::Nowhere);
    memory.change(|space| *space = r.space.clone());
    let before = memory.calls();
    assert_eq!(frames(&mut reader).unwrap()[0], "new");
    // Four for the name, and one to check that all 20 calls still exist.
    assert_eq!(memory.calls() - before, 5 + 4 + 1);
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

#[test]
fn calls_that_are_made_again_meanwhile_are_read_at_once() {
    let mut r = FakeR::new(Layout::R_4_4);
    let calls = ["f", "g", "h"].map(|name| r.call_of(name));
    for call in calls {
        r.enter(call, At::Nowhere);
    }
    let before = r.space.clone();
    for again in 1..=3 {
        for _ in 0..again {
            r.leave();
        }
        for &call in &calls[3 - again..] {
            r.enter(call, At::Nowhere);
        }
        let mut at_once = 0;
        let mut undisturbed = 0;
        for number in 0..30 {
            let (memory, mut reader) = r.reader();
            reader.shortest_collection = Duration::MAX;
            reader.wait = Duration::MAX;
            memory.change(|space| *space = before.clone());
            for _ in 0..3 {
                let calls = memory.calls();
                frames(&mut reader).unwrap();
                undisturbed = memory.calls() - calls;
            }
            let after = r.space.clone();
            memory.before_read(move |space, reads| {
                if reads == number {
                    *space = after.clone();
                }
            });
            let calls = memory.calls();
            assert_eq!(frames(&mut reader).unwrap(), ["h", "g", "f"]);
            at_once += u32::from(memory.calls() == calls + undisturbed);
        }
        assert_eq!(at_once, 30, "{again}");
    }
}

/// `f()` calls `g()`, which calls `h()` and `x()` in turn. The reader knows only one of the two.
#[test]
fn calls_that_change_all_the_time_give_stacks_that_were_there() {
    let mut r = FakeR::new(Layout::R_4_4);
    let calls = ["f", "g", "h", "x"].map(|name| r.call_of(name));
    for &call in &calls[..3] {
        r.enter(call, At::Nowhere);
    }
    let one = r.space.clone();
    r.leave();
    r.enter(calls[3], At::Nowhere);
    let other = r.space.clone();
    for period in 1..60 {
        let (memory, mut reader) = r.reader();
        reader.shortest_collection = Duration::MAX;
        memory.change(|space| *space = one.clone());
        for _ in 0..10 {
            assert_eq!(frames(&mut reader).unwrap(), ["h", "g", "f"]);
        }
        let states = [one.clone(), other.clone()];
        memory.before_read(move |space, reads| {
            if reads % period == 0 {
                *space = states[(reads / period) as usize % 2].clone();
            }
        });
        let mut whole = 0;
        for _ in 0..20 {
            let Some(frames) = frames(&mut reader) else {
                continue;
            };
            let frames = frames.join(" ");
            let is_whole = ["h g f", "x g f"].contains(&&*frames);
            let is_part = ["... g f", "... f"].contains(&&*frames);
            assert!(is_whole || is_part, "{period}: {frames}");
            whole += u32::from(is_whole);
        }
        // A copy of three records takes about 20 reads.
        assert!(period < 40 || whole == 20, "{period}: {whole}");
    }
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
