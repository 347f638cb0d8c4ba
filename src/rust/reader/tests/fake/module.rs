//! A module as it is in memory: an ELF header, program headers, the dynamic section, and the tables of symbols,
//! strings and hashes. The writable part follows.

use super::Space;

/// The kind of hash table that a module has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Gnu,
    SystemV,
}

/// A symbol of the table.
#[derive(Debug, Clone)]
pub struct Symbol {
    pub name: String,
    /// Its address in the file, if the module defines it.
    pub address: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Module {
    pub start: u64,
    pub hash: Hash,
    /// Whether the loader has added the bias to the addresses in the dynamic section, as glibc's loader does.
    pub is_relocated: bool,
    pub symbols: Vec<Symbol>,
    /// Its own name, and the names of libraries that it is linked with.
    pub name: Option<String>,
    pub needed: Vec<String>,
    /// The size of the writable part according to the headers. The process has `WRITABLE` bytes of it.
    pub size: u64,
}

/// The offsets of its parts from its start.
const HEADERS: u64 = 0x40;
pub const DYNAMIC: u64 = 0x200;
pub const TABLE: u64 = 0x400;
pub const STRINGS: u64 = 0xa00;
pub const HASHES: u64 = 0xe00;
/// The writable part.
pub const VARIABLES: u64 = 0x1000;
pub const WRITABLE: u64 = 0x1000;

/// The size of the module, including its writable part.
pub const SIZE: u64 = VARIABLES + WRITABLE;
const BUCKETS: u32 = 3;

impl Module {
    pub fn new(start: u64, hash: Hash) -> Module {
        Module {
            start,
            hash,
            is_relocated: true,
            symbols: Vec::new(),
            name: None,
            needed: Vec::new(),
            size: WRITABLE,
        }
    }

    /// Adds a variable, given its offset in the writable part.
    pub fn variable(&mut self, name: &str, offset: u64) {
        self.symbols.push(Symbol {
            name: name.to_owned(),
            address: Some(VARIABLES + offset),
        });
    }

    /// Adds a variable of another module.
    pub fn undefined(&mut self, name: &str) {
        self.symbols.push(Symbol {
            name: name.to_owned(),
            address: None,
        });
    }

    /// Writes the module to the memory of a process, as two regions.
    pub fn lay_out(mut self, space: &mut Space) {
        let start = self.start;
        space.add(start, VARIABLES as usize);
        space.add(start + VARIABLES, WRITABLE as usize);
        let mut header = [0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[32..40].copy_from_slice(&HEADERS.to_le_bytes());
        header[56] = 4;
        space.write(start, &header);
        // Kind, flags, address, size. The first one is a note, which is ignored.
        let parts = [
            (4_u32, 4_u32, 0, 0),
            (1, 5, 0, VARIABLES),
            (1, 6, VARIABLES, self.size),
            (2, 6, DYNAMIC, 0x100),
        ];
        for (number, (kind, flags, address, size)) in parts.into_iter().enumerate() {
            let at = start + HEADERS + 56 * number as u64;
            space.write(at, &kind.to_le_bytes());
            space.write(at + 4, &flags.to_le_bytes());
            space.set(at + 16, address);
            space.set(at + 40, size);
        }
        let bias = if self.is_relocated { start } else { 0 };
        let (tag, hashes) = match self.hash {
            Hash::Gnu => (0x6fff_fef5, self.gnu()),
            Hash::SystemV => (4, self.system_v()),
        };
        let hashes: Vec<u8> = hashes.into_iter().flat_map(u32::to_le_bytes).collect();
        space.write(start + HASHES, &hashes);
        // The first symbol and the first string are empty.
        let mut strings = vec![0];
        for (number, symbol) in self.symbols.iter().enumerate() {
            let at = start + TABLE + 24 * (number as u64 + 1);
            space.write(at, &(strings.len() as u32).to_le_bytes());
            space.write(at + 6, &[u8::from(symbol.address.is_some()), 0]);
            space.set(at + 8, symbol.address.unwrap_or(0));
            strings.extend(symbol.name.as_bytes());
            strings.push(0);
        }
        let mut entries = vec![(5, bias + STRINGS), (6, bias + TABLE), (tag, bias + HASHES)];
        let names = self.name.iter().map(|name| (14, name));
        for (tag, name) in names.chain(self.needed.iter().map(|name| (1, name))) {
            entries.push((tag, strings.len() as u64));
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        for (number, (tag, value)) in entries.into_iter().enumerate() {
            space.set(start + DYNAMIC + 16 * number as u64, tag);
            space.set(start + DYNAMIC + 16 * number as u64 + 8, value);
        }
        assert!(strings.len() as u64 <= HASHES - STRINGS);
        space.write(start + STRINGS, &strings);
    }

    /// Sorts the symbols as the linker does, those that are not defined first, and returns the table of the others.
    fn gnu(&mut self) -> Vec<u32> {
        let hash = |symbol: &Symbol| {
            let bytes = symbol.name.bytes();
            bytes.fold(5381_u32, |hash, byte| {
                hash.wrapping_mul(33).wrapping_add(u32::from(byte))
            })
        };
        let bucket = |symbol: &Symbol| symbol.address.map(|_| hash(symbol) % BUCKETS);
        self.symbols.sort_by_key(bucket);
        let undefined = self
            .symbols
            .iter()
            .filter(|symbol| symbol.address.is_none());
        let first = undefined.count();
        // The filter accepts all hashes.
        let mut table = vec![BUCKETS, first as u32 + 1, 1, 6, u32::MAX, u32::MAX];
        for number in 0..BUCKETS {
            let found = self
                .symbols
                .iter()
                .position(|symbol| bucket(symbol) == Some(number));
            table.push(found.map_or(0, |found| found as u32 + 1));
        }
        for (number, symbol) in self.symbols.iter().enumerate().skip(first) {
            let next = self.symbols.get(number + 1);
            let is_last = next.is_none_or(|next| bucket(next) != bucket(symbol));
            table.push(hash(symbol) & !1 | u32::from(is_last));
        }
        table
    }

    /// The table of all symbols.
    fn system_v(&self) -> Vec<u32> {
        let mut buckets = vec![0; BUCKETS as usize];
        let mut chains = vec![0; self.symbols.len() + 1];
        for (number, symbol) in self.symbols.iter().enumerate() {
            let hash = symbol.name.bytes().fold(0_u32, |hash, byte| {
                let hash = (hash << 4) + u32::from(byte);
                let high = hash & 0xf000_0000;
                (hash ^ high >> 24) & !high
            });
            let bucket = &mut buckets[(hash % BUCKETS) as usize];
            chains[number + 1] = *bucket;
            *bucket = number as u32 + 1;
        }
        let mut table = vec![BUCKETS, chains.len() as u32];
        table.extend(buckets);
        table.extend(chains);
        table
    }
}
