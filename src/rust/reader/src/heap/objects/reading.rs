//! Reads R's lists of objects.

use super::{BUCKET, Block, NONE, Objects, PART};
use crate::heap::damage::{Damage, too_many_objects};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, filled};
use profile_runtime::allocation::{Chunk, HEADER};
use profile_runtime::cycle::Cycle;
use profile_runtime::heap::{Class, NEXT};
use profile_runtime::memory::{self, View, at};
use profile_runtime::node::{Node, needed};
use profile_runtime::objects::{CELL, SYMSXP, WEAKREFSXP};

/// More objects than R makes before it counts them.
const MOST_UNCOUNTED: u64 = 1000;

impl<'m> Objects<'m> {
    pub(super) fn read_pages(&mut self, memory: &mut impl View<'m>, class: &Class) -> Result<()> {
        let number = class.number();
        let mut address = class.pages();
        let start = self.pages.len();
        let mut cycle = Cycle::default();
        // R links a page before it counts it.
        for _ in 0..=class.page_count() {
            if address == 0 || cycle.has(address) {
                break;
            }
            let bytes = memory.view(address, self.page_size);
            let bytes = bytes.ok_or(Damage::Page(address))?;
            self.pages.try_push(Block {
                address,
                bytes,
                data: 0,
            })?;
            address = at(bytes, 0);
        }
        if address != 0 {
            return Err(Damage::Pages(number).into());
        }
        // The order of the addresses, so that objects that were made together have close numbers.
        let pages = self.pages.get_mut(start..).unwrap_or_default();
        pages.sort_unstable_by_key(|page| page.address);
        if pages.windows(2).any(|two| two[0].address == two[1].address) {
            return Err(Damage::Pages(number).into());
        }
        let slots = (pages.len() as u32).checked_mul(self.slots[number].count);
        let count = slots.and_then(|slots| self.count.checked_add(slots));
        self.count = count.ok_or_else(too_many_objects)?;
        // For the classes that follow as well, so that no object belongs to one that is not there.
        self.first_page[number + 1..].fill(self.pages.len() as u32);
        self.first[number + 1..].fill(self.count);
        Ok(())
    }

    pub(super) fn index_pages(&mut self) -> Result<()> {
        for (number, page) in self.pages.iter().enumerate() {
            let damage = Damage::Page(page.address);
            let last = page.address.saturating_add(self.page_size as u64 - 1);
            for bucket in page.address >> BUCKET..=last >> BUCKET {
                let part = self.part_of.get_mut(bucket as usize / PART);
                let part = part.ok_or(damage)?;
                if *part == NONE {
                    *part = self.parts.len() as u32;
                    self.parts.try_push(filled(PART, [NONE; 2])?)?;
                }
                let pages = &mut self.parts[*part as usize][bucket as usize % PART];
                let free = pages.iter_mut().find(|page| **page == NONE);
                *free.ok_or(damage)? = number as u32;
            }
        }
        Ok(())
    }

    pub(super) fn read_large(&mut self, memory: &mut impl View<'m>, class: &Class) -> Result<()> {
        let damage = Damage::Objects(class.number());
        // The process may have been stopped while it made objects.
        let mut left = MOST_UNCOUNTED + u64::from(class.count());
        for list in class.lists() {
            let mut address = list.first;
            let mut cycle = Cycle::default();
            while address != list.head {
                if cycle.has(address) {
                    return Err(damage.into());
                }
                let object = Damage::Object(address);
                let start = memory.view(address, CELL).ok_or(object)?;
                let size = usize::try_from(needed(Node::new(start))).unwrap_or(usize::MAX);
                let bytes = if size <= CELL {
                    start
                } else {
                    memory.view(address, size).ok_or(object)?
                };
                self.large.try_push(Block {
                    address,
                    bytes,
                    data: Node::new(bytes).data(),
                })?;
                address = at(bytes, NEXT);
                left = left.checked_sub(1).ok_or(damage)?;
            }
        }
        Ok(())
    }

    /// Finds the memory that objects outside of pages were given by `malloc()`, from the first one of these on.
    pub(super) fn find_sizes(&mut self, memory: &mut impl View<'m>, first: usize) {
        let large = self.large.get_mut(first..).unwrap_or_default();
        let mut chunk = |block: &Block| {
            let header = block.address.wrapping_sub(HEADER);
            Chunk::new(memory::word(memory, header).unwrap_or(0))
        };
        let mut is_fitting = |block: &&mut Block| chunk(block).is_of(Node::new(block.bytes));
        // With another allocator, what is before an object may look like a header by chance.
        let is_glibc = large.iter_mut().filter(&mut is_fitting).count() * 2 > large.len();
        for block in large {
            match chunk(block).data(Node::new(block.bytes)) {
                Some(data) if is_glibc => block.data = data,
                _ => self.unchecked += 1,
            }
        }
    }

    pub(super) fn index_large(&mut self) -> Result<()> {
        self.large.sort_unstable_by_key(|block| block.address);
        self.large.dedup_by_key(|block| block.address);
        for block in &self.large {
            self.large_numbers.try_put(block.address, self.count)?;
            self.count = self.count.checked_add(1).ok_or_else(too_many_objects)?;
        }
        Ok(())
    }

    /// Finds the objects in use of a class: those that were in use at the last garbage collection, and those that were
    /// made since, which are in the list of new objects up to the first free one.
    pub(super) fn find_used(&mut self, class: &Class) -> Result<()> {
        let numbers = self.first[class.number()]..self.first[class.number() + 1];
        for number in numbers.clone() {
            if self.node(number).is_marked() {
                self.use_(number)?;
            }
        }
        let damage = Damage::NewObjects(class.number());
        let list = class.new_objects();
        let mut address = list.first;
        let mut left = numbers.end - numbers.start;
        while address != class.free() && address != list.head {
            let number = self.number(address).ok_or(damage)?;
            if !self.is_used(number) {
                self.use_(number)?;
            }
            address = self.node(number).word(NEXT);
            left = left.checked_sub(1).ok_or(damage)?;
        }
        Ok(())
    }

    pub(super) fn use_(&mut self, number: u32) -> Result<()> {
        let bit = 1 << (number % 64);
        if let Some(word) = self.used.get_mut(number as usize / 64) {
            *word |= bit;
        }
        self.used_bytes = self.used_bytes.saturating_add(self.size(number));
        let node = self.node(number);
        if node.is_vector() && !node.is_altrep() {
            let data = if number < self.first_large() {
                self.slots[self.class(number)].data
            } else {
                self.large_data(number)
            };
            self.data_bytes = self.data_bytes.saturating_add(data);
        }
        match node.type_() {
            SYMSXP => self.symbols.try_push(number),
            WEAKREFSXP => self.weak_references.try_push(number),
            _ => Ok(()),
        }
    }
}
