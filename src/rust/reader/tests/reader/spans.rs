//! The record of the active span: how it is found, and that it is of the same moment as the stack.

use crate::fake::module::{Hash, Module, SIZE, VARIABLES};
use crate::fake::process::{At, FakeR, MODULE};
use crate::fake::{FakeMemory, Space};
use profile_reader::stack::moment::Moment;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_reader::stack::spans::{SpanIds, VARIABLE};
use profile_runtime::contexts::Layout;
use profile_runtime::memory::Mapping;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// The library of the package, and the record in it.
const LIBRARY: u64 = MODULE + 0x100_0000;
const RECORD: u64 = LIBRARY + VARIABLES + 0x40;

fn record(trace: u8, span: u8, valid: u8) -> [u8; 32] {
    let mut record = [0; 32];
    record[..16].fill(trace);
    record[16..24].fill(span);
    record[24] = valid;
    record
}

fn ids(trace: u8, span: u8) -> Option<SpanIds> {
    Some(SpanIds {
        trace_id: [trace; 16],
        span_id: [span; 8],
    })
}

/// R in `f()`, and the mappings with the library.
fn with_library(hash: Hash) -> (FakeR, Vec<Mapping>) {
    let mut r = FakeR::new(Layout::R_4_4);
    let call = r.call_of("f");
    r.enter(call, At::Nowhere);
    let mut module = Module::new(LIBRARY, hash);
    module.variable("other", 0x10);
    module.variable(VARIABLE, RECORD - LIBRARY - VARIABLES);
    module.lay_out(&mut r.space);
    let mut mappings = r.mappings();
    mappings.push(Mapping {
        addresses: LIBRARY..LIBRARY + SIZE,
        starts_file: true,
    });
    (r, mappings)
}

fn span(reader: &mut StackReader<FakeMemory>, motion: Motion) -> Option<SpanIds> {
    reader.read(motion).unwrap().unwrap().span
}

#[test]
fn the_record_is_found_and_read_with_each_stack() {
    for hash in [Hash::Gnu, Hash::SystemV] {
        let (mut r, mappings) = with_library(hash);
        r.space.write(RECORD, &record(1, 2, 1));
        let (memory, mut reader) = r.reader();
        for motion in [Motion::Still, Motion::Free] {
            // Nobody has looked for it.
            assert_eq!(span(&mut reader, motion), None);
        }
        // The library is not loaded yet.
        assert!(!reader.find_span(&r.mappings()).unwrap());
        assert_eq!(span(&mut reader, Motion::Free), None);
        assert!(reader.find_span(&mappings).unwrap());
        for (now, expected) in [
            (record(1, 2, 1), ids(1, 2)),
            (record(3, 4, 1), ids(3, 4)),
            (record(3, 4, 0), None),
            (record(3, 4, 2), None),
            (record(0, 4, 1), None),
            (record(3, 0, 1), None),
            (record(5, 6, 1), ids(5, 6)),
        ] {
            memory.change(|space| space.write(RECORD, &now));
            for motion in [Motion::Still, Motion::Free] {
                assert_eq!(span(&mut reader, motion), expected);
            }
        }
    }
}

#[test]
fn the_span_and_the_stack_are_of_one_moment() {
    let (mut r, mappings) = with_library(Hash::Gnu);
    r.space.write(RECORD, &record(1, 2, 1));
    let mut later = r.clone();
    let call = later.call_of("g");
    later.enter(call, At::Nowhere);
    later.space.write(RECORD, &record(3, 4, 1));
    let mut seen = [0; 2];
    for number in 0..30 {
        let (memory, mut reader) = r.reader();
        assert!(reader.find_span(&mappings).unwrap());
        reader.plan().unwrap();
        let after = later.space.clone();
        memory.before_read(move |space, reads| {
            if reads == number {
                *space = after.clone();
            }
        });
        let stack = reader.read(Motion::Free).unwrap().unwrap();
        let (span, calls) = (stack.span, stack.frames.len());
        let is_late = span == ids(3, 4);
        assert_eq!(
            (span, calls),
            if is_late {
                (ids(3, 4), 2)
            } else {
                (ids(1, 2), 1)
            }
        );
        seen[usize::from(is_late)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 5, "{seen:?}");
}

thread_local! {
    /// How often the clock was read, which is the time in seconds.
    static TIME: Cell<u64> = const { Cell::new(0) };
    /// What happens after it was read that often.
    static NEXT: RefCell<Option<(u64, FakeMemory, Space)>> = const { RefCell::new(None) };
    static START: Moment = Moment::now();
}

/// A thread that reads the clock may have to wait for a processor before it goes on.
fn clock() -> Moment {
    let time = TIME.replace(TIME.get() + 1);
    NEXT.with_borrow(|next| {
        if let Some((_, memory, after)) = next.as_ref().filter(|next| next.0 == time) {
            memory.change(|space| *space = after.clone());
        }
    });
    let passed = Duration::from_secs(time);
    START.with(|start| Moment {
        time: start.time + passed,
        date: start.date + passed,
    })
}

#[test]
fn the_time_of_a_stack_is_one_at_which_it_was_active() {
    let (mut r, mappings) = with_library(Hash::Gnu);
    r.space.write(RECORD, &record(1, 2, 1));
    let mut later = r.clone();
    later.space.write(RECORD, &record(3, 4, 1));
    let mut seen = [0; 2];
    for number in 0..8 {
        let (memory, mut reader) = r.reader();
        assert!(reader.find_span(&mappings).unwrap());
        TIME.set(0);
        NEXT.set(Some((number, memory, later.space.clone())));
        reader.set_clock(clock);
        let is_late = span(&mut reader, Motion::Free) == ids(3, 4);
        let passed = START.with(|start| reader.moment().time - start.time);
        assert_eq!(passed > Duration::from_secs(number), is_late, "{number}");
        seen[usize::from(is_late)] += 1;
    }
    assert!(seen[0] > 1 && seen[1] > 1, "{seen:?}");
}

#[test]
fn a_library_that_is_unloaded_is_no_error() {
    let (mut r, mappings) = with_library(Hash::Gnu);
    r.space.write(RECORD, &record(1, 2, 1));
    let (memory, mut reader) = r.reader();
    assert!(reader.find_span(&mappings).unwrap());
    memory.change(|space| space.hide(LIBRARY..LIBRARY + SIZE));
    for motion in [Motion::Still, Motion::Free] {
        assert_eq!(span(&mut reader, motion), None);
    }
}
