//! Where R's heap is: R's lists of all objects, by their classes.

use super::damage::Damage;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::heap::{Class, Layout};
use profile_runtime::memory::Memory;
use std::ops::Range;

/// The lists of a process: the address of `R_GenHeap`, and its layout.
#[derive(Debug, Clone, Copy)]
pub struct Lists {
    pub address: u64,
    pub layout: &'static Layout,
}

/// More than the variables of R or of a library take.
pub const MOST_VARIABLES: u64 = 64 << 20;

impl Lists {
    /// Finds the lists among R's variables; `layouts` are those that are known.
    pub fn find(
        memory: &mut impl Memory,
        variables: &[Range<u64>],
        layouts: &'static [Layout],
    ) -> Result<Option<Lists>> {
        let mut bytes = Vec::new();
        for range in variables {
            let size = range.end.saturating_sub(range.start);
            if size > MOST_VARIABLES {
                continue;
            }
            let size = size as usize;
            bytes.clear();
            bytes.try_fill(size, 0)?;
            if !memory.read(range.start, &mut bytes) {
                continue;
            }
            let skipped = (range.start.wrapping_neg() % 8) as usize;
            for offset in (skipped..size).step_by(8) {
                let address = range.start + offset as u64;
                let bytes = bytes.get(offset..).unwrap_or_default();
                let fitting = layouts.iter().filter(|layout| layout.fits(bytes, address));
                if let Some(layout) = best(memory, address, fitting) {
                    return Ok(Some(Lists { address, layout }));
                }
            }
        }
        Ok(None)
    }

    /// The range of `R_GenHeap`.
    pub fn variable(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.layout.size() as u64)
    }

    /// The struct of a class.
    pub fn class(&self, memory: &mut impl Memory, class: usize) -> Result<Class> {
        let found = self.layout.class_at(memory, self.address, class);
        found.ok_or_else(|| Damage::Class(class).into())
    }
}

/// The layout that fits a heap best. Several do if only sizes of pages or slots distinguish them.
fn best(
    memory: &mut impl Memory,
    heap: u64,
    mut fitting: impl Iterator<Item = &'static Layout>,
) -> Option<&'static Layout> {
    let first = fitting.next()?;
    let Some(second) = fitting.next() else {
        return Some(first);
    };
    let all = [first, second].into_iter().chain(fitting);
    all.max_by_key(|layout| layout.fitting_slots(memory, heap))
}
