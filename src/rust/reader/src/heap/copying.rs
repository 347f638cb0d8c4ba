//! Copies R's heap, and what its roots need, while the process is stopped.
//!
//! As little as possible is done before the process goes on: memory is copied in large parts, and of data outside of
//! R's pages only the start. Everything else, such as checks, follows afterwards.

use super::copied::{Copied, Part};
use super::damage::Damage;
use super::known::Known;
use super::lists::{Lists, MOST_VARIABLES};
use super::roots::Library;
use crate::running_r::RunningR;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled};
use profile_runtime::allocation::HEADER;
use profile_runtime::contexts::Walk;
use profile_runtime::cycle::Cycle;
use profile_runtime::heap::{Class, NEXT};
use profile_runtime::memory::{MEMORY_PAGE, Mapping, Memory, at};
use profile_runtime::node::{Node, needed};
use profile_runtime::objects::CELL;
use std::ops::Range;

mod tables;

/// Pages are close together, so they are copied with what is around them.
const CHUNK: u64 = 1 << 20;
/// The bytes of a large object that are copied at once.
const LARGE_STEP: usize = 16 << 20;

struct Chunk {
    start: u64,
    end: u64,
    part: usize,
}

struct Copy<'c, M> {
    memory: &'c mut M,
    mappings: &'c [Mapping],
    copied: Copied,
    /// The parts with pages, in the order of their addresses, and the numbers of these parts.
    chunks: Vec<Chunk>,
}

/// Copies what a snapshot needs. `None` if R is just collecting garbage, unless
/// that `may_collect`.
pub fn copy(
    memory: &mut impl Memory,
    mappings: &[Mapping],
    r: &RunningR,
    known: &Known,
    lists: &Lists,
    libraries: &[Library],
    may_collect: bool,
) -> Result<Option<Copied>> {
    let mut copy = Copy {
        memory,
        mappings,
        copied: Copied::default(),
        chunks: Vec::new(),
    };
    // The roots change fastest.
    copy.records(r)?;
    copy.range(known.protected.clone())?;
    copy.range(r.node_stack.start..known.node_stack_top.min(r.node_stack.end))?;
    for class in lists.layout.large_classes() {
        let class = lists.class(copy.memory, class)?;
        let is_complete = copy.large(&class)?;
        if !is_complete && !may_collect {
            return Ok(None);
        }
    }
    for class in lists.layout.page_classes() {
        let class = lists.class(copy.memory, class)?;
        copy.pages(&class, lists.layout.page as u64)?;
    }
    copy.range(lists.variable())?;
    for library in libraries {
        for range in &library.variables {
            copy.range(range.clone())?;
        }
    }
    for range in &r.variables {
        let before = copy.copied.parts.len();
        copy.range(range.clone())?;
        copy.tables(before, &r.variables, known.release)?;
    }
    let mut copied = copy.copied;
    copied.drop_contained();
    Ok(Some(copied))
}

