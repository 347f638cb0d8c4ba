//! All objects of a heap: R's pages and the objects outside of them, each with a number. An address is the address of an
//! object only if it has a number, so addresses that were read can be followed safely.

use super::lists::Lists;
use profile_core::error::Result;
use profile_core::limits::memory::filled;
use profile_runtime::heap::MOST_PAGE_CLASSES;
use profile_runtime::memory::View;
use profile_runtime::node::Node;
use profile_runtime::objects::DATA;
use profile_runtime::objects::Type;
use profile_runtime::processor::ADDRESS_BITS;
use profile_runtime::slots::Slots;
use std::collections::HashMap;
use std::ops::Range;

mod reading;

/// A page, or an object outside of pages.
#[derive(Debug, Clone, Copy)]
pub struct Block<'m> {
    pub address: u64,
    pub bytes: &'m [u8],
    /// The bytes of the object's data, if it is one outside of pages.
    pub data: u64,
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

/// The objects of a heap. Objects of pages have the lower numbers, in the order of their classes.
pub struct Objects<'m> {
    pages: Vec<Block<'m>>,
    page_size: usize,
    page_start: usize,
    /// The slots of the pages of each class.
    slots: [Slots; MOST_PAGE_CLASSES],
    /// The first page and the first number of each class, and the number after the last one.
    first_page: [u32; MOST_PAGE_CLASSES + 1],
    first: [u32; MOST_PAGE_CLASSES + 1],
    large: Vec<Block<'m>>,
    large_numbers: Numbers,
    /// The pages in each bucket, in parts, and for each GiB of addresses its part, or [`NONE`].
    parts: Vec<Vec<[u32; 2]>>,
    part_of: Vec<u32>,
    /// The number of slots in pages and objects outside of pages.
    pub count: u32,
    /// A bit for each object that is in use.
    used: Vec<u64>,
    /// The bytes of the slots in use, and of the objects outside of pages.
    pub used_bytes: u64,
    /// The bytes that vectors among them have for data.
    pub data_bytes: u64,
    /// The number of vectors that may have more memory than their length tells, since it is not glibc's.
    pub unchecked: u64,
    /// The address of `NULL`.
    pub nil: u64,
    /// All symbols and weak references in use.
    pub symbols: Vec<u32>,
    pub weak_references: Vec<u32>,
}

impl<'m> Objects<'m> {
    /// `nil` is the address of `NULL`.
    pub fn read(memory: &mut impl View<'m>, lists: &Lists, nil: u64) -> Result<Objects<'m>> {
        let layout = lists.layout;
        let mut objects = Objects {
            pages: Vec::new(),
            page_size: layout.page,
            page_start: layout.page_start,
            slots: layout.all_slots(),
            first_page: [0; MOST_PAGE_CLASSES + 1],
            first: [0; MOST_PAGE_CLASSES + 1],
            large: Vec::new(),
            large_numbers: HashMap::default(),
            parts: Vec::new(),
            part_of: filled(PARTS, NONE)?,
            count: 0,
            used: Vec::new(),
            used_bytes: 0,
            data_bytes: 0,
            unchecked: 0,
            nil,
            symbols: Vec::new(),
            weak_references: Vec::new(),
        };
        for class in layout.page_classes() {
            let class = lists.class(memory, class)?;
            objects.read_pages(memory, &class)?;
        }
        objects.index_pages()?;
        for class in layout.large_classes() {
            let first = objects.large.len();
            let class = lists.class(memory, class)?;
            objects.read_large(memory, &class)?;
            if class.number() == layout.malloc_class() {
                objects.find_sizes(memory, first);
            }
        }
        objects.index_large()?;
        objects.used = filled((objects.count as usize).div_ceil(64), 0)?;
        for class in layout.page_classes() {
            objects.find_used(&lists.class(memory, class)?)?;
        }
        for number in objects.first_large()..objects.count {
            objects.use_(number)?;
        }
        Ok(objects)
    }

    /// The number of the first object outside of pages.
    #[inline]
    fn first_large(&self) -> u32 {
        self.first[MOST_PAGE_CLASSES]
    }

    /// Whether the object is in use, as far as R knows.
    pub fn is_used(&self, number: u32) -> bool {
        let word = self.used.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    /// Whether there is an object in use at an address.
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
                let first = block.address.wrapping_add(self.page_start as u64);
                let offset = address.wrapping_sub(first);
                if offset < (self.page_size - self.page_start) as u64 {
                    return self.slot(page, offset as u32);
                }
            }
        }
        self.large_numbers.get(&address).copied()
    }

    /// The number of the object at an offset from the first slot of a page.
    #[inline]
    fn slot(&self, page: u32, offset: u32) -> Option<u32> {
        let ends = self
            .first_page
            .get(1..MOST_PAGE_CLASSES)
            .unwrap_or_default();
        let class = ends.iter().filter(|first| page >= **first).count();
        let slots = &self.slots[class];
        let slot = slots.at(offset)?;
        let page = page - self.first_page[class];
        Some(self.first[class] + page * slots.count + slot)
    }

    /// The class of an object in a page.
    #[inline]
    fn class(&self, number: u32) -> usize {
        let ends = self.first.get(1..MOST_PAGE_CLASSES).unwrap_or_default();
        ends.iter().filter(|first| number >= **first).count()
    }

    #[inline]
    fn place(&self, number: u32) -> (Block<'m>, usize, usize) {
        let empty = Block {
            address: 0,
            bytes: &[],
            data: 0,
        };
        if let Some(large) = number.checked_sub(self.first_large()) {
            let block = self.large.get(large as usize).copied();
            let block = block.unwrap_or(empty);
            return (block, 0, block.bytes.len());
        }
        let class = self.class(number);
        let slots = &self.slots[class];
        let (page, slot) = slots.page_and_slot(number - self.first[class]);
        let page = self.pages.get((self.first_page[class] + page) as usize);
        let start = self.page_start + (slot * slots.size) as usize;
        (page.copied().unwrap_or(empty), start, slots.size as usize)
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
        if number < self.first_large() {
            self.slots[self.class(number)].size.into()
        } else {
            (DATA as u64).saturating_add(self.large_data(number))
        }
    }

    /// The bytes of data of an object outside of pages.
    fn large_data(&self, number: u32) -> u64 {
        let large = number.wrapping_sub(self.first_large()) as usize;
        self.large.get(large).map_or(0, |block| block.data)
    }

    /// The addresses of pages and of objects outside of pages.
    pub fn blocks(&self) -> impl Iterator<Item = Range<u64>> {
        let pages = self.pages.iter().map(|page| (page, self.page_size as u64));
        let large = self.large.iter();
        let large = large.map(|block| (block, (DATA as u64).saturating_add(block.data)));
        pages
            .chain(large)
            .map(|(block, size)| block.address..block.address.saturating_add(size))
    }

    /// The memory of pages and of objects outside of pages.
    pub fn bytes(&self) -> u64 {
        let pages = (self.pages.len() * self.page_size) as u64;
        let large = self.first_large()..self.count;
        large.fold(pages, |sum, number| sum.saturating_add(self.size(number)))
    }
}
