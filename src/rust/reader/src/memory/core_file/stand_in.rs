//! A module that stands in for R's library, whose symbols a core file lacks. It has the names of R's variables, and
//! their values, which were found without symbols. So what looks for symbols does not need to know whether they are
//! R's own.

use super::search::Values;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled};
use profile_runtime::variables::OF_CALLS;
use std::ops::Range;

/// Its address, which is below those that Linux gives to programs (`vm.mmap_min_addr`).
pub const START: u64 = 0x1000;
pub const SIZE: u64 = 0x1000;
/// Where its parts are, from its start: program headers, the dynamic section, the tables of symbols, strings and
/// hashes, and the variables. `symbols.rs` describes these tables.
const HEADERS: u64 = 64;
const DYNAMIC: u64 = 0x800;
const SYMBOLS: u64 = 0x900;
const STRINGS: u64 = 0xa00;
const HASHES: u64 = 0xc00;
const VARIABLES: u64 = 0xd00;
/// The most writable parts for which there is room.
const MOST_PARTS: usize = 16;

/// The memory of the module. `variables` are the address ranges of R's variables; `stack` is an address on the C
/// stack of R's thread.
pub fn module(values: &Values, variables: &[Range<u64>], stack: u64) -> Result<Vec<u8>> {
    let values = [
        values.head,
        values.srcref,
        values.nil,
        values.in_byte_code,
        values.srcfile,
        values.node_stack_end,
        stack,
    ];
    let mut bytes = filled(SIZE as usize, 0)?;
    let mut put = |at: u64, value: &[u8]| {
        let to = bytes.get_mut(at as usize..).unwrap_or_default();
        for (to, from) in to.iter_mut().zip(value) {
            *to = *from;
        }
    };
    put(0, b"\x7fELF\x02\x01");
    put(32, &HEADERS.to_le_bytes());
    let parts = variables.iter().take(MOST_PARTS);
    // Kind, flags, address and size. A module is loaded at the address of its first part.
    let writable = parts.map(|part| (1_u32, 6_u32, part.start, part.end - part.start));
    let first = [(1, 4, START, SIZE)];
    let last = [(2, 4, START + DYNAMIC, 0)];
    let mut count = 0;
    for (kind, flags, address, size) in first.into_iter().chain(writable).chain(last) {
        let at = HEADERS + 56 * count;
        put(at, &kind.to_le_bytes());
        put(at + 4, &flags.to_le_bytes());
        put(at + 16, &address.to_le_bytes());
        put(at + 40, &size.to_le_bytes());
        count += 1;
    }
    put(56, &count.to_le_bytes());
    for (number, (tag, at)) in (0..).zip([(4_u64, HASHES), (5, STRINGS), (6, SYMBOLS)]) {
        put(DYNAMIC + 16 * number, &tag.to_le_bytes());
        put(DYNAMIC + 16 * number + 8, &(START + at).to_le_bytes());
    }
    // The first symbol and the first string are empty.
    let mut strings = Vec::new();
    strings.try_push(0)?;
    for (number, (name, value)) in (1..).zip(OF_CALLS.iter().zip(values)) {
        let symbol = SYMBOLS + 24 * number;
        put(symbol, &(strings.len() as u32).to_le_bytes());
        // It is defined.
        put(symbol + 6, &[1]);
        let variable = VARIABLES + 8 * number;
        put(symbol + 8, &(START + variable).to_le_bytes());
        put(variable, &value.to_le_bytes());
        strings.try_extend(name.as_bytes())?;
        strings.try_push(0)?;
    }
    put(STRINGS, &strings);
    // One bucket, which starts with symbol 1, and the next symbol of each.
    let symbols = OF_CALLS.len() as u32 + 1;
    for (number, word) in (0..).zip([1, symbols, 1, 0]) {
        put(HASHES + 4 * number, &word.to_le_bytes());
    }
    for symbol in 1..symbols {
        let next = if symbol + 1 < symbols { symbol + 1 } else { 0 };
        put(HASHES + 12 + 4 * u64::from(symbol), &next.to_le_bytes());
    }
    Ok(bytes)
}
