//! Which pages of a process are resident, from `/proc/PID/pagemap`.

use super::regions::Region;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled};
use profile_runtime::memory::at;
use std::ops::Range;

/// The pages of some parts of the address space.
#[derive(Debug, Default)]
pub struct Pages {
    /// The size of a page.
    size: u64,
    /// In the order of addresses.
    parts: Vec<Part>,
}

#[derive(Debug)]
pub struct Part {
    addresses: Range<u64>,
    /// A bit for each page.
    bits: Vec<u64>,
    /// The number of pages that are known.
    done: usize,
}

/// The file has a word for each page. The bit of a page that is resident (`PM_PRESENT`).
const IS_PRESENT: u64 = 1 << 63;

impl Part {
    /// Adds the words of the next pages.
    pub fn add(&mut self, words: &[u8]) {
        for word in words.chunks_exact(8) {
            if let Some(bits) = self.bits.get_mut(self.done / 64) {
                *bits |= u64::from(at(word, 0) & IS_PRESENT != 0) << (self.done % 64);
            }
            self.done += 1;
        }
    }
}

impl Pages {
    pub fn new(size: u64) -> Pages {
        Pages {
            size: size.max(1),
            parts: Vec::new(),
        }
    }

    /// Begins a part after all others.
    pub fn begin(&self, addresses: Range<u64>) -> Result<Part> {
        let count = addresses.end.saturating_sub(addresses.start) / self.size;
        Ok(Part {
            addresses,
            bits: filled((count as usize).div_ceil(64), 0)?,
            done: 0,
        })
    }

    /// Adds a part of which all pages are known.
    pub fn end(&mut self, part: Part) -> Result<()> {
        self.parts.try_push(part)
    }

    /// The bytes of a range inside of a region that are resident; `None` if it is unknown where the resident pages of
    /// this region are.
    pub fn resident(&self, region: &Region, range: &Range<u64>) -> Option<u64> {
        let length = range.end.saturating_sub(range.start);
        if region.resident == 0 || region.resident == region.size() {
            return Some(length * u64::from(region.resident > 0));
        }
        let after = self
            .parts
            .partition_point(|part| part.addresses.start <= range.start);
        let part = self.parts.get(after.checked_sub(1)?)?;
        let (part, bits) = (&part.addresses, &part.bits);
        if range.end > part.end {
            return None;
        }
        let mut sum = 0;
        let mut address = range.start;
        while address < range.end {
            let page = (address - part.start) / self.size;
            let end = part.start.saturating_add((page + 1) * self.size);
            let end = end.min(range.end);
            let bits = bits.get((page / 64) as usize).copied().unwrap_or(0);
            sum += (end - address) * (bits >> (page % 64) & 1);
            address = end;
        }
        Some(sum)
    }
}
