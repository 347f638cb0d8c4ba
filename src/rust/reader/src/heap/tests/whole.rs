//! Whole snapshots.

use super::counting::memory_of;
use super::fake::HEAP;
use super::{FakeHeap, cases};
use crate::heap::copied::{Copied, CopiedMemory};
use crate::heap::copying::copy;
use crate::heap::resident::Resident;
use crate::heap::snapshot::{About, Snapshot, take};
use profile_core::error::Result;
use profile_core::model::{Profile, Source};
use profile_runtime::heap::NEXT;
use profile_runtime::memory::View;
use profile_runtime::objects::LENGTH;

const RESIDENT: u64 = 1 << 30;

pub fn snapshot<'m>(heap: &FakeHeap, memory: &mut impl View<'m>, least: Option<u64>) -> Snapshot {
    taken(heap, memory, least).unwrap()
}

pub fn taken<'m>(
    heap: &FakeHeap,
    memory: &mut impl View<'m>,
    least: Option<u64>,
) -> Result<Snapshot> {
    let about = About {
        r: &heap.r,
        known: &heap.known,
        lists: &heap.lists,
        libraries: &heap.libraries,
        resident: &Resident::Size(RESIDENT),
        unheld: profile_core::model::heap::NO_HOLDER,
        least,
    };
    take(memory, &about, Profile::default(), Source::default())
}

fn finished() -> FakeHeap {
    let mut heap = cases::with_everything(false);
    heap.finish();
    heap
}

#[test]
fn all_memory_is_in_the_samples() {
    let heap = finished();
    for least in [None, Some(0), Some(100), Some(u64::MAX)] {
        let taken = snapshot(&heap, &mut heap.view(), least);
        let [bytes, objects] = [0, 1].map(|row| {
            let values = &taken.profile.values[row];
            let count = taken.profile.samples.stack.len();
            assert_eq!(values.column.len(), count);
            values.column.iter().sum::<f64>() as u64
        });
        assert_eq!(bytes, RESIDENT);
        assert_eq!(objects, taken.heap.objects);
        assert_eq!((taken.heap.wrong, taken.heap.unmarked), (0, 0));
        assert!(taken.heap.unheld > 0);
    }
}

pub fn copied(heap: &FakeHeap) -> Result<Option<Copied>> {
    copied_while(heap, false)
}

pub fn copied_while(heap: &FakeHeap, may_collect: bool) -> Result<Option<Copied>> {
    let (r, libraries) = (&heap.r, &heap.libraries);
    let mappings = heap.space.mappings();
    copy(
        &mut heap.view(),
        &mappings,
        r,
        &heap.known,
        &heap.lists,
        libraries,
        may_collect,
    )
}

#[test]
fn a_copy_has_the_same_snapshot() {
    for has_table_in_variables in [false, true] {
        check_copy(has_table_in_variables);
    }
}

fn check_copy(has_table_in_variables: bool) {
    let mut heap = cases::with_everything(has_table_in_variables);
    heap.finish();
    let copied = copied(&heap).unwrap().unwrap();
    let copy = snapshot(&heap, &mut CopiedMemory(&copied), Some(0));
    let direct = snapshot(&heap, &mut heap.view(), Some(0));
    assert_eq!(copy.heap, direct.heap);
    let count = |taken: &Snapshot| taken.profile.samples.stack.len();
    assert_eq!(count(&copy), count(&direct));
}

#[test]
fn more_roots_than_steps_do_not_take_forever() {
    let mut heap = FakeHeap::new();
    for number in 0..5000 {
        heap.namespace(&format!("package{number}"));
    }
    heap.finish();
    let taken = snapshot(&heap, &mut heap.view(), None);
    assert!(taken.profile.samples.stack.len() > 5000);
}

/// What cannot be read if a heap is copied, which must not take much memory.
fn refused(heap: &FakeHeap) -> String {
    let (copied, memory) = memory_of(|| copied(heap));
    assert!(memory < 64 << 20, "{memory}");
    let error = copied.err().unwrap().to_string();
    let part = error.strip_prefix("Its heap cannot be read: ");
    let part = part.and_then(|part| part.strip_suffix(" is damaged, or R was changing it."));
    part.unwrap_or(&error).to_owned()
}

#[test]
fn endless_lists_are_not_copied() {
    let all = u32::MAX.to_le_bytes();
    let mut heap = finished();
    let layout = heap.lists.layout;
    let page = heap.word(HEAP, layout.pages);
    heap.space.set(page, page);
    heap.space.write(HEAP + layout.page_count as u64, &all);
    assert_eq!(refused(&heap), "the list of pages of class 0");

    let mut heap = finished();
    let class = heap.class(layout.classes - 1);
    let large = heap.word(heap.word(class, layout.lists[0].0), NEXT);
    heap.set(large, NEXT, large);
    heap.space.write(class + layout.count as u64, &all);
    assert_eq!(refused(&heap), "the list of objects of class 7");

    let mut heap = finished();
    let head = heap.space.word(heap.r.head.addresses()[0]);
    heap.space.set(head, head);
    assert_eq!(refused(&heap), "the list of calls");
}

#[test]
fn a_damaged_length_takes_no_memory() {
    for length in [1 << 20, 1 << 31, 1 << 40, 1 << 61, u64::MAX] {
        let mut heap = FakeHeap::new();
        let nil = heap.known.nil;
        let list = heap.list(&[nil; 100]);
        heap.define_global("x", list);
        heap.finish();
        assert!(copied(&heap).is_ok());
        heap.set(list, LENGTH, length);
        let part = format!("the object at {list:#x}");
        assert_eq!(refused(&heap), part, "{length}");
    }
}
