//! Groups locations of the model that form one location in other formats.
//!
//! If functions were inlined at an address, the model has one location for each of them. Other
//! formats have one location for the address, with a line for each function.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::{LocationId, LocationLists, Profile};

/// Splits stacks into slices, each of which is one location of the format.
pub struct Inlining<'a> {
    profile: &'a Profile,
    /// By row of the locations.
    inlined: Vec<bool>,
    pub any: bool,
}

impl<'a> Inlining<'a> {
    pub fn new(profile: &'a Profile) -> Result<Inlining<'a>> {
        let mut inlined = Vec::new();
        inlined.try_extend_from(profile.locations.iter().map(|l| l.inlined))?;
        Ok(Inlining {
            profile,
            any: inlined.contains(&true),
            inlined,
        })
    }

    #[inline]
    pub fn split<'s>(&'s self, stack: &'s [LocationId]) -> impl Iterator<Item = &'s [LocationId]> {
        stack.chunk_by(|&inner, &outer| {
            self.inlined[inner.row()] && self.profile.is_inlined_into(inner, outer)
        })
    }
}

/// The ids of the locations of a format. Most consist of a single row of the model and are found by its
/// number, without a hash.
pub struct SplitIds {
    /// By row; 0 if there is none.
    single: Vec<u64>,
    several: LocationLists,
    several_ids: Vec<u64>,
}

impl SplitIds {
    pub fn new(profile: &Profile) -> Result<SplitIds> {
        let mut single = Vec::new();
        single.try_fill(profile.locations.len(), 0)?;
        Ok(SplitIds {
            single,
            several: LocationLists::default(),
            several_ids: Vec::new(),
        })
    }

    /// The id of a location of a single row; 0 if there is none.
    #[inline]
    pub fn single(&self, row: LocationId) -> u64 {
        self.single[row.row()]
    }

    /// Whether all locations have a single row, which is their id, counted from 1.
    pub fn are_rows(&self) -> bool {
        self.several.is_empty() && self.single.iter().zip(1..).all(|(&id, row)| id == row)
    }

    /// The id of a location; 0 if there is none.
    #[inline]
    pub fn get(&mut self, rows: &[LocationId]) -> Result<u64> {
        match *rows {
            [row] => Ok(self.single[row.row()]),
            _ => {
                let row = self.several.intern(rows)?.row();
                Ok(self.several_ids.get(row).copied().unwrap_or(0))
            }
        }
    }

    pub fn set(&mut self, rows: &[LocationId], id: u64) -> Result<()> {
        match *rows {
            [row] => self.single[row.row()] = id,
            _ => {
                let row = self.several.intern(rows)?.row();
                if self.several_ids.len() <= row {
                    self.several_ids.try_fill(row + 1, 0)?;
                }
                self.several_ids[row] = id;
            }
        }
        Ok(())
    }
}
