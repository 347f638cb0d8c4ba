//! Locations: one row for each distinct (function, line).
//!
//! The line is the one that runs inside the function (for the innermost frame)
//! or that made the call (for all others). Line 0 is unknown; no function means
//! an address without a symbol.

use super::functions::FunctionId;
use super::interner::{Interner, next_row};
use crate::error::Result;
use crate::memory::TryGrow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub(crate) u32);

impl LocationId {
    /// The row in its table, counted from 0.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    pub function: Option<FunctionId>,
    pub line: Option<i32>,
}

#[derive(Debug, Default, Clone)]
pub struct Locations {
    pub(crate) function: Vec<Option<FunctionId>>,
    pub(crate) line: Vec<Option<i32>>,
    index: Interner,
}

impl Locations {
    pub fn intern(&mut self, location: Location) -> Result<LocationId> {
        let hash = self.index.hash(location);
        if let Some(row) = self.index.find(hash, |row| self.row(row) == location) {
            return Ok(LocationId(row));
        }
        let row = next_row(self.function.len(), "locations")?;
        self.function.try_push(location.function, "locations")?;
        self.line.try_push(location.line, "locations")?;
        self.index.insert(hash, row)?;
        Ok(LocationId(row))
    }

    pub fn get(&self, id: LocationId) -> Location {
        self.row(id.0)
    }

    fn row(&self, row: u32) -> Location {
        let row = row as usize;
        Location {
            function: self.function[row],
            line: self.line[row],
        }
    }

    pub fn len(&self) -> usize {
        self.function.len()
    }

    pub fn is_empty(&self) -> bool {
        self.function.is_empty()
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = LocationId> + use<> {
        (0..self.function.len() as u32).map(LocationId)
    }
}
