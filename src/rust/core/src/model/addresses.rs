//! Addresses: where in memory the code of a location is.
//!
//! One address stands for several locations where functions were inlined: the
//! innermost first, each of them marked as inlined into the next. Interpreted
//! code, R's above all, has none.

use super::interner::{Interner, next_row};
use super::mappings::MappingId;
use crate::error::Result;
use crate::limits::memory::TryGrow;
use std::num::NonZeroU64;

/// The id that a row had in its file, where that was not its number there.
pub type NativeId = NonZeroU64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddressId(pub(crate) u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Address {
    pub mapping: Option<MappingId>,
    /// 0 is none.
    pub address: u64,
    /// Whether several functions share this code, so that it may be another one
    /// than it seems (identical code folding).
    pub is_folded: bool,
    pub native_id: Option<NativeId>,
}

#[derive(Debug, Default, Clone)]
pub struct Addresses {
    rows: Vec<Address>,
    index: Interner,
}

impl Addresses {
    /// `None` for one that says nothing.
    pub fn intern(&mut self, address: Address) -> Result<Option<AddressId>> {
        if address == Address::default() {
            return Ok(None);
        }
        let hash = self.index.hash(address);
        if let Some(row) = self
            .index
            .find(hash, |row| self.rows[row as usize] == address)
        {
            return Ok(Some(AddressId(row)));
        }
        let row = next_row(self.rows.len(), "addresses")?;
        self.rows.try_push(address, "addresses")?;
        self.index.insert(hash, row)?;
        Ok(Some(AddressId(row)))
    }

    pub fn get(&self, id: AddressId) -> Address {
        self.rows[id.0 as usize]
    }
}
