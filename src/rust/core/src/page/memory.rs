//! The memory in use at the samples of a source: what R's objects take, garbage included, as R's profiler writes it at
//! each sample.
//!
//! The page draws it as a curve, which is a few hundred pixels wide. So it gets the largest sum of each of at most
//! [`MOST_PARTS`] equal parts of the samples, whatever their number.

use crate::error::Result;
use crate::json::Json;
use crate::limits::memory::{TryGrow, with_room};
use crate::model::known_types::{RPROF_LARGE, RPROF_NODES, RPROF_SMALL};
use crate::model::{Profile, Values};

const MOST_PARTS: usize = 1_000;

/// The columns of the three kinds of memory.
pub struct Levels<'p>([&'p Values; 3]);

impl<'p> Levels<'p> {
    /// `None` if the profile does not have them.
    pub fn of(profile: &'p Profile) -> Option<Levels<'p>> {
        let known = |known| profile.known(known);
        Some(Levels([
            known(&RPROF_SMALL)?,
            known(&RPROF_LARGE)?,
            known(&RPROF_NODES)?,
        ]))
    }

    /// The sum at a sample, NaN if it is unknown.
    fn at(&self, row: u32) -> f64 {
        self.0.iter().map(|v| v.column[row as usize]).sum()
    }

    /// Writes the field `memory` of samples in this order, unless it is unknown for all of them.
    pub fn write(&self, rows: &[u32], json: &mut Json) -> Result<()> {
        let each = rows.len().div_ceil(MOST_PARTS).max(1);
        let mut bytes = with_room(rows.len().div_ceil(each))?;
        let mut is_known = false;
        for part in rows.chunks(each) {
            let largest = part.iter().map(|&row| self.at(row)).fold(0.0, f64::max);
            is_known = is_known || largest > 0.0;
            bytes.try_push(largest)?;
        }
        if !is_known {
            return Ok(());
        }
        json.field("memory")?.object(|json| {
            json.field("samples")?.integer(each as i64)?;
            json.field("bytes")?.numbers(bytes.into_iter())
        })
    }
}