impl<M: Memory> Copy<'_, M> {
    fn range(&mut self, range: Range<u64>) -> Result<()> {
        let size = range.end.saturating_sub(range.start);
        if size == 0 || size > MOST_VARIABLES {
            return Ok(());
        }
        let mut bytes = filled(size as usize, 0)?;
        if self.memory.read(range.start, &mut bytes) {
            let address = range.start;
            return self.copied.parts.try_push(Part { address, bytes });
        }
        // A page of it may not be readable.
        let mut address = range.start;
        while address < range.end {
            let end = (address / MEMORY_PAGE + 1)
                .saturating_mul(MEMORY_PAGE)
                .min(range.end);
            let mut bytes = filled((end - address) as usize, 0)?;
            if self.memory.read(address, &mut bytes) {
                self.copied.parts.try_push(Part { address, bytes })?;
            }
            address = end;
        }
        Ok(())
    }

    fn records(&mut self, r: &RunningR) -> Result<()> {
        for &head in r.head.addresses() {
            self.range(head..head + 8)?;
        }
        let (_, innermost) = r.head.read(self.memory).ok_or(Damage::Calls)?;
        let mut walk = Walk::new(innermost);
        while let Some((address, record)) = walk.next(self.memory) {
            let mut bytes = Vec::new();
            bytes.try_extend(&record.0)?;
            self.copied.parts.try_push(Part { address, bytes })?;
            if let Some(place) = r.layout.and_then(|layout| layout.return_value) {
                let value = address.saturating_add(place);
                self.range(value..value.saturating_add(8))?;
            }
        }
        if walk.is_whole() {
            Ok(())
        } else {
            Err(Damage::Calls.into())
        }
    }

    fn pages(&mut self, class: &Class, size: u64) -> Result<()> {
        let mut address = class.pages();
        let mut cycle = Cycle::default();
        for _ in 0..=class.page_count() {
            if address == 0 {
                return Ok(());
            }
            if cycle.has(address) {
                break;
            }
            let next = self.page(address, size)?;
            address = next.ok_or(Damage::Page(address))?;
        }
        match address {
            0 => Ok(()),
            _ => Err(Damage::Pages(class.number()).into()),
        }
    }

    /// Makes sure that a page is copied. Returns the address of the next one; `None` if it cannot be read.
    fn page(&mut self, address: u64, size: u64) -> Result<Option<u64>> {
        let end = address.saturating_add(size);
        let after = self.chunks.partition_point(|chunk| chunk.start <= address);
        let known = after
            .checked_sub(1)
            .and_then(|before| self.chunks.get(before));
        if let Some(chunk) = known.filter(|chunk| end <= chunk.end) {
            let bytes = &self.copied.parts[chunk.part].bytes;
            return Ok(Some(at(bytes, (address - chunk.start) as usize)));
        }
        let mapping = self
            .mappings
            .iter()
            .find(|mapping| mapping.addresses.contains(&address));
        // The heap may have grown since the mappings were read.
        let (start, end) = match mapping {
            Some(mapping) if end <= mapping.addresses.end => {
                let chunk = address / CHUNK * CHUNK;
                let last = chunk.saturating_add(CHUNK + size);
                (
                    chunk.max(mapping.addresses.start),
                    last.min(mapping.addresses.end),
                )
            }
            _ => (address, end),
        };
        let mut bytes = filled((end - start) as usize, 0)?;
        if !self.memory.read(start, &mut bytes) {
            return Ok(None);
        }
        let next = at(&bytes, (address - start) as usize);
        let place = self.chunks.partition_point(|chunk| chunk.start <= start);
        let part = self.copied.parts.len();
        self.chunks.try_push(Chunk { start, end, part })?;
        if let Some(moved) = self.chunks.get_mut(place..) {
            moved.rotate_right(1);
        }
        self.copied.parts.try_push(Part {
            address: start,
            bytes,
        })?;
        Ok(Some(next))
    }

    /// Returns whether the lists have all objects. While R marks what is in use, it takes objects out of their lists.
    fn large(&mut self, class: &Class) -> Result<bool> {
        let damage = Damage::Objects(class.number());
        let count = u64::from(class.count());
        let before = self.copied.parts.len() as u64;
        // R may be just about to count an object.
        let mut left = count + 1;
        for list in class.lists() {
            let mut address = list.first;
            let mut cycle = Cycle::default();
            while address != list.head {
                if cycle.has(address) {
                    return Err(damage.into());
                }
                address = self.object(address)?;
                left = left.checked_sub(1).ok_or(damage)?;
            }
        }
        Ok(self.copied.parts.len() as u64 >= before + count)
    }

    /// Copies an object with memory of its own. Returns the address of the next one.
    fn object(&mut self, address: u64) -> Result<u64> {
        let damage = Damage::Object(address);
        let mut bytes = filled(HEADER as usize + CELL, 0)?;
        // With the header of its memory before it, in one call, since the process is stopped.
        let mut before = HEADER as usize;
        if !self.memory.read(address.wrapping_sub(HEADER), &mut bytes) {
            before = 0;
            bytes.truncate(CELL);
            if !self.memory.read(address, &mut bytes) {
                return Err(damage.into());
            }
        }
        let start = Node::new(bytes.get(before..).unwrap_or_default());
        let next = start.word(NEXT);
        let size = usize::try_from(needed(start)).map_err(|_| damage)?;
        // Its length may be damaged, so memory is only allocated as far as there is something to read.
        while bytes.len() - before < size {
            let from = bytes.len() - before;
            bytes.try_fill(before + size.min(from + LARGE_STEP), 0)?;
            let rest = bytes.get_mut(before + from..).unwrap_or_default();
            if !self.memory.read(address.saturating_add(from as u64), rest) {
                return Err(damage.into());
            }
        }
        let address = address - before as u64;
        self.copied.parts.try_push(Part { address, bytes })?;
        Ok(next)
    }
}
