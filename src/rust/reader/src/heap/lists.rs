//! Where R's heap is: R's lists of all objects, by their classes.

use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryGrow;
use profile_core::message;
use profile_runtime::heap::{CLASS, CLASSES, HEADS};
use profile_runtime::memory::{self, Memory, at};
use std::ops::Range;

/// Where R's heap is: the address of `R_GenHeap`.
pub fn find(memory: &mut impl Memory, variables: &[Range<u64>]) -> Result<Option<u64>> {
    let mut bytes = Vec::new();
    for range in variables {
        let size = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        if size > MOST_VARIABLES {
            continue;
        }
        bytes.clear();
        bytes.try_fill(size, 0)?;
        if !memory.read(range.start, &mut bytes) {
            continue;
        }
        let skipped = (range.start.wrapping_neg() % 8) as usize;
        for offset in (skipped..=size.saturating_sub(CLASS * CLASSES)).step_by(8) {
            let address = range.start + offset as u64;
            let fits = |class: usize| {
                let class = class * CLASS;
                HEADS.iter().all(|&(pointer, head)| {
                    at(&bytes, offset + class + pointer) == address + class as u64 + head
                })
            };
            if (0..CLASSES).all(fits) {
                return Ok(Some(address));
            }
        }
    }
    Ok(None)
}

/// More than R's variables take.
const MOST_VARIABLES: usize = 64 << 20;

/// The head of a class.
pub fn class_at(memory: &mut impl Memory, heap: u64, class: usize) -> Result<[u8; CLASS]> {
    let address = heap + (class * CLASS) as u64;
    memory::array(memory, address).ok_or_else(damaged)
}

pub fn damaged() -> Error {
    Error::Process(message!(
        "Its heap cannot be read: it is damaged, or R was changing it."
    ))
}
