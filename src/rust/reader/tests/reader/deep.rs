//! Stacks of thousands of calls: what is read at one moment, what is known from the last stack, and what is read later.

use crate::fake::FakeMemory;
use crate::fake::module::Hash;
use crate::fake::process::{At, FakeR, HEAP, On, frames};
use profile_reader::stack::frames::MOST_CALLS;
use profile_reader::stack::frames::{Cut, Frame, Stack};
use profile_reader::stack::moment::Moment;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_reader::stack::trunk::NEAR;
use profile_runtime::contexts::{CLOENV, Layout, NEXT};
use std::cell::Cell;
use std::time::Duration;

const DEPTHS: [usize; 9] = [
    10,
    NEAR - 1,
    NEAR,
    NEAR + 1,
    1000,
    3000,
    7000,
    20_000,
    MOST_CALLS,
];

/// A process with so many calls of functions whose names tell them apart.
struct Deep {
    r: FakeR,
    calls: Vec<u64>,
    /// The numbers of the functions, outermost first.
    stack: Vec<usize>,
}

impl Deep {
    fn new(layout: Layout, depth: usize) -> Deep {
        let mut r = FakeR::with(layout, Hash::Gnu, depth as u64 + 2000);
        let calls = (0..7).map(|number| r.call_of(&format!("f{number}")));
        let calls = calls.collect();
        let mut deep = Deep {
            r,
            calls,
            stack: Vec::new(),
        };
        deep.enter(depth, 1);
        deep
    }

    fn enter(&mut self, count: usize, step: usize) {
        for number in 0..count {
            let function = number * step % self.calls.len();
            self.r.enter(self.calls[function], At::Nowhere);
            self.stack.push(function);
        }
    }

    fn leave(&mut self, count: usize) {
        for _ in 0..count {
            self.r.leave();
            self.stack.pop();
        }
    }

    /// The process changes.
    fn show(&self, memory: &FakeMemory) {
        memory.change(|space| *space = self.r.space.clone());
    }

    /// The names of so many innermost functions.
    fn inner(&self, count: usize) -> Vec<String> {
        let inner = self.stack.iter().rev().take(count);
        inner.map(|number| format!("f{number}")).collect()
    }

    fn all(&self) -> Vec<String> {
        self.inner(self.stack.len())
    }
}

fn names(reader: &StackReader<FakeMemory>) -> Vec<String> {
    let name = |frame: &Frame| reader.texts().get(frame.name).to_owned();
    reader.stack().frames.iter().map(name).collect()
}

fn cut(reader: &StackReader<FakeMemory>) -> Option<Cut> {
    reader.stack().cut
}

/// Reads a stack as that of a process that is stopped, and goes on afterwards.
fn read_stopped(reader: &mut StackReader<FakeMemory>) -> Stack {
    assert!(reader.read(Motion::Still).unwrap().is_some());
    reader.finish().unwrap();
    reader.stack().clone()
}

#[test]
fn stacks_of_any_depth_are_read() {
    for layout in Layout::ALL {
        for depth in DEPTHS {
            let deep = Deep::new(layout, depth);
            let expected = deep.all();
            for motion in [Motion::Free, Motion::Asleep, Motion::Still] {
                let (memory, mut reader) = deep.r.reader();
                // Most calls are known from the second stack on.
                for round in 0..3 {
                    let before = memory.calls();
                    read_in(motion, &mut reader);
                    assert_eq!(cut(&reader), None, "{depth} {motion:?}");
                    assert!(names(&reader) == expected, "{depth} {motion:?}");
                    let calls = memory.calls() - before;
                    assert!(round < 2 || calls < 20, "{depth} {motion:?}: {calls}");
                    assert_eq!(reader.stack().records.len(), depth);
                }
            }
            let (_, mut reader) = deep.r.reader();
            for _ in 0..2 {
                assert!(reader.read_held(|| true).unwrap().is_some());
                assert!(names(&reader) == expected, "{depth}");
            }
        }
    }
}

fn read_in(motion: Motion, reader: &mut StackReader<FakeMemory>) {
    match motion {
        Motion::Still => drop(read_stopped(reader)),
        motion => assert!(reader.read(motion).unwrap().is_some()),
    }
}

