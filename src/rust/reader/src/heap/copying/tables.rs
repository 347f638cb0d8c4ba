//! Copies what R has in memory of its own, outside of its heap: tables of objects, callbacks, connections and graphics
//! devices.

use super::{Chunk, Copy};
use crate::heap::copied::{Noted, Part};
use crate::heap::variables::PROBE;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow, copied, filled};
use profile_runtime::callbacks::{callbacks, is_callback};
use profile_runtime::connections::{CONNECTIONS, connections, first_words, is_table, table_at};
use profile_runtime::devices::{self, DEVICES, devices};
use profile_runtime::memory::{MEMORY_PAGE, Memory, at};
use profile_runtime::objects::EXTPTRSXP;
use std::ops::Range;

impl<M: Memory> Copy<'_, M> {
    /// Copies tables, callbacks, connections and devices that variables refer to, see [`crate::heap::variables`]. `from` is the
    /// number of the first part with these variables.
    pub(super) fn tables(
        &mut self,
        from: usize,
        variables: &[Range<u64>],
        release: u64,
    ) -> Result<()> {
        let (mut found, mut of_connections, mut of_devices) = (Vec::new(), Vec::new(), Vec::new());
        let is_variable = |word: u64| variables.iter().any(|part| part.contains(&word));
        for part in self.copied.parts.get(from..).unwrap_or_default() {
            let words = part.bytes.chunks_exact(8).map(|word| at(word, 0));
            let words = words.try_vec()?;
            for (row, &word) in words.iter().enumerate() {
                let table = words.get(row..).unwrap_or_default();
                if is_table(table) {
                    let end = table.len().min(CONNECTIONS);
                    of_connections.try_push(copied(&table[..end])?)?;
                }
                if devices::is_table(table, is_variable) {
                    of_devices.try_push(copied(&table[..DEVICES])?)?;
                }
                if word >= MEMORY_PAGE
                    && word % 8 == 0
                    && !is_variable(word)
                    && !self.is_in_chunk(word)
                {
                    found.try_push(word)?;
                }
            }
        }
        for table in of_connections {
            self.note(|memory, chunks| has_connections(memory, chunks, &table))?;
        }
        for table in of_devices {
            self.note(|memory, chunks| {
                let is_object = |address| is_in(chunks, address);
                Ok(!devices(memory, &table, is_object)?.is_empty())
            })?;
        }
        for address in found {
            let mut bytes = filled(PROBE, 0)?;
            if !self.memory.read(address, &mut bytes) {
                continue;
            }
            if is_callback(&bytes, release) {
                self.note(|memory, chunks| {
                    let is_object = |data| is_in(chunks, data);
                    Ok(!callbacks(memory, address, release, is_object)?.is_empty())
                })?;
            }
            if is_table(&first_words(&bytes)) {
                self.note(|memory, chunks| match table_at(memory, address) {
                    Some(table) => has_connections(memory, chunks, &table),
                    None => Ok(false),
                })?;
            }
            if !self.are_in_chunks(&bytes) {
                continue;
            }
            loop {
                // Up to the end of a page, since the next one may not be readable.
                let start = address + bytes.len() as u64;
                let mut step = filled((MEMORY_PAGE - start % MEMORY_PAGE) as usize, 0)?;
                if !self.memory.read(start, &mut step) {
                    break;
                }
                bytes.try_extend(&step)?;
                if !self.are_in_chunks(&step) {
                    break;
                }
            }
            self.copied.parts.try_push(Part { address, bytes })?;
        }
        Ok(())
    }

    /// Copies what `finds` reads, if it finds something.
    fn note(&mut self, finds: impl FnOnce(&mut Noted<M>, &[Chunk]) -> Result<bool>) -> Result<()> {
        let mut noted = Noted::new(&mut *self.memory);
        if finds(&mut noted, &self.chunks)? {
            let parts = noted.parts()?;
            self.copied.parts.try_extend_from(parts.into_iter())?;
        }
        Ok(())
    }

    fn are_in_chunks(&self, words: &[u8]) -> bool {
        words
            .chunks_exact(8)
            .all(|word| self.is_in_chunk(at(word, 0)))
    }

    fn is_in_chunk(&self, address: u64) -> bool {
        is_in(&self.chunks, address)
    }
}

fn has_connections(memory: &mut impl Memory, chunks: &[Chunk], table: &[u64]) -> Result<bool> {
    // Vectors of data may be outside of pages.
    let has_type = |address, type_| type_ != EXTPTRSXP || is_in(chunks, address);
    Ok(!connections(memory, table, has_type)?.is_empty())
}

fn is_in(chunks: &[Chunk], address: u64) -> bool {
    let after = chunks.partition_point(|chunk| chunk.start <= address);
    let before = after.checked_sub(1).and_then(|before| chunks.get(before));
    before.is_some_and(|chunk| address < chunk.end)
}
