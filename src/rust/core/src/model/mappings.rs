//! Mappings: one row for each part of a file (a program, a library) that was
//! mapped into memory. The first one is the program itself.

use super::Profile;
use super::addresses::{Address, Addresses};
use super::native_id::NativeId;
use super::strings::StringId;
use crate::collections::{id, next_row};
use crate::error::Result;
use crate::limits::memory::{TryGrow, sort_by_key};

id!(MappingId, "mappings");

/// The attribute of a mapping with the hash of its file that OpenTelemetry defines: a build id for
/// files with and without one of their linker.
pub const FILE_HASH: &str = "process.executable.build_id.htlhash";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The first address, and the one after the last.
    pub start: u64,
    pub limit: u64,
    /// The offset in the file that is mapped to `start`.
    pub offset: u64,
    pub filename: StringId,
    pub build_id: StringId,
    pub symbols: Symbols,
    pub native_id: Option<NativeId>,
}

/// Which information on the functions of a mapping is final. A viewer may look up the rest in the
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Symbols {
    pub functions: bool,
    pub filenames: bool,
    pub line_numbers: bool,
    pub inline_frames: bool,
}

/// A mapping and its position among others.
pub struct PlacedMapping {
    pub position: usize,
    pub mapping: Mapping,
}

impl Profile {
    /// Adds mappings between those from row `first`: `position` counts all mappings from there, old and new. If there
    /// are fewer, a mapping becomes the last.
    pub fn place_mappings(&mut self, first: usize, mut placed: Vec<PlacedMapping>) -> Result<()> {
        sort_by_key(&mut placed, |placed| placed.position)?;
        let old = self.mappings.split_off(first);
        // The new ids of the old mappings.
        let mut moved = Vec::new();
        let mut placed = placed.into_iter().peekable();
        let mut old = old.into_iter().peekable();
        loop {
            let position = self.mappings.len() - first;
            let id = MappingId(next_row(self.mappings.len(), "mappings")?);
            let is_due = |placed: &PlacedMapping| placed.position <= position;
            match placed.next_if(|placed| is_due(placed) || old.peek().is_none()) {
                Some(new) => self.mappings.try_push(new.mapping)?,
                None => match old.next() {
                    Some(mapping) => {
                        self.mappings.try_push(mapping)?;
                        moved.try_push(id)?;
                    }
                    None => break,
                },
            }
        }
        let new_id = |id: MappingId| match id.row().checked_sub(first) {
            Some(row) => moved.get(row).copied().unwrap_or(id),
            None => id,
        };
        for (id, _) in &mut self.mapping_attributes {
            *id = new_id(*id);
        }
        // Different mappings stay different, so each address keeps its row.
        let mut addresses = Addresses::default();
        for address in self.addresses.iter() {
            addresses.intern(Address {
                mapping: address.mapping.map(new_id),
                ..*address
            })?;
        }
        self.addresses = addresses;
        Ok(())
    }
}