#[test]
fn a_process_is_stopped_for_its_inner_calls_only() {
    for depth in DEPTHS {
        let deep = Deep::new(Layout::R_4_2, depth);
        let (memory, mut reader) = deep.r.reader();
        let before = memory.reads();
        assert!(reader.read(Motion::Still).unwrap().is_some());
        assert!(memory.reads() - before < 8000);
        let read = depth.min(3000);
        assert!(names(&reader) == deep.inner(read));
        assert_eq!(cut(&reader), (read < depth).then_some(Cut::Late));
        assert_eq!(reader.stack().toplevel, None);
        reader.finish().unwrap();
        assert!(names(&reader) == deep.all());
        // It is held for even fewer calls, after which the whole process may be different.
        let (memory, mut reader) = deep.r.reader();
        let before = memory.reads();
        let mut held = 0;
        assert!(
            reader
                .read_held(|| {
                    held = memory.reads() - before;
                    true
                })
                .unwrap()
                .is_some()
        );
        assert!(held < NEAR as u64 + 100);
    }
}

#[test]
fn a_stack_that_changes_inside_is_that_of_the_moment_at_which_it_was_held() {
    // All of it is unknown, or most of it is known.
    for is_known in [false, true] {
        for left in [1, 500, 2500] {
            let mut deep = Deep::new(Layout::R_4_4, 9000);
            let (memory, mut reader) = deep.r.reader();
            if is_known {
                read_stopped(&mut reader);
                deep.leave(4000);
                deep.enter(3990, 3);
                deep.show(&memory);
            }
            let expected = deep.all();
            assert!(reader.read(Motion::Still).unwrap().is_some());
            deep.leave(left);
            deep.enter(left + 20, 5);
            deep.show(&memory);
            reader.finish().unwrap();
            assert_eq!(cut(&reader), None, "{left}");
            assert!(names(&reader) == expected, "{left}");
            // Nothing wrong was learned.
            read_stopped(&mut reader);
            assert!(names(&reader) == deep.all());
        }
    }
}

#[test]
fn without_the_seam_outer_calls_are_missing() {
    // They are still there, or changed, too.
    for left in [3000, 3001, 6000, 8900] {
        let mut deep = Deep::new(Layout::R_4_4, 9000);
        let (memory, mut reader) = deep.r.reader();
        assert!(reader.read(Motion::Still).unwrap().is_some());
        let inner = deep.inner(3000);
        deep.leave(left);
        deep.enter(left, 4);
        deep.show(&memory);
        reader.finish().unwrap();
        assert_eq!(cut(&reader), Some(Cut::Late));
        assert!(names(&reader) == inner);
        assert_eq!(reader.stack().toplevel, None);
        // There is nothing to finish any more.
        deep.enter(1, 1);
        deep.show(&memory);
        reader.finish().unwrap();
        assert!(names(&reader) == inner);
        read_stopped(&mut reader);
        assert_eq!(cut(&reader), None);
        assert!(names(&reader) == deep.all());
    }
}

/// In between any two reads of what is read later.
#[test]
fn a_stack_that_changes_while_outer_calls_are_read_is_whole_or_marked() {
    let (depth, mut whole, mut marked) = (6000, 0, 0);
    for number in (0..4000).step_by(97) {
        let mut deep = Deep::new(Layout::R_4_4, depth);
        let (memory, mut reader) = deep.r.reader();
        assert!(reader.read(Motion::Still).unwrap().is_some());
        let (all, inner) = (deep.all(), deep.inner(3000));
        deep.leave(5000);
        deep.enter(5000, 2);
        let after = deep.r.space.clone();
        memory.before_read(move |space, reads| {
            if reads == number {
                *space = after.clone();
            }
        });
        reader.finish().unwrap();
        match cut(&reader) {
            None => {
                assert!(names(&reader) == all);
                whole += 1;
            }
            cut => {
                assert_eq!(cut, Some(Cut::Late));
                assert!(names(&reader) == inner);
                marked += 1;
            }
        }
    }
    assert!(whole > 5 && marked > 5, "{whole} {marked}");
}

#[test]
fn calls_that_were_replaced_are_read_again() {
    for (left, entered) in [
        (1, 1),
        (900, 900),
        (1500, 900),
        (4900, 4900),
        (4900, 10),
        (10, 1900),
    ] {
        let mut deep = Deep::new(Layout::R_4_2, 5000);
        let (memory, mut reader) = deep.r.reader();
        for step in [1, 2, 3] {
            for motion in [Motion::Free, Motion::Still] {
                read_in(motion, &mut reader);
                assert!(names(&reader) == deep.all(), "{left} {entered}");
            }
            let left = left.min(deep.stack.len() - 1);
            deep.leave(left);
            deep.enter(entered.min(6500 - deep.stack.len()), step);
            deep.show(&memory);
        }
    }
}

