//! Splits what is resident into R's heap and rows for everything else.
//!
//! Each byte is counted once. Of a region, R's objects come first, then parts whose addresses are known, such as
//! variables of libraries; the rest belongs to what the region is. So all of them add up to the sum of `smaps`.

use super::regions::Region;
use super::rows::{
    FREE, LIBRARIES, NATIVE, NATIVE_OR_FREE, POOL, R_STACKS, Row, THREADS, add_named, merge, named,
    row,
};
use super::{Divided, Malloc, Pool};
use profile_core::error::Result;
use profile_core::limits::memory::{TryAdd, TryGrow, filled};
use std::collections::HashSet;
use std::ops::Range;

/// Addresses with a known use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub addresses: Range<u64>,
    pub owner: Owner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    RStacks,
    /// The library whose file is mapped where the range begins.
    Variables,
}

#[derive(Debug, Default)]
pub struct Split {
    /// The bytes of R's heap that are resident.
    pub heap: u64,
    pub rows: Vec<Row>,
    /// The bytes of which it is not known whether they are R's heap.
    pub unsure: u64,
}

/// R's heap in a region: all bytes, those in resident pages, and its first address.
#[derive(Debug, Clone, Copy)]
struct Part {
    bytes: u64,
    resident: u64,
    first: u64,
}

/// The memory of glibc's arenas is at a multiple of this (`HEAP_MAX_SIZE` in `malloc/arena.c`).
pub const ARENA: u64 = 64 << 20;
/// The usual limit for the size of a stack.
const STACK: u64 = 8 << 20;

impl Divided {
    /// The sum of `smaps`.
    pub fn sum(&self) -> u64 {
        self.all(|region| region.resident)
    }

    /// The part of it that other processes have mapped as well.
    pub fn with_others(&self) -> u64 {
        self.all(|region| region.with_others)
    }

    pub fn swapped(&self) -> u64 {
        self.all(|region| region.swapped)
    }

    fn all(&self, what: impl Fn(&Region) -> u64) -> u64 {
        let all = self.regions.iter().map(what);
        all.fold(0, u64::saturating_add)
    }

    /// `heap`: all addresses of R's pages and of its objects outside of pages.
    pub fn split(&self, heap: impl Iterator<Item = Range<u64>>, claims: &[Claim]) -> Result<Split> {
        let heap = self.heap(heap)?;
        let libraries = self.libraries()?;
        let mut split = Split::default();
        let mut malloc = InMalloc::default();
        let mut other = 0;
        let mut before: Option<&Region> = None;
        for (region, part) in self.regions.iter().zip(&heap) {
            let of_heap = part.resident.min(region.resident);
            split.heap += of_heap;
            let mut left = region.resident - of_heap;
            let mut known = part.bytes;
            // Parts of plain memory with a known use.
            let mut claim = |range: Range<u64>, row: Row| {
                let length = range.end.saturating_sub(range.start);
                let resident = self.pages.resident(region, &range).unwrap_or(length);
                let bytes = resident.min(left);
                known = known.saturating_add(length);
                left -= bytes;
                split.rows.try_push(Row { bytes, ..row })
            };
            if region.is_unnamed() {
                for known in claims {
                    if let Some(range) = within(&known.addresses, &region.addresses) {
                        claim(range, self.row_of(known)?)?;
                    }
                }
            }
            if is_stack(before, region) {
                let end = region.addresses.start.saturating_add(STACK);
                let end = match region.is_never_huge {
                    // Stacks without guards between them are one region.
                    true => region.addresses.end,
                    false => end.min(region.addresses.end),
                };
                let range = region.addresses.start..end.min(part.first);
                claim(range, row(THREADS, "stack")?)?;
            }
            let unsure = self.unsure(region, known);
            split.unsure = split.unsure.saturating_add(unsure);
            match &self.malloc {
                Malloc::Glibc(glibc) if glibc.has(region) => {
                    malloc.resident += region.resident;
                    let untouched = part.bytes.saturating_sub(of_heap);
                    malloc.untouched = malloc.untouched.saturating_add(untouched);
                    malloc.left += left;
                }
                _ if region.is_unnamed() => other += left,
                _ => add_named(&mut split.rows, region, &libraries, left)?,
            }
            before = Some(region);
        }
        self.add_native(&mut split.rows, &malloc, other)?;
        split.rows.retain(|row| row.bytes > 0);
        merge(&mut split.rows);
        Ok(split)
    }

