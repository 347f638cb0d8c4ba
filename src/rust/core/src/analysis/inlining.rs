//! Inlined functions: which rows of the model are one location of other formats.
//!
//! The model has one location for each function that was inlined at an address. Other
//! formats have one location for the address, with a line for each of these functions.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::{LocationId, Profile, Stacks};

/// Splits stacks into slices that are one location of the format each.
pub struct Inlining<'a> {
    profile: &'a Profile,
    /// By row of the locations.
    inlined: Vec<bool>,
    pub any: bool,
}

impl<'a> Inlining<'a> {
    pub fn new(profile: &'a Profile) -> Result<Inlining<'a>> {
        let mut inlined = Vec::new();
        inlined.try_extend_from(profile.locations.iter().map(|l| l.inlined), "locations")?;
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

/// The ids that the locations of a format have. Those of a single row, as most are, need no
/// lookup.
pub struct SplitIds {
    /// By row; 0 is none.
    single: Vec<u64>,
    several: Stacks,
    several_ids: Vec<u64>,
}

impl SplitIds {
    pub fn new(profile: &Profile) -> Result<SplitIds> {
        let mut single = Vec::new();
        single.try_fill(profile.locations.len(), 0, "ids")?;
        Ok(SplitIds {
            single,
            several: Stacks::default(),
            several_ids: Vec::new(),
        })
    }

    /// The id of a single row; 0 is none.
    #[inline]
    pub fn single(&self, row: LocationId) -> u64 {
        self.single[row.row()]
    }

    /// 0 is none.
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
                    self.several_ids.try_fill(row + 1, 0, "ids")?;
                }
                self.several_ids[row] = id;
            }
        }
        Ok(())
    }
}
