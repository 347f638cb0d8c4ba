//! What the last stack needed is read at once.

use crate::fake::process::{At, FakeR, frames};
use profile_runtime::contexts::Layout;
use profile_runtime::objects::CELL;
use std::time::Duration;

/// A process with twenty calls, and their records.
fn deep() -> (FakeR, Vec<u64>) {
    let mut r = FakeR::new(Layout::R_4_4);
    let file = r.srcfile("a.R");
    let calls = ["f", "g", "h"].map(|name| r.call_of(name));
    let srcrefs = [1, 2].map(|line| r.srcref(line, file));
    // That of a function without source code.
    let code = r.byte_code(&[]);
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
    // However slow this machine is.
    reader.shortest_collection = Duration::MAX;
    reader.wait = Duration::MAX;
    let mut calls = || {
        let before = memory.calls();
        assert_eq!(frames(&mut reader).unwrap().len(), 21);
        memory.calls() - before
    };
    assert!(calls() > 40);
    calls();
    // The innermost record and the copies, both twice, since the first time is slow; calls and srcrefs; byte code.
    assert!(calls() <= 9);
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
        // What the inner ten calls had on the C stack, and something of the heap.
        space.hide(last..first);
        space.hide(call..call + CELL as u64);
    });
    for _ in 0..2 {
        // Where the innermost function is, is not known.
        let frames = frames(&mut reader).unwrap();
        assert_eq!(frames[0], "f");
        assert_eq!(frames[1..], whole[11..]);
    }
    // It was used for the call of another function.
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

#[test]
fn a_new_call_that_has_returned_is_waited_for() {
    let mut r = FakeR::new(Layout::R_4_4);
    let calls = ["f", "g", "h"].map(|name| r.call_of(name));
    r.enter(calls[0], At::Nowhere);
    r.enter(calls[1], At::Nowhere);
    let without = r.space.clone();
    r.enter(calls[2], At::Nowhere);
    for (wait, frames_then) in [
        (Duration::MAX, &["h", "g", "f"][..]),
        (Duration::ZERO, &["g", "f"]),
    ] {
        let (memory, mut reader) = r.reader();
        reader.shortest_collection = Duration::MAX;
        reader.wait = wait;
        memory.change(|space| *space = without.clone());
        for _ in 0..3 {
            assert_eq!(frames(&mut reader).unwrap(), ["g", "f"]);
        }
        let with = r.space.clone();
        memory.change(|space| *space = with.clone());
        let without = without.clone();
        // It is there for the first read, then it is not, and later it is called again.
        memory.before_read(move |space, reads| match reads {
            1 => *space = without.clone(),
            60 => *space = with.clone(),
            _ => {}
        });
        assert_eq!(frames(&mut reader).unwrap(), frames_then, "{wait:?}");
    }
}
