//! Stacks: one row for each list of locations, innermost first.
//!
//! Real profiles repeat their stacks (a million samples, thirteen thousand
//! stacks), so a sample is one [`StackId`] and all work on stacks is done once
//! for each row here. The lists stand end to end in one buffer.

use super::interner::{Interner, next_row};
use super::locations::LocationId;
use crate::error::Result;
use crate::limits::memory::TryGrow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub(crate) u32);

impl StackId {
    /// The row in its table, counted from 0.
    pub fn row(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default, Clone)]
pub struct Stacks {
    frames: Vec<LocationId>,
    ends: Vec<usize>,
    index: Interner,
}

impl Stacks {
    pub fn intern(&mut self, stack: &[LocationId]) -> Result<StackId> {
        let hash = self.index.hash(stack);
        if let Some(row) = self.index.find(hash, |row| self.row(row) == stack) {
            return Ok(StackId(row));
        }
        let id = self.push(stack)?;
        self.index.insert(hash, id.0)?;
        Ok(id)
    }

    /// Adds a stack even if an equal one is there: whoever meets each stack once
    /// saves the look-up.
    pub fn push(&mut self, stack: &[LocationId]) -> Result<StackId> {
        let row = next_row(self.ends.len(), "stacks")?;
        self.frames.try_extend(stack, "stacks")?;
        self.ends.try_push(self.frames.len(), "stacks")?;
        Ok(StackId(row))
    }

    /// The locations of a stack, innermost first.
    #[inline]
    pub fn get(&self, id: StackId) -> &[LocationId] {
        self.row(id.0)
    }

    #[inline]
    fn row(&self, row: u32) -> &[LocationId] {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.frames[start..self.ends[row]]
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = StackId> + use<> {
        (0..self.ends.len() as u32).map(StackId)
    }
}
