//! From the model to the columns of version "1.0".

use super::origin::Origin;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::known_types::SAMPLES;
use crate::model::{LocationLists, Profile, Values};

/// The columns that version "1.0" has instead of the tables about samples and sources of version
/// "2.0".
#[derive(Debug)]
pub struct ColumnsV1 {
    /// The count of each sample.
    pub value: Vec<i32>,
    /// The stack of each sample.
    pub stack_of: Vec<i32>,
    /// The location ids of the distinct stacks, one stack after the other, innermost first.
    pub location_ids: Vec<i32>,
    /// The end of each stack in `location_ids`.
    pub ends: Vec<usize>,
    pub origin: Origin<String>,
}

/// The columns of a profile. Samples without a count, or with a count of 0, are omitted.
pub fn to_v1(profile: &Profile, stop: Stop) -> Result<ColumnsV1> {
    let Some(counts) = counts(profile) else {
        return Err(Error::LossyV1(message!(
            "Version \"1.0\" contains counts of samples, but no value type of this profile has \
             the unit `count`."
        )));
    };
    let mut columns = ColumnsV1 {
        value: Vec::new(),
        stack_of: Vec::new(),
        location_ids: Vec::new(),
        ends: Vec::new(),
        origin: Origin::of(profile)?,
    };
    let distinct = columns.add_stacks(profile)?;
    for (row, (&count, stack)) in counts.zip(&profile.samples.stack).enumerate() {
        cancel::at_row(row, stop)?;
        if count.is_nan() || count == 0.0 {
            continue;
        }
        if count < 0.0 || count > f64::from(i32::MAX) || count.fract() != 0.0 {
            return Err(Error::LossyV1(message!(
                "Sample {} has the count {count}, but version \"1.0\" contains only integers from 1 \
                 to {}.",
                row + 1,
                i32::MAX
            )));
        }
        columns.value.try_push(count as i32)?;
        columns.stack_of.try_push(distinct[stack.row()])?;
    }
    Ok(columns)
}

/// The values of type `samples` in `count`, else of the first type in `count`.
fn counts(profile: &Profile) -> Option<impl Iterator<Item = &f64>> {
    let is_count = |values: &&Values| values.type_.unit == SAMPLES.unit;
    let first = || profile.values.iter().find(is_count);
    let counts = profile.counts().or_else(first);
    let is_known = counts.is_some() || profile.samples.is_empty();
    is_known.then(|| counts.into_iter().flat_map(|values| values.column.iter()))
}

impl ColumnsV1 {
    /// Adds each distinct stack, and returns the index of the distinct stack for each stack of the
    /// profile. Not every reader merges equal stacks.
    fn add_stacks(&mut self, profile: &Profile) -> Result<Vec<i32>> {
        let mut distinct = LocationLists::default();
        let mut space = Vec::new();
        let mut rows = Vec::new();
        for id in profile.stacks.ids() {
            let stack = profile.stacks.get(id).unpacked(&mut space)?;
            let row = distinct.intern(stack)?.row();
            rows.try_push(row as i32)?;
            if row == self.ends.len() {
                for location in stack {
                    let id = location.row() as i32 + 1;
                    self.location_ids.try_push(id)?;
                }
                self.ends.try_push(self.location_ids.len())?;
            }
        }
        Ok(rows)
    }
}