#[test]
fn a_single_known_call_does_not_prove_that_all_are_there() {
    let deep = Deep::new(Layout::R_4_4, 4000);
    let mut records = vec![deep.r.head];
    for _ in 1..4000 {
        records.push(deep.r.space.word(records[records.len() - 1] + NEXT));
    }
    let (memory, mut reader) = deep.r.reader();
    for _ in 0..2 {
        read_stopped(&mut reader);
    }
    let few = memory.reads();
    read_stopped(&mut reader);
    let few = memory.reads() - few;
    // The outermost call is another one.
    memory.change(|space| space.set(records[3999] + CLOENV, HEAP));
    let many = memory.reads();
    read_stopped(&mut reader);
    assert!(memory.reads() - many > few + 2000);
    assert!(names(&reader) == deep.all());
}

#[test]
fn objects_that_take_too_long_to_look_up_are_read_later() {
    // Each call is an object of its own, and has a place in another file.
    let depth = 2900;
    let mut r = FakeR::with(Layout::R_4_2, Hash::Gnu, 40 * depth);
    for number in 0..depth {
        let file = r.hashed_srcfile(&format!("{number}.R"));
        let srcref = r.srcref(1, file);
        let call = r.call_of(&format!("f{number}"));
        r.enter(call, At::Srcref(srcref));
    }
    let expected = r.frames();
    let (memory, mut reader) = r.reader();
    let before = memory.reads();
    let inner = reader.read(Motion::Still).unwrap().unwrap();
    let known = inner.frames.len();
    assert_eq!(inner.cut, Some(Cut::Late));
    assert!((400..2000).contains(&known), "{known}");
    assert!(memory.reads() - before < 16_000);
    reader.finish().unwrap();
    assert_eq!(cut(&reader), None);
    let again = frames(&mut reader).unwrap();
    assert!(again == expected);
}

/// A clock on which each look takes a microsecond.
fn slow() -> Moment {
    thread_local! {
        static LOOKS: Cell<u64> = const { Cell::new(0) };
        static START: Moment = Moment::now();
    }
    LOOKS.set(LOOKS.get() + 1);
    let passed = Duration::from_micros(LOOKS.get());
    let Moment { time, date } = START.with(|start| *start);
    Moment {
        time: time + passed,
        date: date + passed,
    }
}

#[test]
fn calls_that_are_looked_up_late_must_still_be_there() {
    // The hundred innermost calls are looked up in time.
    for (left, is_read) in [
        (0, true),
        (50, true),
        (90, true),
        (110, false),
        (150, false),
    ] {
        let mut deep = Deep::new(Layout::R_4_4, 150);
        let (memory, mut reader) = deep.r.reader();
        reader.set_clock(slow);
        reader.shortest_collection = Duration::from_micros(100);
        let expected = deep.all();
        deep.leave(left);
        deep.enter(left, 6);
        let read = reader.read_held(|| {
            deep.show(&memory);
            true
        });
        assert_eq!(read.unwrap().is_some(), is_read, "{left}");
        assert!(!is_read || names(&reader) == expected, "{left}");
    }
}

#[test]
fn deeper_stacks_are_cut_and_marked() {
    let mut deep = Deep::new(Layout::R_4_4, MOST_CALLS + 10);
    for motion in [Motion::Free, Motion::Asleep, Motion::Still] {
        let (memory, mut reader) = deep.r.reader();
        for _ in 0..2 {
            read_in(motion, &mut reader);
            assert_eq!(cut(&reader), Some(Cut::TooDeep));
            assert!(names(&reader) == deep.inner(MOST_CALLS));
        }
        deep.leave(9);
        deep.show(&memory);
        read_in(motion, &mut reader);
        assert_eq!(cut(&reader), Some(Cut::TooDeep));
        assert!(names(&reader) == deep.inner(MOST_CALLS));
        // The mark is removed when the stack is no longer too deep.
        deep.leave(1);
        deep.show(&memory);
        read_in(motion, &mut reader);
        assert_eq!(cut(&reader), None);
        assert!(names(&reader) == deep.all());
        deep.enter(10, 1);
    }
}

#[test]
fn too_many_loops_are_cut_as_well() {
    let depth = 3 * MOST_CALLS as u64 + 10;
    let mut r = FakeR::with(Layout::R_4_4, Hash::Gnu, depth);
    let (f, nil) = (r.call_of("f"), r.nil);
    r.enter(f, At::Nowhere);
    for _ in 0..depth - 2 {
        r.record(On::C, 1, nil, nil, At::Nowhere);
    }
    r.enter(f, At::Nowhere);
    assert_eq!(r.frames(), ["f", "..."]);
}
