//! Counts the memory that a thread allocates, to see that damaged lengths do not determine it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static USED: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most memory that a call has allocated at a time.
pub fn memory_of<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = USED.get();
    MOST.set(before);
    let result = call();
    let used = MOST.get().saturating_sub(before);
    (result, usize::try_from(used).unwrap_or(0))
}

// SAFETY: the system's allocator does everything.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.get().wrapping_add_unsigned(layout.size());
        USED.set(used);
        MOST.set(MOST.get().max(used));
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.set(USED.get().wrapping_sub_unsigned(layout.size()));
        // SAFETY: see above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
