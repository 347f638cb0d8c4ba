//! Memory at made-up addresses.

use profile_runtime::memory::Mapping;
use profile_runtime::memory::View;
use profile_runtime::memory::{Memory, at};
use std::collections::BTreeMap;

#[derive(Clone, Default)]
pub struct Space {
    parts: BTreeMap<u64, Vec<u8>>,
}

impl Space {
    pub fn map(&mut self, start: u64, size: usize) {
        self.parts.insert(start, vec![0; size]);
    }

    pub fn find(&self, address: u64, size: usize) -> Option<&[u8]> {
        let (start, bytes) = self.parts.range(..=address).next_back()?;
        let start = usize::try_from(address - start).ok()?;
        bytes.get(start..start.checked_add(size)?)
    }

    pub fn word(&self, address: u64) -> u64 {
        self.find(address, 8).map_or(0, |bytes| at(bytes, 0))
    }

    pub fn write(&mut self, address: u64, new: &[u8]) {
        let found = self.parts.range_mut(..=address).next_back();
        let part = found.and_then(|(start, bytes)| {
            let start = usize::try_from(address - start).ok()?;
            bytes.get_mut(start..start.checked_add(new.len())?)
        });
        part.unwrap_or_else(|| panic!("there is no memory at {address:#x}"))
            .copy_from_slice(new);
    }

    pub fn set(&mut self, address: u64, word: u64) {
        self.write(address, &word.to_le_bytes());
    }

    /// Each part is a mapping of its own.
    pub fn mappings(&self) -> Vec<Mapping> {
        let mapping = |(&start, bytes): (&u64, &Vec<u8>)| Mapping {
            addresses: start..start + bytes.len() as u64,
            starts_file: false,
        };
        self.parts.iter().map(mapping).collect()
    }

    /// The addresses of all words that are not 0.
    pub fn words(&self) -> Vec<u64> {
        let words = self.parts.iter().flat_map(|(start, bytes)| {
            let words = bytes.chunks_exact(8).zip((*start..).step_by(8));
            words
                .filter(|(word, _)| *word != [0; 8])
                .map(|(_, address)| address)
        });
        words.collect()
    }
}

pub struct SpaceView<'m>(pub &'m Space);

impl Memory for SpaceView<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let found = self.0.find(address, into.len());
        found.is_some_and(|bytes| {
            into.copy_from_slice(bytes);
            true
        })
    }
}

impl<'m> View<'m> for SpaceView<'m> {
    fn view(&mut self, address: u64, size: usize) -> Option<&'m [u8]> {
        self.0.find(address, size)
    }
}
