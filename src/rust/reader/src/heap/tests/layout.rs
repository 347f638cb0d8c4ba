//! Finds R's heap, and recognizes memory that is laid out in another way.

use super::fake::{HEAP, VARIABLES};
use super::{FakeHeap, cases};
use crate::heap::lists::find;
use crate::heap::objects::Objects;
use profile_runtime::heap::{CLASS, CLASSES, COUNT, HEADS, NEXT, PAGE_COUNT, PAGES};
use std::iter::once;
use std::ops::Range;

fn found(heap: &FakeHeap) -> Option<u64> {
    find(&mut heap.view(), &heap.target.variables).unwrap()
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
    for class in 0..CLASSES {
        for (pointer, head) in HEADS {
            let mut heap = finished();
            let address = HEAP + (class * CLASS) as u64;
            heap.set(address, pointer, address + head + 8);
            assert_eq!(found(&heap), None, "class {class}, pointer at {pointer}");
        }
    }
}

#[test]
fn a_heap_that_ends_with_the_variables_is_found() {
    let mut heap = finished();
    let end = HEAP + (CLASS * CLASSES) as u64;
    heap.target.variables = once(VARIABLES..end).collect();
    assert_eq!(found(&heap), Some(HEAP));
    heap.target.variables = once(VARIABLES..end - 8).collect();
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
    heap.target.variables = Vec::from(wrong);
    assert_eq!(found(&heap), None);
}

fn is_refused(heap: &FakeHeap) -> bool {
    Objects::read(&mut heap.view(), HEAP, heap.known.nil).is_err()
}

#[test]
fn endless_lists_are_refused_whatever_is_counted() {
    let mut heap = finished();
    assert!(!is_refused(&heap));
    let page = heap.word(HEAP, PAGES);
    heap.space.set(page, page);
    heap.space
        .write(HEAP + PAGE_COUNT as u64, &u32::MAX.to_le_bytes());
    assert!(is_refused(&heap));

    let mut heap = finished();
    let class = HEAP + (CLASS * (CLASSES - 1)) as u64;
    let head = heap.word(class, HEADS[0].0);
    let large = heap.word(head, NEXT);
    assert_ne!(large, head);
    heap.set(large, NEXT, large);
    heap.space
        .write(class + COUNT as u64, &u32::MAX.to_le_bytes());
    assert!(is_refused(&heap));
}
