//! Finds the variables that a module exports, in its memory. No file is needed: paths that are reported by a process
//! in a container are wrong outside of it, and files of packages are replaced by updates.
//!
//! The format is ELF, for 64-bit little-endian systems: program headers, the dynamic section they point to, and
//! its tables of symbols, strings and hashes.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_runtime::memory::{self, MEMORY_PAGE, Memory, at, half_at};
use std::ops::Range;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// More program headers than a module has.
const MOST_HEADERS: usize = 64;
const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const WRITABLE: u32 = 2;

/// The tags of the dynamic section that are used.
const END: u64 = 0;
const NEEDED: u64 = 1;
const HASH: u64 = 4;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const NAME: u64 = 14;
const GNU_HASH: u64 = 0x6fff_fef5;
/// Longer than the name of a library.
const LONGEST_NAME: usize = 256;
/// More entries than a dynamic section has.
const MOST_ENTRIES: u64 = 256;
/// Larger than the number of symbols with the same hash.
const LONGEST_CHAIN: u32 = 4096;
const SYMBOL: u64 = 24;
/// Symbol numbers have 32 bits. A table with a billion symbols is damaged.
const MOST_SYMBOLS: u32 = 1 << 30;

/// A module that is loaded.
#[derive(Debug)]
pub struct Module {
    /// The load bias, which is added to the addresses in the file.
    bias: u64,
    symbols: u64,
    strings: u64,
    table: Table,
    /// Where the names of the library itself and of those that it is linked with begin.
    name: Option<u64>,
    needed: Vec<u64>,
    /// The address ranges of its variables.
    pub variables: Vec<Range<u64>>,
}

#[derive(Debug)]
enum Table {
    Gnu(u64),
    SystemV(u64),
}

impl Module {
    /// The module whose file starts at this address in memory.
    pub fn at(memory: &mut impl Memory, start: u64) -> Result<Option<Module>> {
        let Some(header) = memory::array::<HEADER>(memory, start) else {
            return Ok(None);
        };
        // 64 bits, little-endian.
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Ok(None);
        }
        let count = usize::from(u16::from_le_bytes([header[56], header[57]])).min(MOST_HEADERS);
        let mut bytes = [0; PROGRAM_HEADER * MOST_HEADERS];
        let bytes = &mut bytes[..PROGRAM_HEADER * count];
        if !memory.read(start.wrapping_add(at(&header, 32)), bytes) {
            return Ok(None);
        }
        let headers = || {
            let parts = bytes.chunks_exact(PROGRAM_HEADER);
            parts.map(|part| {
                (
                    half_at(part, 0),
                    half_at(part, 4),
                    at(part, 16),
                    at(part, 40),
                )
            })
        };
        let Some((_, _, first, _)) = headers().find(|part| part.0 == LOAD) else {
            return Ok(None);
        };
        let bias = start.wrapping_sub(first & !0xfff);
        let mut variables = Vec::new();
        for (kind, flags, address, size) in headers() {
            if kind == LOAD && flags & WRITABLE != 0 {
                let from = bias.wrapping_add(address);
                variables.try_push(from..from.saturating_add(size))?;
            }
        }
        let dynamic = headers().find(|part| part.0 == DYNAMIC);
        let Some(dynamic) = dynamic else {
            return Ok(None);
        };
        let module = Module {
            bias,
            symbols: 0,
            strings: 0,
            table: Table::Gnu(0),
            name: None,
            needed: Vec::new(),
            variables,
        };
        module.with_tables(memory, bias.wrapping_add(dynamic.2))
    }

    /// The name of the library (`DT_SONAME`), by which others are linked with it.
    pub fn name(&self, memory: &mut impl Memory) -> Result<Option<String>> {
        self.name.map_or(Ok(None), |at| text(memory, at))
    }

    /// Whether it is linked with a library of this name.
    pub fn needs(&self, memory: &mut impl Memory, name: &str) -> Result<bool> {
        for &at in &self.needed {
            if text(memory, at)?.as_deref() == Some(name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The address of a variable that the module defines.
    pub fn find(&self, memory: &mut impl Memory, name: &str) -> Option<u64> {
        match self.table {
            Table::Gnu(at) => self.find_gnu(memory, at, name),
            Table::SystemV(at) => self.find_system_v(memory, at, name),
        }
    }

    /// Searches the hash table of `--hash-style=gnu`. It consists of the number of buckets, the number of the first
    /// symbol and the number of words of a filter; the filter, the buckets, and for each symbol its hash, whose
    /// lowest bit marks the last symbol of a bucket.
    fn find_gnu(&self, memory: &mut impl Memory, table: u64, name: &str) -> Option<u64> {
        let hash = name.bytes().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(byte))
        });
        let head = memory::array::<16>(memory, table)?;
        let [buckets, first, filter] = [half_at(&head, 0), half_at(&head, 4), half_at(&head, 8)];
        let buckets_at = table.wrapping_add(16).wrapping_add(u64::from(filter) * 8);
        let bucket = u64::from(hash.checked_rem(buckets)?);
        let mut symbol = half(memory, buckets_at.wrapping_add(bucket * 4))?;
        let hashes_at = buckets_at.wrapping_add(u64::from(buckets) * 4);
        for _ in 0..LONGEST_CHAIN {
            let row = u64::from(symbol.checked_sub(first)?);
            let found = half(memory, hashes_at.wrapping_add(row * 4))?;
            if found | 1 == hash | 1 {
                let address = self.symbol(memory, symbol, name);
                if address.is_some() {
                    return address;
                }
            }
            if found & 1 != 0 {
                return None;
            }
            symbol = symbol.checked_add(1)?;
        }
        None
    }

    /// Searches the older hash table. It consists of the numbers of buckets and symbols, the buckets, and for each
    /// symbol the next one in its bucket.
    fn find_system_v(&self, memory: &mut impl Memory, table: u64, name: &str) -> Option<u64> {
        let hash = name.bytes().fold(0_u32, |hash, byte| {
            let hash = (hash << 4).wrapping_add(u32::from(byte));
            let high = hash & 0xf000_0000;
            (hash ^ (high >> 24)) & !high
        });
        let buckets = half(memory, table)?;
        let bucket = u64::from(hash.checked_rem(buckets)?);
        let buckets_at = table.wrapping_add(8);
        let mut symbol = half(memory, buckets_at.wrapping_add(bucket * 4))?;
        let chains_at = buckets_at.wrapping_add(u64::from(buckets) * 4);
        for _ in 0..LONGEST_CHAIN {
            if symbol == 0 {
                return None;
            }
            if let Some(address) = self.symbol(memory, symbol, name) {
                return Some(address);
            }
            symbol = half(memory, chains_at.wrapping_add(u64::from(symbol) * 4))?;
        }
        None
    }

    /// The address of the symbol with this number, if it has this name and is defined here.
    fn symbol(&self, memory: &mut impl Memory, number: u32, name: &str) -> Option<u64> {
        if number > MOST_SYMBOLS {
            return None;
        }
        let entry = self.symbols.wrapping_add(u64::from(number) * SYMBOL);
        let entry = memory::array::<{ SYMBOL as usize }>(memory, entry)?;
        let mut text = [0; 64];
        // Includes the terminating zero.
        let text = text.get_mut(..name.len() + 1)?;
        let is_defined = entry[6..8] != [0, 0];
        let has_name = memory.read(
            self.strings.wrapping_add(u64::from(half_at(&entry, 0))),
            text,
        ) && text.strip_suffix(&[0]) == Some(name.as_bytes());
        (is_defined && has_name).then(|| self.bias.wrapping_add(at(&entry, 8)))
    }
}

