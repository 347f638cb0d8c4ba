//! Owns the bytes that were read from files, so that sections and symbols can borrow them.

use std::cell::OnceCell;

/// A list of buffers. They are never moved or removed, so that they can be borrowed.
#[derive(Default)]
pub struct Files {
    first: OnceCell<Box<Kept>>,
}

struct Kept {
    bytes: Vec<u8>,
    next: OnceCell<Box<Kept>>,
}

impl Files {
    pub fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        let mut free = &self.first;
        while let Some(kept) = free.get() {
            free = &kept.next;
        }
        let kept = free.get_or_init(|| {
            Box::new(Kept {
                bytes,
                next: OnceCell::new(),
            })
        });
        &kept.bytes
    }
}
