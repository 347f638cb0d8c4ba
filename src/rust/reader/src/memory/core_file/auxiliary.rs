//! The auxiliary vector: what the kernel passes to a program's loader, as pairs of a type and a value, see getauxval(3).

use profile_runtime::memory::at;

/// The types that are used: the address of the program headers (`AT_PHDR`), and of random bytes (`AT_RANDOM`).
const HEADERS: u64 = 3;
const RANDOM: u64 = 25;

fn entry(vector: &[u8], kind: u64) -> Option<u64> {
    let mut entries = vector.chunks_exact(16);
    let found = entries.find(|entry| at(entry, 0) == kind)?;
    Some(at(found, 8))
}

/// The address of random bytes at the start of the stack of the first thread.
pub fn random_bytes(vector: &[u8]) -> Option<u64> {
    entry(vector, RANDOM)
}

/// The address of the program. Its headers are on its first page.
pub fn program(vector: &[u8]) -> Option<u64> {
    entry(vector, HEADERS).map(|address| address & !0xfff)
}
