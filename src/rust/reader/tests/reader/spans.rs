//! The record of the active span: how it is found, and that it is of the same moment as the stack.

use crate::fake::module::{Hash, Module, SIZE, VARIABLES};
use crate::fake::process::{At, FakeR, MODULE};
use crate::fake::{FakeMemory, Space};
use profile_core::analysis::label_frames::{OVERFLOW_KEY, SPAN_NAME};
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
    let stack = reader.read(motion).unwrap().unwrap();
    stack.span.map(|span| span.ids)
}

/// The key and the text of the label of a span.
fn label(reader: &mut StackReader<FakeMemory>, motion: Motion) -> Option<(&'static str, String)> {
    let stack = reader.read(motion).unwrap().unwrap();
    let (key, text) = stack.span?.label?;
    Some((key, reader.texts().get(text).to_owned()))
}

/// A record with an attribute.
fn named(key: u8, length: usize, text: &[u8]) -> Vec<u8> {
    let mut record = record(1, 2, 1).to_vec();
    record.truncate(28);
    record.extend([key, u8::try_from(length).unwrap()]);
    record.extend(text);
    record
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
        let (span, calls) = (stack.span.map(|span| span.ids), stack.frames.len());
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

#[test]
fn the_name_of_a_span_is_read_as_far_as_it_is_one() {
    let (mut r, mappings) = with_library(Hash::Gnu);
    r.space.write(RECORD, &record(1, 2, 1));
    let (memory, mut reader) = r.reader();
    assert!(reader.find_span(&mappings).unwrap());
    let longest = "x".repeat(255);
    let longest = longest.as_str();
    let name = |text| Some((SPAN_NAME, text));
    let cases = [
        (named(0, 0, b"rest of a longer name"), None),
        (named(0, 2, b"ab, and the rest"), name("ab")),
        (named(0, 5, b"GET /a"), name("GET /")),
        (named(0, 100, longest.as_bytes()), name(&longest[..100])),
        (named(0, 101, longest.as_bytes()), name(&longest[..101])),
        (named(0, 255, longest.as_bytes()), name(longest)),
        (named(1, 9, b"span.name"), Some((OVERFLOW_KEY, "span.name"))),
        (named(0, 5, b"caf\xc3\xa9"), name("café")),
        // Without valid UTF-8, it is read as Windows-1252.
        (named(0, 4, b"\xc3\xa9\xe9a"), name("Ã©éa")),
        (named(0, 3, b"a\0b"), name("a<00>b")),
        // There are two keys.
        (named(2, 2, b"ab"), None),
    ];
    for (now, expected) in cases {
        memory.change(|space| space.write(RECORD, &now));
        for motion in [Motion::Still, Motion::Free] {
            let expected = expected.map(|(key, text)| (key, text.to_owned()));
            assert_eq!(label(&mut reader, motion), expected);
            assert_eq!(span(&mut reader, motion), ids(1, 2));
        }
    }
    // Without a span, its name does not count.
    memory.change(|space| space.write(RECORD + 24, &[0]));
    memory.change(|space| space.write(RECORD + 28, &[0]));
    assert_eq!(label(&mut reader, Motion::Free), None);
}

#[test]
fn a_name_that_ends_outside_of_the_memory_is_left_out() {
    let (mut r, mappings) = with_library(Hash::Gnu);
    r.space.write(RECORD, &named(0, 200, &[b'x'; 200]));
    let (memory, mut reader) = r.reader();
    assert!(reader.find_span(&mappings).unwrap());
    assert!(label(&mut reader, Motion::Free).is_some());
    memory.change(|space| space.hide(RECORD + 100..RECORD + 300));
    for motion in [Motion::Still, Motion::Free] {
        assert_eq!(label(&mut reader, motion), None);
        assert_eq!(span(&mut reader, motion), ids(1, 2));
    }
}

#[test]
fn the_name_and_the_ids_are_of_one_moment() {
    let (mut r, mappings) = with_library(Hash::Gnu);
    r.space.write(RECORD, &named(0, 40, &[b'a'; 40]));
    let mut later = r.space.clone();
    later.write(RECORD, &named(0, 40, &[b'b'; 40]));
    later.write(RECORD, &[3; 24]);
    let mut seen = [0; 2];
    for number in 0..30 {
        let (memory, mut reader) = r.reader();
        assert!(reader.find_span(&mappings).unwrap());
        reader.plan().unwrap();
        let after = later.clone();
        memory.before_read(move |space, reads| {
            if reads == number {
                *space = after.clone();
            }
        });
        let span = reader.read(Motion::Free).unwrap().unwrap().span.unwrap();
        let name = span
            .label
            .map(|(_, text)| reader.texts().get(text).to_owned());
        let is_late = span.ids.trace_id == [3; 16];
        let expected = if is_late { "b" } else { "a" }.repeat(40);
        assert_eq!(name, Some(expected), "{number}");
        seen[usize::from(is_late)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 2, "{seen:?}");
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
