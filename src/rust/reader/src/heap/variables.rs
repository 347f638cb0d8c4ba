//! Variables of R and of libraries that refer to objects. Their names are unknown, so all their words are searched for
//! addresses of objects.

use super::known::Known;
use super::objects::Objects;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::callbacks::{Callback, callbacks, is_callback};
use profile_runtime::connections::{Connection, connections, first_words, is_table, table_at};
use profile_runtime::devices::{self, Device, devices};
use profile_runtime::memory::{self, MEMORY_PAGE, Memory, at};
use profile_runtime::objects::{SYMSXP, VECSXP};
use std::ops::Range;

/// The most bytes of a stack, or of the variables of a library, that are searched.
const MOST_BYTES: u64 = 256 << 20;
/// The bytes of a table in memory of its own that are checked first.
pub const PROBE: usize = 8 * 32;
/// The bytes by which other structures are recognised.
const START: usize = 24;

/// The words in a range of memory; none of a page that cannot be read.
pub fn words(memory: &mut impl Memory, range: Range<u64>) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let Some(start) = range.start.checked_next_multiple_of(8) else {
        return Ok(found);
    };
    let end = range.end.min(start.saturating_add(MOST_BYTES));
    let mut page = [0; MEMORY_PAGE as usize];
    let mut address = start;
    while address < end {
        let size = (MEMORY_PAGE - address % MEMORY_PAGE).min(end - address);
        let part = page.get_mut(..size as usize).unwrap_or_default();
        if memory.read(address, part) {
            for word in part.chunks_exact(8) {
                found.try_push(at(word, 0))?;
            }
        }
        address += size;
    }
    Ok(found)
}

/// Variables without those that list all objects.
pub fn without(variables: &[Range<u64>], heap: &Range<u64>) -> Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    for range in variables {
        let before = range.start..range.end.min(heap.start);
        let after = range.start.max(heap.end)..range.end;
        let parts = if range.contains(&heap.start) {
            [before, after]
        } else {
            [range.clone(), 0..0]
        };
        for part in parts {
            if !part.is_empty() {
                found.try_push(part)?;
            }
        }
    }
    Ok(found)
}

/// What variables of R refer to.
#[derive(Default)]
pub struct HeldByR {
    /// Objects.
    pub held: Vec<u64>,
    /// Objects in tables, such as the table of symbols. A table is in memory of its own, and all its words are addresses
    /// of objects.
    pub tables: Vec<u64>,
    pub callbacks: Vec<Callback>,
    pub connections: Vec<Connection>,
    pub devices: Vec<Device>,
}

pub fn held_by_r(
    memory: &mut impl Memory,
    variables: &[Range<u64>],
    known: &Known,
    objects: &Objects,
) -> Result<HeldByR> {
    let mut found = HeldByR::default();
    let is_variable = |word: u64| variables.iter().any(|part| part.contains(&word));
    let has_type =
        |address, type_| objects.is_used_at(address) && objects.typed(address, type_).is_some();
    for range in variables {
        let words = words(memory, range.clone())?;
        for (row, &word) in words.iter().enumerate() {
            let table = words.get(row..).unwrap_or_default();
            if is_table(table) && found.connections.is_empty() {
                found.connections = connections(memory, table, has_type)?;
            }
            if found.devices.is_empty() && devices::is_table(table, is_variable) {
                let is_object = |address| objects.is_used_at(address);
                found.devices = devices(memory, table, is_object)?;
            }
            if objects.number(word).is_some() {
                if objects.is_used_at(word) && objects.typed(word, SYMSXP).is_none() {
                    found.held.try_push(word)?;
                }
                continue;
            }
            if word < MEMORY_PAGE
                || word % 8 != 0
                || is_variable(word)
                || word == known.protected.start
            {
                continue;
            }
            let start = memory::array::<START>(memory, word).unwrap_or([0; START]);
            if is_callback(&start, known.release) && found.callbacks.is_empty() {
                let is_list = |data| has_type(data, VECSXP);
                found.callbacks = callbacks(memory, word, known.release, is_list)?;
            }
            if is_table(&first_words(&start)) && found.connections.is_empty() {
                if let Some(table) = table_at(memory, word) {
                    found.connections = connections(memory, &table, has_type)?;
                }
            }
            let mut probe = [0; PROBE];
            let is_table = memory.read(word, &mut probe)
                && probe
                    .chunks_exact(8)
                    .all(|word| objects.is_used_at(at(word, 0)));
            if is_table {
                add_table(memory, word, objects, &mut found.tables)?;
            }
        }
    }
    Ok(found)
}

/// Adds the objects of a table, which ends before the first word that is not the address of an object.
fn add_table(
    memory: &mut impl Memory,
    table: u64,
    objects: &Objects,
    found: &mut Vec<u64>,
) -> Result<()> {
    let mut address = table;
    // Up to the end of a page, since the next one may not be readable.
    let mut page = [0; MEMORY_PAGE as usize];
    loop {
        let size = MEMORY_PAGE - address % MEMORY_PAGE;
        let part = page.get_mut(..size as usize).unwrap_or_default();
        if !memory.read(address, part) {
            return Ok(());
        }
        for entry in part.chunks_exact(8).map(|entry| at(entry, 0)) {
            if !objects.is_used_at(entry) {
                return Ok(());
            }
            if entry != objects.nil {
                found.try_push(entry)?;
            }
        }
        address += size;
    }
}
