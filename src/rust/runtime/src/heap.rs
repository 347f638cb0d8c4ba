//! R's heap: where R keeps its objects (`memory.c`).
//!
//! Small objects are in the slots of pages, which have one size of slots each. All others have memory of their own.
//! `R_GenHeap`, a variable of R that it does not export, has a struct for each class of sizes: circular lists of the
//! objects, whose heads are objects inside the struct, and a list of the pages.

use crate::memory::{self, Memory, at, half_at};
use crate::objects::DATA;
use crate::slots::Slots;
use std::ops::Range;

/// The figures of the heap. [`Layout::ALL`] is the table of all versions; the row of a process is found by its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The first version of R with this layout: the first two numbers.
    pub since: (u32, u32),
    /// The number of structs (`NUM_NODE_CLASSES`), and the size of one.
    pub classes: usize,
    pub class: usize,
    /// The lists: the offset of the pointer to the head, and of the head that it points to when R starts, and always after
    /// that. They are `Old`, for each generation, `New` and `OldToNew`, old objects that refer to new ones.
    pub lists: &'static [(usize, usize)],
    /// The number of the list `New`, and the first object in it that is free (`Free`).
    pub new: usize,
    pub free: usize,
    /// The numbers of objects and of pages, 4 bytes each (`AllocCount`, `PageCount`).
    pub count: usize,
    pub page_count: usize,
    /// The first page (`pages`). A page starts with the address of the next one.
    pub pages: usize,
    /// The size of a page (`R_PAGE_SIZE`), and of its start (`PAGE_HEADER`).
    pub page: usize,
    pub page_start: usize,
    /// The sizes of the slots in pages, by class (`NODE_SIZE`). Objects of the other classes have memory of their own.
    pub slots: &'static [usize],
}

impl Layout {
    /// All versions of `R_GenHeap`; R 4.2 to 4.6 have the same one.
    pub const ALL: &'static [Layout] = &[Layout {
        since: (4, 2),
        classes: 8,
        class: 352,
        lists: &[(0, 32), (8, 88), (16, 144), (200, 216), (208, 272)],
        new: 2,
        free: 24,
        count: 336,
        page_count: 340,
        pages: 344,
        page: 7960,
        page_start: 8,
        slots: &[56, 56, 64, 80, 112, 176],
    }];

    /// The size of `R_GenHeap`.
    pub const fn size(&self) -> usize {
        self.class * self.classes
    }

    /// The classes of objects in pages, and of those with memory of their own.
    pub fn page_classes(&self) -> Range<usize> {
        0..self.slots.len()
    }

    pub fn large_classes(&self) -> Range<usize> {
        self.slots.len()..self.classes
    }

    /// The class of objects with memory by `malloc()` (`LARGE_NODE_CLASS`). Before it is the one of vectors with memory by
    /// an allocator of a package (`CUSTOM_NODE_CLASS`).
    pub const fn malloc_class(&self) -> usize {
        self.classes - 1
    }

    /// The size that `gc()` counts for each object (`sizeof(SEXPREC)`).
    pub fn cell(&self) -> u64 {
        self.slots.first().map_or(0, |size| *size as u64)
    }

    /// The slots of the pages of a class.
    pub const fn slots(&self, class: usize) -> Slots {
        let size = self.slots[class];
        // The smallest slots have room for a unit of data, which an empty vector does not use.
        let data = if class == 0 { 0 } else { size - DATA };
        Slots::new(size, (self.page - self.page_start) / size, data)
    }

    /// The slots of all classes. Classes beyond those that the version has have none.
    pub fn all_slots(&self) -> [Slots; MOST_PAGE_CLASSES] {
        let mut all = [Slots::default(); MOST_PAGE_CLASSES];
        for (class, slots) in self.page_classes().zip(&mut all) {
            *slots = self.slots(class);
        }
        all
    }

    /// Whether these bytes from an address on may be `R_GenHeap`: all pointers lead to the heads of their lists.
    pub fn fits(&self, bytes: &[u8], address: u64) -> bool {
        let mut places = (0..self.classes).flat_map(|class| {
            let lists = self.lists.iter();
            lists.map(move |(pointer, head)| (class * self.class, pointer, head))
        });
        bytes.len() >= self.size()
            && places.all(|(start, pointer, head)| {
                at(bytes, start + pointer) == address.wrapping_add((start + head) as u64)
            })
    }

    /// How well the slots of the first pages of the heap at an address fit: the number that hold an object of a list,
    /// less the number that do not.
    pub fn fitting_slots(&'static self, memory: &mut impl Memory, heap: u64) -> i64 {
        let mut sum = 0;
        for class in self.page_classes() {
            let page = self.class_at(memory, heap, class);
            let Some(page) = page.map(|class| class.pages()).filter(|page| *page != 0) else {
                continue;
            };
            let slots = self.slots(class);
            for slot in 0..u64::from(slots.count) {
                let start = self.page_start as u64 + slot * u64::from(slots.size);
                let is_listed = is_listed(memory, page.wrapping_add(start));
                sum += if is_listed { 1 } else { -1 };
            }
        }
        sum
    }

    /// Reads the struct of a class of the heap at an address.
    pub fn class_at(
        &'static self,
        memory: &mut impl Memory,
        heap: u64,
        class: usize,
    ) -> Option<Class> {
        let mut bytes = [0; MOST_CLASS];
        let address = heap.wrapping_add((class * self.class) as u64);
        let part = bytes.get_mut(..self.class)?;
        memory.read(address, part).then_some(Class {
            layout: self,
            number: class,
            bytes,
        })
    }
}