    /// R's heap in each region.
    fn heap(&self, heap: impl Iterator<Item = Range<u64>>) -> Result<Vec<Part>> {
        let nothing = Part {
            bytes: 0,
            resident: 0,
            first: u64::MAX,
        };
        let mut parts = filled(self.regions.len(), nothing)?;
        for block in heap {
            let first = self
                .regions
                .partition_point(|region| region.addresses.end <= block.start);
            let regions = self.regions.iter().zip(&mut parts).skip(first);
            for (region, part) in regions {
                let Some(range) = within(&block, &region.addresses) else {
                    break;
                };
                let length = range.end - range.start;
                part.first = part.first.min(range.start);
                part.bytes = part.bytes.saturating_add(length);
                let resident = self.pages.resident(region, &range).unwrap_or(length);
                part.resident = part.resident.saturating_add(resident);
            }
        }
        Ok(parts)
    }

    /// The bytes of a region that may belong to another of its parts than to the one that they are counted for, if
    /// so many bytes are known parts.
    fn unsure(&self, region: &Region, known: u64) -> u64 {
        let unknown = region.size().saturating_sub(known);
        let bytes = match self.pages.resident(region, &region.addresses) {
            _ if known == 0 => 0,
            // The system maps a page of zeros where memory was read and never written, which is not resident.
            Some(resident) => resident.abs_diff(region.resident),
            None => region.resident,
        };
        bytes.min(unknown)
    }

    /// The paths of all files with code.
    fn libraries(&self) -> Result<HashSet<&str>> {
        let mut libraries = HashSet::new();
        let named = self.regions.iter().filter(|region| region.may_execute);
        for region in named {
            libraries.try_add(&*region.name)?;
        }
        Ok(libraries)
    }

    fn row_of(&self, claim: &Claim) -> Result<Row> {
        match claim.owner {
            Owner::RStacks => row(R_STACKS, "stack"),
            Owner::Variables => {
                let start = claim.addresses.start;
                let file = self
                    .regions
                    .iter()
                    .find(|region| region.addresses.contains(&start));
                named(LIBRARIES, file.map_or("", Region::file), "data")
            }
        }
    }

    /// Adds rows for memory that native code has allocated, and that is free.
    fn add_native(&self, rows: &mut Vec<Row>, malloc: &InMalloc, other: u64) -> Result<()> {
        let (mut in_malloc, mut other) = (malloc.left, other);
        let mut part = NATIVE_OR_FREE;
        if let Malloc::Glibc(glibc) = &self.malloc {
            // Memory in use need not be resident, so at least this is free.
            let used = glibc.used.saturating_sub(malloc.untouched);
            let free = malloc.resident.saturating_sub(used);
            let free = free.min(glibc.free).min(malloc.left);
            rows.try_push(Row {
                bytes: free,
                ..row(FREE, "free memory")?
            })?;
            in_malloc -= free;
            part = NATIVE;
        }
        for pool in &self.pools {
            let from = match &*pool.allocator {
                Pool::SYSTEM => &mut in_malloc,
                _ => &mut other,
            };
            // It may have allocated memory that is not resident.
            let bytes = pool.bytes.min(*from);
            *from -= bytes;
            let of_package = named(POOL, &pool.package, &pool.allocator)?;
            rows.try_push(Row {
                bytes,
                ..of_package
            })?;
        }
        for (type_, bytes) in [("malloc", in_malloc), ("mappings", other)] {
            rows.try_push(Row {
                bytes,
                ..row(part, type_)?
            })?;
        }
        Ok(())
    }
}

/// What is in glibc's regions without R's heap and other known parts.
#[derive(Debug, Default)]
struct InMalloc {
    resident: u64,
    /// R's objects that are not resident.
    untouched: u64,
    left: u64,
}

impl super::Glibc {
    fn has(&self, region: &Region) -> bool {
        let range = &region.addresses;
        let has = |arena: &Range<u64>| arena.start <= range.start && range.end <= arena.end;
        region.is_heap() || self.arenas.iter().any(has)
    }
}

/// Whether a region begins with the stack of a thread: before a stack, the C library maps memory without access, or, from
/// glibc 2.42 on, the kernel knows of a guard that the region contains. What is left of an arena is such memory as well, but
/// ends where an arena may begin.
fn is_stack(before: Option<&Region>, region: &Region) -> bool {
    let start = region.addresses.start;
    let is_after_guard =
        before.is_some_and(|before| before.is_guard() && before.addresses.end == start);
    (is_after_guard || region.is_never_huge)
        && region.is_plain()
        && region.may_write
        && !region.is_shared
        && start % ARENA != 0
}

fn within(range: &Range<u64>, region: &Range<u64>) -> Option<Range<u64>> {
    let (start, end) = (range.start.max(region.start), range.end.min(region.end));
    (start < end).then_some(start..end)
}
