//! Names the stubs of the procedure linkage table: short pieces of code by which a library calls functions of others.
//!
//! A stub jumps to an address in a slot of the global offset table. The relocation of this slot has the name of the
//! function, so a stub is `memcpy@plt`, as debuggers call it. Linkers write stubs to several sections, in sizes that
//! differ, so the slot is read from the code of the stub.

use super::elf::{Elf, Processor};
use super::ranges::Ranges;
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut, written};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::ops::Range;

/// The sections that have stubs.
const SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".plt.bnd"];
/// The sizes of a stub, the usual one first.
const SIZES: [u64; 3] = [16, 8, 24];

/// The stubs of a file: their addresses, and the names of the functions that they call.
pub struct Stubs(Ranges<u32>, Vec<String>);

impl Stubs {
    pub fn read(elf: &Elf) -> Result<Stubs> {
        let (mut ranges, mut names) = (Vec::new(), Vec::new());
        let Some(processor) = elf.processor() else {
            return Ok(Stubs(Ranges::new(ranges)?, names));
        };
        let mut functions: HashMap<u64, String, RandomState> = HashMap::default();
        for slot in elf.slots()? {
            functions.try_put(slot.address, slot.name)?;
        }
        for name in SECTIONS {
            let Some((start, code)) = elf.section_at(name)? else {
                continue;
            };
            let size = size_of_stubs(start, code, processor, &functions);
            for (stub, name) in stubs(start, code, size, processor, &functions) {
                ranges.try_push((stub, names.len() as u32))?;
                names.try_push(written(format_args!("{name}"))?)?;
            }
        }
        Ok(Stubs(Ranges::new(ranges)?, names))
    }

    /// The name of the function that the stub at an address calls.
    pub fn at(&self, address: u64) -> Option<&str> {
        let (_, row) = self.0.containing(address).next()?;
        self.1.get(*row as usize).map(String::as_str)
    }
}

/// The size with which most stubs of a section have a function.
fn size_of_stubs(
    start: u64,
    code: &[u8],
    processor: Processor,
    functions: &HashMap<u64, String, RandomState>,
) -> u64 {
    let found = |size: &u64| stubs(start, code, *size, processor, functions).count();
    // Of equal ones, `max_by_key()` takes the last one.
    let best = SIZES.iter().rev().max_by_key(|size| found(size));
    best.copied().unwrap_or(SIZES[0])
}

/// The stubs of a section, if they have this size.
fn stubs<'a>(
    start: u64,
    code: &'a [u8],
    size: u64,
    processor: Processor,
    functions: &'a HashMap<u64, String, RandomState>,
) -> impl Iterator<Item = (Range<u64>, &'a str)> {
    // The first stub of `.plt` is another one, of 32 bytes on aarch64.
    let first = match processor {
        Processor::Aarch64 if size == 24 => 32,
        _ => 0,
    };
    let all = code.get(first..).unwrap_or_default();
    let all = all.chunks(size as usize).zip(0_u64..);
    all.filter_map(move |(code, number)| {
        let address = start
            .wrapping_add(first as u64)
            .wrapping_add(number.wrapping_mul(size));
        let slot = match processor {
            Processor::X86_64 => slot_on_x86_64(address, code),
            Processor::Aarch64 => slot_on_aarch64(address, code),
        };
        let name = functions.get(&slot?)?;
        Some((address..address.checked_add(size)?, name.as_str()))
    })
}

/// The slot of `jmp *slot(%rip)`, which may follow `endbr64` and have the prefix `bnd`.
fn slot_on_x86_64(address: u64, code: &[u8]) -> Option<u64> {
    let mut at = 0;
    for prefix in [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0xf2][..]] {
        if code.get(at..)?.starts_with(prefix) {
            at += prefix.len();
        }
    }
    let rest = code.get(at..)?.strip_prefix(&[0xff, 0x25])?;
    let distance = i32::from_le_bytes(*rest.first_chunk()?);
    let next = address.checked_add(at as u64 + 6)?;
    next.checked_add_signed(distance.into())
}

/// The slot of `adrp x16, page` and `ldr x17, [x16, offset]`, which may follow `bti c`.
fn slot_on_aarch64(address: u64, code: &[u8]) -> Option<u64> {
    let mut words = code.chunks_exact(4).map(|word| match word.first_chunk() {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => 0,
    });
    let (mut page, mut address) = (words.next()?, address);
    if page == 0xd503_245f {
        page = words.next()?;
        address = address.checked_add(4)?;
    }
    let load = words.next()?;
    if page & 0x9f00_001f != 0x9000_0010 || load & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    // The number of pages, a signed number of 21 bits.
    let pages = ((page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3) << 11;
    let pages = i64::from(pages as i32 >> 11);
    let offset = u64::from(load >> 10 & 0xfff) * 8;
    let page = (address & !0xfff).checked_add_signed(pages << 12)?;
    page.checked_add(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn slots_on_x86_64() {
        let jump = [0xff, 0x25, 0x10, 0x20, 0x00, 0x00, 0x90];
        assert_eq!(slot_on_x86_64(0x1000, &jump), Some(0x1006 + 0x2010));
        let back = [0xff, 0x25, 0xf0, 0xff, 0xff, 0xff];
        assert_eq!(slot_on_x86_64(0x1000, &back), Some(0x1006 - 16));
        let marked = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0];
        assert_eq!(slot_on_x86_64(0x1000, &marked), Some(0x100b));
        // The first stub, one that ends early, and an address that does not exist.
        let first = [0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0];
        assert_eq!(slot_on_x86_64(0x1000, &first), None);
        for end in 0..6 {
            assert_eq!(slot_on_x86_64(0x1000, &jump[..end]), None);
        }
        assert_eq!(slot_on_x86_64(0, &back), None);
        assert_eq!(slot_on_x86_64(u64::MAX - 2, &jump), None);
    }

    #[test]
    fn slots_on_aarch64() {
        // adrp x16, 0x1f000; ldr x17, [x16, #4000]; add x16, x16, #0xfa0; br x17, at 0x640.
        let stub = [0xf000_00f0, 0xf947_d211, 0x913e_8210, 0xd61f_0220];
        assert_eq!(slot_on_aarch64(0x640, &words(&stub)), Some(0x1_ffa0));
        let mut marked = vec![0xd503_245f];
        marked.extend(stub);
        assert_eq!(slot_on_aarch64(0x640, &words(&marked)), Some(0x1_ffa0));
        // adrp x16, one page before.
        let back = [0xf0ff_fff0, 0xf940_0211];
        assert_eq!(slot_on_aarch64(0x5640, &words(&back)), Some(0x4000));
        assert_eq!(slot_on_aarch64(0x640, &words(&back)), None);
        for end in 0..2 {
            assert_eq!(slot_on_aarch64(0x640, &words(&stub[..end])), None);
        }
        assert_eq!(slot_on_aarch64(0x640, &words(&[stub[1], stub[0]])), None);
    }
}