/// The next and the previous object in a list, in the header of an object (`gengc_next_node`, `gengc_prev_node`).
pub const NEXT: usize = 16;
pub const PREVIOUS: usize = 24;

/// Whether an object is in a list: the next one leads back to it.
fn is_listed(memory: &mut impl Memory, object: u64) -> bool {
    let next = memory::word(memory, object.wrapping_add(NEXT as u64));
    let back = next.and_then(|next| memory::word(memory, next.wrapping_add(PREVIOUS as u64)));
    back == Some(object)
}

/// The most classes of objects in pages in any version.
pub const MOST_PAGE_CLASSES: usize = 8;
/// More than the size of a struct in any version.
const MOST_CLASS: usize = 512;

/// The struct of a class that was read. Its fields may have any values.
#[derive(Debug, Clone, Copy)]
pub struct Class {
    layout: &'static Layout,
    number: usize,
    bytes: [u8; MOST_CLASS],
}

/// A circular list: the address of its head, which is no object of R, and of the first object.
#[derive(Debug, Clone, Copy)]
pub struct List {
    pub head: u64,
    pub first: u64,
}

impl Class {
    pub fn number(&self) -> usize {
        self.number
    }

    /// The lists of all objects.
    pub fn lists(&self) -> impl Iterator<Item = List> {
        self.layout.lists.iter().map(|list| self.list(*list))
    }

    /// The list of new objects.
    pub fn new_objects(&self) -> List {
        self.list(self.layout.lists[self.layout.new])
    }

    fn list(&self, (pointer, head): (usize, usize)) -> List {
        List {
            head: at(&self.bytes, pointer),
            first: at(&self.bytes, head + NEXT),
        }
    }

    /// The first object that is free in the list of new objects.
    pub fn free(&self) -> u64 {
        at(&self.bytes, self.layout.free)
    }

    /// The number of objects.
    pub fn count(&self) -> u32 {
        half_at(&self.bytes, self.layout.count)
    }

    /// The address of the first page.
    pub fn pages(&self) -> u64 {
        at(&self.bytes, self.layout.pages)
    }

    pub fn page_count(&self) -> u32 {
        half_at(&self.bytes, self.layout.page_count)
    }

    /// The bytes of all slots, or, of objects with memory of their own, the bytes of their headers.
    pub fn bytes_without_large_data(&self) -> u64 {
        if self.layout.page_classes().contains(&self.number) {
            let slots = self.layout.slots(self.number);
            u64::from(self.page_count()) * u64::from(slots.count * slots.size)
        } else {
            u64::from(self.count()) * DATA as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_by_their_offsets() {
        for layout in Layout::ALL {
            for class in layout.page_classes() {
                let slots = layout.slots(class);
                for slot in 0..slots.count {
                    let offset = slot * slots.size;
                    assert_eq!(slots.at(offset), Some(slot));
                    assert_eq!(slots.at(offset + 8), None);
                    assert_eq!(slots.page_and_slot(3 * slots.count + slot), (3, slot));
                }
                assert_eq!(slots.at(slots.count * slots.size), None);
            }
        }
    }

    #[test]
    fn layouts_have_room_for_their_parts() {
        for layout in Layout::ALL {
            assert!(layout.class <= MOST_CLASS && layout.slots.len() <= MOST_PAGE_CLASSES);
            assert!(layout.slots.len() < layout.classes && layout.new < layout.lists.len());
            // The slots of R 4.2 to 4.6, counted by R.
            let counts: Vec<u32> = layout
                .page_classes()
                .map(|class| layout.slots(class).count)
                .collect();
            if layout.since == (4, 2) {
                assert_eq!(counts, [142, 142, 124, 99, 71, 45]);
            }
        }
    }
}
