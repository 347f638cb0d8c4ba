//! R's list of calls: its order, and errors in it.

use crate::fake::Space;
use crate::fake::process::{At, FakeR, NODE_STACK, On, STACK_END, TOPLEVEL, frames, variable};
use profile_reader::stack::reader::Motion;
use profile_runtime::contexts::{CALL, CALLFLAG, CLOSURE, Layout, NEXT, RECORD};
use profile_runtime::objects::{CAR, CELL};

/// Functions `a` to `f` on both stacks, and their records, outermost first.
fn nested(layout: Layout) -> (FakeR, Vec<u64>) {
    let mut r = FakeR::new(layout);
    let nil = r.nil;
    let stacks = [On::C, On::Node, On::C, On::Node, On::Node, On::C];
    let records = ["a", "b", "c", "d", "e", "f"].into_iter().zip(stacks);
    let records = records.map(|(name, on)| {
        let call = r.call_of(name);
        r.record(on, CLOSURE, call, nil, At::Nowhere)
    });
    let records = records.collect();
    (r, records)
}

#[test]
fn calls_on_both_stacks_are_found() {
    for layout in Layout::ALL {
        let (r, _) = nested(layout);
        assert_eq!(r.frames(), ["f", "e", "d", "c", "b", "a"]);
    }
}

#[test]
fn lists_that_break_the_order_are_not_taken() {
    let (r, records) = nested(Layout::R_4_4);
    let (memory, mut reader) = r.reader();
    let wild = [
        0,
        8,
        0x1000,
        u64::MAX,
        u64::MAX - 7,
        1 << 63,
        STACK_END,
        STACK_END - 64,
        r.nil,
        NODE_STACK - 8,
        NODE_STACK + 4,
        variable("R_GlobalContext"),
        TOPLEVEL + 8,
        TOPLEVEL - 8,
    ];
    for (number, &record) in records.iter().enumerate() {
        let next = r.space.word(record + NEXT);
        // Records on the same stack that are not further out, which results in cycles.
        let is_on_node_stack = |record| record < NODE_STACK + (1 << 20);
        let inner = records[number..].iter().copied();
        let inner = inner.filter(|&inner| is_on_node_stack(inner) == is_on_node_stack(record));
        for address in wild
            .into_iter()
            .chain(inner)
            .chain([record + 4, record - 8])
        {
            memory.change(|space| space.set(record + NEXT, address));
            let before = memory.reads();
            assert_eq!(frames(&mut reader), None, "{number}: {address:#x}");
            assert!(memory.reads() - before < 1000);
        }
        memory.change(|space| space.set(record + NEXT, next));
        assert_eq!(frames(&mut reader).unwrap().len(), 6);
    }
    // Cycles across both stacks.
    for (from, to) in [(0, 5), (1, 5), (2, 4), (1, 2), (0, 1), (3, 5)] {
        let next = r.space.word(records[from] + NEXT);
        memory.change(|space| space.set(records[from] + NEXT, records[to]));
        assert_eq!(frames(&mut reader), None, "{from} to {to}");
        memory.change(|space| space.set(records[from] + NEXT, next));
    }
}

#[test]
fn records_at_addresses_that_r_does_not_use_are_not_taken() {
    let (r, records) = nested(Layout::R_4_4);
    let (memory, mut reader) = r.reader();
    let mut record = [0; RECORD];
    assert!(r.space.read(records[5], &mut record));
    for offset in [8, 4, 1] {
        memory.change(|space| {
            space.write(records[5] - offset, &record);
            space.set(variable("R_GlobalContext"), records[5] - offset);
        });
        assert_eq!(frames(&mut reader).is_some(), offset == 8);
    }
}

#[test]
fn records_with_impossible_fields_are_not_taken() {
    let (r, records) = nested(Layout::R_4_4);
    let (memory, mut reader) = r.reader();
    for &record in &records {
        for (field, word) in [
            (CALLFLAG, 256),
            (CALLFLAG, u64::from(u32::MAX)),
            (CALL, 0),
            (CALL, 16),
            (CALL, u64::MAX),
        ] {
            let before = r.space.word(record + field);
            memory.change(|space| space.set(record + field, word));
            assert_eq!(frames(&mut reader), None);
            memory.change(|space| space.set(record + field, before));
        }
    }
    assert_eq!(frames(&mut reader).unwrap().len(), 6);
}

#[test]
fn the_place_of_a_call_is_used_again_by_another_one() {
    // The second call of a function has the same address as the first one, on the stacks and on the heap.
    let mut r = FakeR::new(Layout::R_4_4);
    let (f, g) = (r.call_of("f"), r.call_of("g"));
    r.enter(f, At::Nowhere);
    let (memory, mut reader) = r.reader();
    assert_eq!(frames(&mut reader).unwrap(), ["f"]);
    let cell = {
        let mut cell = [0; CELL];
        assert!(r.space.read(g, &mut cell));
        cell
    };
    memory.change(|space| space.write(f, &cell));
    assert_eq!(frames(&mut reader).unwrap(), ["g"]);
    memory.change(|space| space.set(f + CAR as u64, 0));
    assert_eq!(frames(&mut reader), None);
}

#[test]
fn it_is_said_which_part_of_a_stack_is_missing() {
    let (r, records) = nested(Layout::R_4_4);
    let (memory, mut reader) = r.reader();
    let mut why = |change: &dyn Fn(&mut Space)| {
        memory.change(|space| change(space));
        assert!(reader.read(Motion::Still).unwrap().is_none());
        let why = reader.why_missing().unwrap();
        memory.change(|space| *space = r.space.clone());
        why
    };
    let record = records[3];
    let call = r.space.word(record + CALL);
    let context = "the context of the caller of `e` cannot be read";
    assert_eq!(why(&|space| space.hide(record..record + 8)), context);
    // What is there is no context.
    assert_eq!(why(&|space| space.set(record + CALLFLAG, 1 << 20)), context);
    assert_eq!(
        why(&|space| space.hide(call..call + 8)),
        "the call of the caller of `e` is damaged"
    );
    assert_eq!(
        why(&|space| space.hide(records[5]..records[5] + 8)),
        "the context of the innermost function cannot be read"
    );
    let head = variable("R_GlobalContext");
    assert_eq!(
        why(&|space| space.hide(head..head + 8)),
        "R's variable `R_GlobalContext` cannot be read"
    );
}
