//! All objects of a heap: R's pages and the objects outside of them, each with a number. An address is the address of an
//! object only if it has a number, so addresses that were read can be followed safely.

use super::lists::class_at;
use profile_core::error::Result;
use profile_core::limits::memory::filled;
use profile_runtime::heap::{
    CLASSES, PAGE, PAGE_CLASSES, PAGE_START, SLOTS, page_and_slot, slot_at,
};
use profile_runtime::memory::View;
use profile_runtime::node::{Node, own_size};
use profile_runtime::objects::Type;
use profile_runtime::processor::ADDRESS_BITS;
use std::collections::HashMap;

mod reading;

/// A page, or an object outside of pages.
#[derive(Debug, Clone, Copy)]
pub struct Block<'m> {
    pub address: u64,
    pub bytes: &'m [u8],
}

type Numbers = HashMap<u64, u32, foldhash::fast::RandomState>;

/// No page in a bucket.
const NONE: u32 = u32::MAX;
/// A bucket of the directory has 4 KiB, so at most two pages reach into it.
const BUCKET: u32 = 12;
/// A part of the directory has buckets for 1 GiB.
const PART: usize = 1 << 18;
/// The number of parts.
const PARTS: usize = 1 << (ADDRESS_BITS - 30);

/// The objects of a heap. Objects of pages have the lower numbers, in the order of [`SLOTS`].
pub struct Objects<'m> {
    pages: Vec<Block<'m>>,
    /// The first page and the first number of each class, and the number after the last one.
    first_page: [u32; PAGE_CLASSES + 1],
    first: [u32; PAGE_CLASSES + 1],
    large: Vec<Block<'m>>,
    large_numbers: Numbers,
    /// The pages in each bucket, in parts, and for each GiB of addresses its part, or [`NONE`].
    parts: Vec<Vec<[u32; 2]>>,
    part_of: Vec<u32>,
    /// The number of slots in pages and objects outside of pages.
    pub count: u32,
    /// A bit for each object that is in use.
    used: Vec<u64>,
    pub used_count: u64,
    /// The bytes of the slots in use, and of the objects outside of pages.
    pub used_bytes: u64,
    /// The bytes that vectors among them have for data.
    pub data_bytes: u64,
    /// The address of `NULL`.
    pub nil: u64,
    /// All symbols and weak references in use.
    pub symbols: Vec<u32>,
    pub weak_references: Vec<u32>,
}

impl<'m> Objects<'m> {
    /// `heap` is the address of `R_GenHeap`, `nil` that of `NULL`.
    pub fn read(memory: &mut impl View<'m>, heap: u64, nil: u64) -> Result<Objects<'m>> {
        let mut objects = Objects {
            pages: Vec::new(),
            first_page: [0; PAGE_CLASSES + 1],
            first: [0; PAGE_CLASSES + 1],
            large: Vec::new(),
            large_numbers: HashMap::default(),
            parts: Vec::new(),
            part_of: filled(PARTS, NONE)?,
            count: 0,
            used: Vec::new(),
            used_count: 0,
            used_bytes: 0,
            data_bytes: 0,
            nil,
            symbols: Vec::new(),
            weak_references: Vec::new(),
        };
        for class in 0..PAGE_CLASSES {
            let head = class_at(memory, heap, class)?;
            objects.read_pages(memory, &head, class)?;
        }
        objects.index_pages()?;
        for class in PAGE_CLASSES..CLASSES {
            let head = class_at(memory, heap, class)?;
            objects.read_large(memory, &head)?;
        }
        objects.index_large()?;
        objects.used = filled((objects.count as usize).div_ceil(64), 0)?;
        for class in 0..PAGE_CLASSES {
            objects.find_used(class, &class_at(memory, heap, class)?)?;
        }
        for number in objects.first[PAGE_CLASSES]..objects.count {
            objects.use_(number)?;
        }
        Ok(objects)
    }

    /// Whether the object is in use, as far as R knows.
    pub fn is_used(&self, number: u32) -> bool {
        let word = self.used.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    /// The same for the object at an address; `false` if there is none.
    pub fn is_used_at(&self, address: u64) -> bool {
        let number = self.number(address);
        number.is_some_and(|number| self.is_used(number))
    }

    /// The number of the object at this address; `None` if there is no object.
    #[inline]
    pub fn number(&self, address: u64) -> Option<u32> {
        let bucket = (address >> BUCKET) as usize;
        let part = *self.part_of.get(bucket / PART)?;
        if let Some(buckets) = self.parts.get(part as usize) {
            for &page in &buckets[bucket % PART] {
                let Some(block) = self.pages.get(page as usize) else {
                    break;
                };
                let offset = address.wrapping_sub(block.address + PAGE_START as u64);
                if offset < (PAGE - PAGE_START) as u64 {
                    return self.slot(page, offset as u32);
                }
            }
        }
        self.large_numbers.get(&address).copied()
    }

    /// The number of the object at an offset from the first slot of a page.
    #[inline]
    fn slot(&self, page: u32, offset: u32) -> Option<u32> {
        let ends = self.first_page.get(1..PAGE_CLASSES).unwrap_or_default();
        let class = ends.iter().filter(|first| page >= **first).count();
        let slot = slot_at(class, offset)?;
        let page = page - self.first_page[class];
        Some(self.first[class] + page * SLOTS[class].1 + slot)
    }

    /// The class of an object in a page.
    #[inline]
    fn class(&self, number: u32) -> usize {
        let ends = self.first.get(1..PAGE_CLASSES).unwrap_or_default();
        ends.iter().filter(|first| number >= **first).count()
    }

    #[inline]
    fn place(&self, number: u32) -> (Block<'m>, usize, usize) {
        let empty = Block {
            address: 0,
            bytes: &[],
        };
        if let Some(large) = number.checked_sub(self.first[PAGE_CLASSES]) {
            let block = self.large.get(large as usize).copied();
            let block = block.unwrap_or(empty);
            return (block, 0, block.bytes.len());
        }
        let class = self.class(number);
        let (page, slot) = page_and_slot(class, number - self.first[class]);
        let page = self.pages.get((self.first_page[class] + page) as usize);
        let size = SLOTS[class].0;
        let start = PAGE_START + slot as usize * size;
        (page.copied().unwrap_or(empty), start, size)
    }

    #[inline]
    pub fn node(&self, number: u32) -> Node<'m> {
        let (block, start, size) = self.place(number);
        Node::new(block.bytes.get(start..start + size).unwrap_or_default())
    }

    pub fn address(&self, number: u32) -> u64 {
        let (block, start, _) = self.place(number);
        block.address + start as u64
    }

    /// The object at an address.
    pub fn at(&self, address: u64) -> Option<Node<'m>> {
        self.number(address).map(|number| self.node(number))
    }

    /// The object at an address, if it has this type.
    pub fn typed(&self, address: u64, type_: Type) -> Option<Node<'m>> {
        self.at(address).filter(|node| node.type_() == type_)
    }

    /// The number of bytes that an object takes.
    #[inline]
    pub fn size(&self, number: u32) -> u64 {
        if number < self.first[PAGE_CLASSES] {
            SLOTS[self.class(number)].0 as u64
        } else {
            own_size(self.node(number))
        }
    }

    /// The memory of pages and of objects outside of pages.
    pub fn bytes(&self) -> u64 {
        let pages = (self.pages.len() * PAGE) as u64;
        let large = self.first[PAGE_CLASSES]..self.count;
        large.fold(pages, |sum, number| sum.saturating_add(self.size(number)))
    }
}
