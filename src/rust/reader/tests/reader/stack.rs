//! A stack that changes while it is read.

use crate::fake::Space;
use crate::fake::module::Hash;
use crate::fake::process::{At, FakeR, HEAP, On, frames, frames_in, variable};
use profile_reader::stack::reader::Motion;
use profile_runtime::contexts::{CALL, CLOENV, CLOSURE, Layout, NEXT};
use profile_runtime::objects::{ATTRIBUTES, CAR};
use std::time::Duration;

/// A process at two moments. Function `f` was called at one place, then at another one. The objects of the first call
/// were freed, and their memory is used for something else.
struct Moments {
    before: FakeR,
    after: FakeR,
    texts: [Vec<&'static str>; 2],
}

fn moments(layout: Layout) -> Moments {
    let mut r = FakeR::new(layout);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    let [srcref, new] = ["old.R", "new.R"].map(|name| {
        let file = r.srcfile(name);
        r.srcref(1, file)
    });
    let renamed = r.symbol("renamed");
    r.enter(f, At::Srcref(srcref));
    r.enter(g, At::Srcref(srcref));
    // The record of a call that has ended remains in memory.
    let mut after = r.clone();
    after.leave();
    // There is another call and another place at the same addresses.
    after.space.set(f + CAR as u64, renamed);
    let attributes = after.space.word(new + ATTRIBUTES as u64);
    after.space.set(srcref + ATTRIBUTES as u64, attributes);
    Moments {
        before: r,
        after,
        texts: [
            vec!["g", "f old.R#1", "at old.R#1"],
            vec!["renamed", "at new.R#1"],
        ],
    }
}

/// A process that calls `a()` and `b()`, and later other functions with records at the same addresses, on both stacks.
fn other_calls() -> Moments {
    let mut r = FakeR::new(Layout::R_4_4);
    let calls = ["a", "b", "c", "d"].map(|name| r.call_of(name));
    let nil = r.nil;
    r.record(On::Node, CLOSURE, calls[0], nil, At::Nowhere);
    r.enter(calls[1], At::Nowhere);
    let mut after = r.clone();
    after.leave();
    after.leave();
    after.record(On::Node, CLOSURE, calls[2], nil, At::Nowhere);
    after.enter(calls[3], At::Nowhere);
    Moments {
        before: r,
        after,
        texts: [vec!["b", "a"], vec!["d", "c"]],
    }
}

/// The stack that is read if the memory changes before the read with this number, and the stack that is read later.
fn changed(moments: &Moments, number: u64, motion: Motion) -> [Option<Vec<String>>; 2] {
    let (memory, mut reader) = moments.before.reader();
    let after = moments.after.space.clone();
    memory.before_read(move |space, reads| {
        if reads == number {
            *space = after.clone();
        }
    });
    let first = frames_in(motion, &mut reader);
    memory.leave_alone();
    memory.change(|space| *space = moments.after.space.clone());
    [first, frames(&mut reader)]
}

#[test]
fn the_test_has_two_moments() {
    for layout in Layout::ALL {
        let moments = moments(layout);
        assert_eq!(moments.before.frames(), moments.texts[0]);
        assert_eq!(moments.after.frames(), moments.texts[1]);
    }
}

#[test]
fn a_stack_is_that_of_one_moment() {
    for layout in Layout::ALL {
        let moments = moments(layout);
        let mut first_of_after = None;
        for number in 0..200 {
            let [first, second] = changed(&moments, number, Motion::Free);
            let first = first.unwrap();
            if first == moments.texts[1] {
                // Nothing of the attempts that failed was kept.
                assert_eq!(second.unwrap(), moments.texts[1], "{number}");
                first_of_after = Some(number);
            } else {
                assert_eq!(first, moments.texts[0], "{number}");
            }
        }
        // Almost all of an attempt has passed then.
        assert!(first_of_after > Some(25), "{first_of_after:?}");
    }
}

#[test]
fn the_stack_of_calls_that_are_known_is_that_of_one_moment_too() {
    let moments = other_calls();
    let mut mixed = 0;
    for motion in [Motion::Free, Motion::Still] {
        for number in 0..60 {
            let (memory, mut reader) = moments.before.reader();
            // Nothing is freed, so what is the same twice need not be read again.
            reader.shortest_collection = Duration::MAX;
            let [before, after] = [&moments.before, &moments.after].map(|r| r.space.clone());
            for space in [&after, &before] {
                memory.change(|now| *now = space.clone());
                frames(&mut reader).unwrap();
            }
            memory.before_read(move |space, reads| {
                if reads == number {
                    *space = after.clone();
                }
            });
            let read = frames_in(motion, &mut reader).unwrap();
            let is_mixed = moments.texts.iter().all(|text| read != *text);
            assert!(!(motion == Motion::Free && is_mixed), "{number}: {read:?}");
            mixed += usize::from(is_mixed);
        }
    }
    assert!(mixed > 0);
}

/// The stack that is read of a process that calls `a()`, which calls `b()`, then `c()`, which calls `d()`, and so on.
/// The process continues before three of the reads. The reader has no known records to copy at once.
fn read_in_a_loop(moments: &[Space; 4], reads: [u64; 3]) -> Option<Vec<String>> {
    let (memory, mut reader) = other_calls().before.reader();
    // The test must not depend on the speed of the machine.
    reader.shortest_collection = Duration::MAX;
    memory.change(|now| *now = moments[0].clone());
    let later: Vec<_> = reads.into_iter().zip(moments[1..].to_vec()).collect();
    memory.before_read(move |space, reads| {
        if let Some((_, next)) = later.iter().find(|next| next.0 == reads) {
            *space = next.clone();
        }
    });
    frames(&mut reader)
}

#[test]
fn in_a_loop_calls_differ_by_their_environments() {
    let Moments {
        before,
        after,
        texts,
    } = other_calls();
    // The same calls at the same places.
    let [a, b] = [before.space, after.space];
    let mut moments = [a.clone(), b.clone(), a.clone(), b.clone()];
    let records = [before.head, a.word(before.head + NEXT)];
    let count_mixed = |moments: &[Space; 4]| {
        let mut mixed = 0;
        for first in 0..24 {
            for second in first + 1..25 {
                for third in second + 1..26 {
                    let read = read_in_a_loop(moments, [first, second, third]);
                    let is_mixed = |read: Vec<String>| !texts.iter().any(|text| read == *text);
                    mixed += usize::from(read.is_some_and(is_mixed));
                }
            }
        }
        mixed
    };
    for (number, space) in (1..).zip(&mut moments) {
        for record in records {
            space.set(record + CLOENV, HEAP + 64 * number);
        }
    }
    assert_eq!(count_mixed(&moments), 0);
    for space in &mut moments {
        for record in records {
            space.set(record + CLOENV, HEAP);
        }
    }
    assert!(count_mixed(&moments) > 0);
}

#[test]
fn without_the_second_reading_stacks_are_of_several_moments() {
    let moments = moments(Layout::R_4_4);
    let mixed = (0..200).filter(|&number| {
        let [first, _] = changed(&moments, number, Motion::Still);
        first.is_some_and(|first| moments.texts.iter().all(|text| first != *text))
    });
    assert!(mixed.count() > 2);
}

#[test]
fn a_stack_that_always_changes_is_not_read() {
    let mut r = FakeR::new(Layout::R_4_4);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    let record = r.enter(g, At::Nowhere);
    let (memory, mut reader) = r.reader();
    memory.before_read(move |space, reads| {
        let random = reads.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        space.set(record + CALL, if random % 2 == 0 { f } else { g });
        space.set(record + CLOENV, HEAP + random / 2 % 64 * 64);
    });
    let read: Vec<_> = (0..100).map(|_| frames(&mut reader)).collect();
    assert!(read.iter().flatten().all(|frames| frames[1] == "f"));
    assert!(read.contains(&None));
    memory.change(|space| space.set(record + CALL, g));
    let head = variable("R_GlobalContext");
    let outer = r.space.word(record + NEXT);
    memory.before_read(move |space, reads| {
        space.set(head, if reads % 3 == 0 { outer } else { record });
    });
    for _ in 0..20 {
        if let Some(frames) = frames(&mut reader) {
            assert!(frames == ["g", "f"] || frames == ["f"], "{frames:?}");
        }
    }
    memory.leave_alone();
    memory.change(|space| *space = r.space.clone());
    assert_eq!(frames(&mut reader).unwrap(), ["g", "f"]);
}

#[test]
fn a_process_that_ends_meanwhile_has_no_stack() {
    let moments = moments(Layout::R_4_4);
    for number in 0..200 {
        let (memory, mut reader) = moments.before.reader();
        memory.before_read(move |space, reads| {
            if reads == number / 2 {
                space.regions.clear();
            }
        });
        let first = frames(&mut reader);
        assert!(first.is_none_or(|first| first == moments.texts[0]));
        memory.change(|space| space.regions.clear());
        assert_eq!(frames(&mut reader), None);
    }
}

#[test]
fn inner_calls_are_no_stack_if_an_outer_one_cannot_be_read() {
    let mut r = FakeR::with(Layout::R_4_4, Hash::Gnu, 150);
    let [f, h] = ["f", "h"].map(|name| r.call_of(name));
    // The next object is on a page of its own.
    for _ in 0..100 {
        r.allocate(56);
    }
    let g = r.call_of("g");
    for call in [f, g, h] {
        r.enter(call, At::Nowhere);
    }
    let (memory, mut reader) = r.reader();
    reader.shortest_collection = Duration::MAX;
    assert_eq!(frames(&mut reader).unwrap(), ["h", "g", "f"]);
    memory.change(|space| space.hide(g..g + 56));
    assert_eq!(frames(&mut reader), None);
}
