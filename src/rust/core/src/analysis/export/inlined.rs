//! Inlined calls: rows of the model that are one location of other formats.
//!
//! A location of theirs has a line for each function that was inlined at its
//! address, where the model has one row for each.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use crate::model::{LocationId, Profile, Stacks};

/// Cuts stacks into the rows of one location of the format each.
pub struct Cutter<'a> {
    profile: &'a Profile,
    /// By row of the locations.
    inlined: Vec<bool>,
    pub any_inlined: bool,
}

impl<'a> Cutter<'a> {
    pub fn new(profile: &'a Profile) -> Result<Cutter<'a>> {
        let mut inlined = Vec::new();
        inlined.try_extend_from(profile.locations.iter().map(|l| l.inlined), "locations")?;
        Ok(Cutter {
            profile,
            any_inlined: inlined.contains(&true),
            inlined,
        })
    }

    #[inline]
    pub fn runs<'s>(&'s self, stack: &'s [LocationId]) -> impl Iterator<Item = &'s [LocationId]> {
        stack.chunk_by(|&inner, &outer| {
            self.inlined[inner.row()] && self.profile.is_inlined_into(inner, outer)
        })
    }
}

/// Ids of runs of rows; those of a single row, as most are, need no look-up.
pub struct RunIds {
    /// By row; 0 is none.
    single: Vec<u64>,
    several: Stacks,
    several_ids: Vec<u64>,
}

impl RunIds {
    pub fn new(profile: &Profile) -> Result<RunIds> {
        let mut single = Vec::new();
        single.try_fill(profile.locations.len(), 0, "ids")?;
        Ok(RunIds {
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
    pub fn get(&mut self, run: &[LocationId]) -> Result<u64> {
        match *run {
            [row] => Ok(self.single[row.row()]),
            _ => {
                let row = self.several.intern(run)?.row();
                Ok(self.several_ids.get(row).copied().unwrap_or(0))
            }
        }
    }

    pub fn set(&mut self, run: &[LocationId], id: u64) -> Result<()> {
        match *run {
            [row] => self.single[row.row()] = id,
            _ => {
                let row = self.several.intern(run)?.row();
                if self.several_ids.len() <= row {
                    self.several_ids.try_fill(row + 1, 0, "ids")?;
                }
                self.several_ids[row] = id;
            }
        }
        Ok(())
    }
}
