//! Heaps of versions of R that do not exist: a new version is a row of figures, from which all else follows.

use super::rows::Rows;
use super::whole::{copied, snapshot};
use super::{FakeHeap, cases};
use crate::heap::copied::CopiedMemory;
use crate::heap::lists::Lists;
use profile_runtime::heap::Layout;

/// Cells have 64 bytes, so the structs of the heap, which contain some of them, are larger.
const LARGER_CELLS: Layout = Layout {
    since: (4, 7),
    class: 392,
    lists: &[(0, 32), (8, 96), (16, 160), (224, 240), (232, 304)],
    count: 376,
    page_count: 380,
    pages: 384,
    page: 16 + 124 * 64,
    page_start: 16,
    slots: &[64, 64, 80, 112, 176],
    classes: 7,
    ..Layout::ALL[0]
};
/// Pages are larger.
const LARGER_PAGES: Layout = Layout {
    since: (4, 8),
    page: 8 + 284 * 56,
    ..Layout::ALL[0]
};
/// One size of slots differs.
const LARGER_SLOTS: Layout = Layout {
    since: (4, 9),
    slots: &[56, 56, 64, 80, 112, 240],
    ..Layout::ALL[0]
};
static LAYOUTS: [Layout; 4] = [Layout::ALL[0], LARGER_CELLS, LARGER_PAGES, LARGER_SLOTS];

#[test]
fn the_layout_of_a_heap_is_found_by_its_memory() {
    for layout in &LAYOUTS {
        let mut heap = cases::filled(FakeHeap::laid_out(layout), true);
        heap.finish();
        let mut view = heap.view();
        let found = Lists::find(&mut view, &heap.r.variables, &LAYOUTS).unwrap();
        let found = found.unwrap();
        assert_eq!((found.address, found.layout), (heap.lists.address, layout));
    }
}

/// The paths of what something holds, and their numbers of objects. What nothing holds is found in the order of the slots.
fn held(heap: &mut FakeHeap) -> Vec<(String, u64)> {
    let rows = Rows::of(heap, 0);
    let paths = rows.paths().filter(|path| !path.starts_with("no holder"));
    paths
        .map(|path| (path.to_owned(), rows.get(path).1))
        .collect()
}

#[test]
fn heaps_have_the_same_objects_and_paths_in_each_layout() {
    let filled = |layout| cases::filled(FakeHeap::laid_out(layout), true);
    let known = held(&mut filled(&LAYOUTS[0]));
    for layout in &LAYOUTS {
        let mut heap = filled(layout);
        assert_eq!(held(&mut heap), known, "{:?}", layout.since);
        let direct = snapshot(&heap, &mut heap.view(), Some(0)).heap;
        assert_eq!((direct.wrong, direct.unmarked), (0, 0));
        let copied = copied(&heap).unwrap().unwrap();
        let copy = snapshot(&heap, &mut CopiedMemory(&copied), Some(0)).heap;
        assert_eq!(copy, direct);
    }
}
