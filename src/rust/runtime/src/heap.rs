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
