//! R's heap: where R keeps its objects (`memory.c`).
//!
//! Small objects are in the slots of pages, which have one size of slots each. All others have memory of their own.
//! `R_GenHeap`, a variable of R that it does not export, has a struct for each size: circular lists of the objects, whose
//! heads are objects inside the struct, and a list of the pages.

/// The number of structs, and of those whose objects are in pages.
pub const CLASSES: usize = 8;
pub const PAGE_CLASSES: usize = 6;
/// The size of a struct.
pub const CLASS: usize = 352;
/// The heads of lists: the offset of the pointer, and the offset of the head that it points to when R starts, and always
/// after that. They are two generations of old objects, new objects, and old objects that refer to new ones.
pub const HEADS: [(usize, u64); 5] = [(0, 32), (8, 88), (16, 144), (200, 216), (208, 272)];
/// The head of the new objects, and the first new object that is free.
pub const NEW: usize = 16;
pub const FREE: usize = 24;
/// The numbers of objects and of pages, 4 bytes each.
pub const COUNT: usize = 336;
pub const PAGE_COUNT: usize = 340;
/// The first page. A page starts with the address of the next one.
pub const PAGES: usize = 344;

/// The size of a page, and of its start.
pub const PAGE: usize = 7960;
pub const PAGE_START: usize = 8;
/// The sizes of the slots of pages, and their numbers in a page.
pub const SLOTS: [(usize, u32); PAGE_CLASSES] = [
    (56, 142),
    (56, 142),
    (64, 124),
    (80, 99),
    (112, 71),
    (176, 45),
];

/// The next object in a list.
pub const NEXT: usize = 16;

/// The slot of a page at an offset from its first slot, in a class of objects; `None` if no slot starts there.
#[inline]
pub fn slot_at(class: usize, offset: u32) -> Option<u32> {
    // A division by a constant is much faster.
    let slot = match class {
        0 | 1 => offset / const { SLOTS[0].0 as u32 },
        2 => offset / const { SLOTS[2].0 as u32 },
        3 => offset / const { SLOTS[3].0 as u32 },
        4 => offset / const { SLOTS[4].0 as u32 },
        _ => offset / const { SLOTS[5].0 as u32 },
    };
    let (size, slots) = SLOTS[class];
    (slot * size as u32 == offset && slot < slots).then_some(slot)
}

/// The page and the slot of an object, given its number among those in pages of its class.
#[inline]
pub fn page_and_slot(class: usize, number: u32) -> (u32, u32) {
    let split = |slots| (number / slots, number % slots);
    match class {
        0 | 1 => split(const { SLOTS[0].1 }),
        2 => split(const { SLOTS[2].1 }),
        3 => split(const { SLOTS[3].1 }),
        4 => split(const { SLOTS[4].1 }),
        _ => split(const { SLOTS[5].1 }),
    }
}

// Classes 0 and 1 have the same slots, which the functions above use.
const _: () = assert!(SLOTS[0].0 == SLOTS[1].0 && SLOTS[0].1 == SLOTS[1].1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_by_their_offsets() {
        for (class, (size, slots)) in SLOTS.into_iter().enumerate() {
            for slot in 0..slots {
                let offset = slot * size as u32;
                assert_eq!(slot_at(class, offset), Some(slot));
                assert_eq!(slot_at(class, offset + 8), None);
                assert_eq!(page_and_slot(class, 3 * slots + slot), (3, slot));
            }
            assert_eq!(slot_at(class, slots * size as u32), None);
            assert!(PAGE_START + slots as usize * size <= PAGE);
        }
    }
}