fn half(memory: &mut impl Memory, address: u64) -> Option<u32> {
    memory::array(memory, address).map(u32::from_le_bytes)
}

/// The text at an address, if it ends.
fn text(memory: &mut impl Memory, address: u64) -> Result<Option<String>> {
    let mut bytes = [0; LONGEST_NAME];
    // The table may end close to the end of what is mapped.
    let page = (MEMORY_PAGE - address % MEMORY_PAGE) as usize;
    let sizes = [LONGEST_NAME, page.min(LONGEST_NAME)];
    let read = sizes
        .into_iter()
        .find(|&size| memory.read(address, &mut bytes[..size]));
    let bytes = &bytes[..read.unwrap_or(0)];
    let Some(end) = bytes.iter().position(|&byte| byte == 0) else {
        return Ok(None);
    };
    std::str::from_utf8(&bytes[..end])
        .ok()
        .map(owned)
        .transpose()
}

impl Module {
    /// With the addresses of the tables of symbols, strings and hashes, and of names.
    fn with_tables(mut self, memory: &mut impl Memory, dynamic: u64) -> Result<Option<Module>> {
        let (mut symbols, mut strings, mut gnu, mut system_v) = (None, None, None, None);
        for number in 0..MOST_ENTRIES {
            let Some(entry) = memory::array::<16>(memory, dynamic.wrapping_add(number * 16)) else {
                return Ok(None);
            };
            let value = at(&entry, 8);
            // glibc's loader has added the bias, others have not.
            let address = if value < self.bias {
                value.wrapping_add(self.bias)
            } else {
                value
            };
            match at(&entry, 0) {
                END => break,
                HASH => system_v = Some(Table::SystemV(address)),
                STRINGS => strings = Some(address),
                SYMBOLS => symbols = Some(address),
                GNU_HASH => gnu = Some(Table::Gnu(address)),
                NAME => self.name = Some(value),
                NEEDED => self.needed.try_push(value)?,
                _ => {}
            }
        }
        let (Some(symbols), Some(strings), Some(table)) = (symbols, strings, gnu.or(system_v))
        else {
            return Ok(None);
        };
        (self.symbols, self.strings, self.table) = (symbols, strings, table);
        // Names are offsets in the table of strings.
        for at in self.name.iter_mut().chain(&mut self.needed) {
            *at = at.wrapping_add(strings);
        }
        Ok(Some(self))
    }
}
