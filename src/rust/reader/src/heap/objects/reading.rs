//! Reads R's lists of objects.

use super::{BUCKET, Block, NONE, Objects, PART};
use crate::heap::lists::damaged;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, filled};
use profile_runtime::cycle::Cycle;
use profile_runtime::heap::{CLASS, COUNT, FREE, HEADS, NEW, NEXT, PAGE, PAGE_COUNT, PAGES, SLOTS};
use profile_runtime::memory::View;
use profile_runtime::memory::{self, at, half_at};
use profile_runtime::node::{Node, needed};
use profile_runtime::objects::{CELL, DATA, SYMSXP, WEAKREFSXP};

/// More objects than R makes before it counts them.
const MOST_UNCOUNTED: u64 = 1000;

impl<'m> Objects<'m> {
    pub(super) fn read_pages(
        &mut self,
        memory: &mut impl View<'m>,
        head: &[u8; CLASS],
        class: usize,
    ) -> Result<()> {
        let mut address = at(head, PAGES);
        let start = self.pages.len();
        let mut cycle = Cycle::default();
        // R links a page before it counts it.
        for _ in 0..=half_at(head, PAGE_COUNT) {
            if address == 0 || cycle.has(address) {
                break;
            }
            let bytes = memory.view(address, PAGE).ok_or_else(damaged)?;
            self.pages.try_push(Block { address, bytes })?;
            address = at(bytes, 0);
        }
        if address != 0 {
            return Err(damaged());
        }
        // The order of the addresses, so that objects that were made together have close numbers.
        let pages = self.pages.get_mut(start..).unwrap_or_default();
        pages.sort_unstable_by_key(|page| page.address);
        let has_twice = pages.windows(2).any(|two| two[0].address == two[1].address);
        let slots = (pages.len() as u32).checked_mul(SLOTS[class].1);
        let count = slots.and_then(|slots| self.count.checked_add(slots));
        self.count = count.filter(|_| !has_twice).ok_or_else(damaged)?;
        self.first_page[class + 1] = self.pages.len() as u32;
        self.first[class + 1] = self.count;
        Ok(())
    }

    pub(super) fn index_pages(&mut self) -> Result<()> {
        for (number, page) in self.pages.iter().enumerate() {
            let last = page.address.saturating_add(PAGE as u64 - 1);
            for bucket in page.address >> BUCKET..=last >> BUCKET {
                let part = self.part_of.get_mut(bucket as usize / PART);
                let part = part.ok_or_else(damaged)?;
                if *part == NONE {
                    *part = self.parts.len() as u32;
                    self.parts.try_push(filled(PART, [NONE; 2])?)?;
                }
                let pages = &mut self.parts[*part as usize][bucket as usize % PART];
                let free = pages.iter_mut().find(|page| **page == NONE);
                *free.ok_or_else(damaged)? = number as u32;
            }
        }
        Ok(())
    }

    pub(super) fn read_large(
        &mut self,
        memory: &mut impl View<'m>,
        head: &[u8; CLASS],
    ) -> Result<()> {
        // The process may have been stopped while it made objects.
        let mut left = MOST_UNCOUNTED + u64::from(half_at(head, COUNT));
        for (pointer, _) in HEADS {
            let list = at(head, pointer);
            let first = memory::word(memory, list.wrapping_add(NEXT as u64));
            let mut address = first.ok_or_else(damaged)?;
            let mut cycle = Cycle::default();
            while address != list {
                if cycle.has(address) {
                    return Err(damaged());
                }
                let start = memory.view(address, CELL).ok_or_else(damaged)?;
                let size = usize::try_from(needed(Node::new(start))).unwrap_or(usize::MAX);
                let bytes = if size <= CELL {
                    start
                } else {
                    memory.view(address, size).ok_or_else(damaged)?
                };
                self.large.try_push(Block { address, bytes })?;
                address = at(bytes, NEXT);
                left = left.checked_sub(1).ok_or_else(damaged)?;
            }
        }
        Ok(())
    }

    pub(super) fn index_large(&mut self) -> Result<()> {
        self.large.sort_unstable_by_key(|block| block.address);
        self.large.dedup_by_key(|block| block.address);
        for block in &self.large {
            self.large_numbers.try_put(block.address, self.count)?;
            self.count = self.count.checked_add(1).ok_or_else(damaged)?;
        }
        Ok(())
    }

    /// Finds the objects in use of a class: those that were in use at the last garbage collection, and those that were
    /// made since, which are in the list of new objects up to the first free one.
    pub(super) fn find_used(&mut self, class: usize, head: &[u8; CLASS]) -> Result<()> {
        for number in self.first[class]..self.first[class + 1] {
            if self.node(number).is_marked() {
                self.use_(number)?;
            }
        }
        let (list, free) = (at(head, NEW), at(head, FREE));
        // The head of the list is not in a page.
        let mut address = at(head, (HEADS[2].1 as usize) + NEXT);
        let mut left = self.first[class + 1] - self.first[class];
        while address != free && address != list {
            let number = self.number(address).ok_or_else(damaged)?;
            if !self.is_used(number) {
                self.use_(number)?;
            }
            address = self.node(number).word(NEXT);
            left = left.checked_sub(1).ok_or_else(damaged)?;
        }
        Ok(())
    }

    pub(super) fn use_(&mut self, number: u32) -> Result<()> {
        let bit = 1 << (number % 64);
        if let Some(word) = self.used.get_mut(number as usize / 64) {
            *word |= bit;
        }
        self.used_count += 1;
        self.used_bytes = self.used_bytes.saturating_add(self.size(number));
        let node = self.node(number);
        if node.is_vector() && !node.is_altrep() {
            // The smallest slots have room for one unit, which an empty vector does not use.
            let room = if number < self.first[1] {
                0
            } else {
                self.size(number) - DATA as u64
            };
            self.data_bytes = self.data_bytes.saturating_add(room);
        }
        match node.type_() {
            SYMSXP => self.symbols.try_push(number),
            WEAKREFSXP => self.weak_references.try_push(number),
            _ => Ok(()),
        }
    }
}
