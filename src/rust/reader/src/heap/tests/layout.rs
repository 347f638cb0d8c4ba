//! Finds R's heap, and recognizes memory that is laid out in another way.

use super::fake::{HEAP, VARIABLES};
use super::{FakeHeap, cases};
use crate::heap::lists::Lists;
use crate::heap::objects::Objects;
use profile_runtime::heap::{Layout, NEXT};
use std::iter::once;
use std::ops::Range;

fn found(heap: &FakeHeap) -> Option<u64> {
    let found = Lists::find(&mut heap.view(), &heap.r.variables, Layout::ALL);
    found.unwrap().map(|lists| lists.address)
}

fn finished() -> FakeHeap {
    let mut heap = cases::with_everything(true);
    heap.finish();
    heap
}

#[test]
fn the_heap_is_found_by_its_heads() {
    assert_eq!(found(&finished()), Some(HEAP));
}

#[test]
fn a_heap_with_other_pointers_is_not_found() {
    let layout = &Layout::ALL[0];
    for class in 0..layout.classes {
        for &(pointer, head) in layout.lists {
            let mut heap = finished();
            let address = heap.class(class);
            heap.set(address, pointer, address + head as u64 + 8);
            assert_eq!(found(&heap), None, "class {class}, pointer at {pointer}");
        }
    }
}

#[test]
fn a_heap_that_ends_with_the_variables_is_found() {
    let mut heap = finished();
    let end = heap.lists.variable().end;
    heap.r.variables = once(VARIABLES..end).collect();
    assert_eq!(found(&heap), Some(HEAP));
    heap.r.variables = once(VARIABLES..end - 8).collect();
    assert_eq!(found(&heap), None);
}

#[test]
fn variables_that_cannot_be_read_have_no_heap() {
    let mut heap = finished();
    let reversed = Range {
        start: VARIABLES + 8,
        end: VARIABLES,
    };
    let wrong = [0..4096, reversed, u64::MAX - 4096..u64::MAX, 0..1 << 40];
    heap.r.variables = Vec::from(wrong);
    assert_eq!(found(&heap), None);
}

fn is_refused(heap: &FakeHeap) -> bool {
    Objects::read(&mut heap.view(), &heap.lists, heap.known.nil).is_err()
}

#[test]
fn endless_lists_are_refused_whatever_is_counted() {
    let mut heap = finished();
    assert!(!is_refused(&heap));
    let layout = heap.lists.layout;
    let page = heap.word(HEAP, layout.pages);
    heap.space.set(page, page);
    let all = u32::MAX.to_le_bytes();
    heap.space.write(HEAP + layout.page_count as u64, &all);
    assert!(is_refused(&heap));

    let mut heap = finished();
    let class = heap.class(layout.classes - 1);
    let head = heap.word(class, layout.lists[0].0);
    let large = heap.word(head, NEXT);
    assert_ne!(large, head);
    heap.set(large, NEXT, large);
    heap.space.write(class + layout.count as u64, &all);
    assert!(is_refused(&heap));
}
