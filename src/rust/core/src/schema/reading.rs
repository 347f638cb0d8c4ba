//! The profile while its tables are read: what is known so far, and what waits for a later
//! column or table.

use super::column::{ColumnInfo, Type};
use super::ids::Ids;
use super::input::{self, NA, TableInput, Text, find};
use super::key::Key;
use crate::error::Result;
use crate::limits::memory::{TryGrow, with_room};
use crate::model::{Profile, StringId};

/// What is known so far.
pub struct Reading<'a> {
    /// All of the profile but the stacks of samples, see [`Runs`].
    pub profile: Profile,
    ids: [Option<Ids>; Key::ALL.len()],
    pub(super) pending: Pending<'a>,
    pub runs: Runs<'a>,
}

impl<'a> Reading<'a> {
    pub fn new() -> Result<Reading<'a>> {
        let mut profile = Profile::default();
        profile.strings.intern("")?;
        Ok(Reading {
            profile,
            ids: [const { None }; Key::ALL.len()],
            pending: Pending::default(),
            runs: Runs::default(),
        })
    }

    /// Takes in the ids of a table that others may refer to.
    pub fn read_ids(&mut self, key: Key, input: &dyn TableInput<'a>) -> Result<()> {
        let column = ColumnInfo::new(key.name(), Type::Integer, "");
        let ids = input::integers(find(input, key.table(), &column)?).unwrap_or_default();
        if key == Key::Sample {
            self.pending.ids = ids;
        }
        self.ids[key as usize] = Some(Ids::new(key.table(), key.name(), ids)?);
        Ok(())
    }

    /// The row of an id, counted from 0.
    pub fn row_of(&self, key: Key, id: i32) -> Option<usize> {
        self.ids[key as usize].as_ref()?.row(id)
    }

    /// How to find the rows of many ids.
    pub(super) fn ids(&self, key: Key) -> Option<&Ids> {
        self.ids[key as usize].as_ref()
    }

    /// The distinct texts of a column as strings of the profile.
    pub(super) fn intern(&mut self, text: &Text) -> Result<Vec<StringId>> {
        let mut ids = with_room(text.distinct.len(), "strings")?;
        for text in &text.distinct {
            ids.try_push(self.profile.strings.intern(text)?, "strings")?;
        }
        Ok(ids)
    }

    /// The row of a sample; where that is gone, of the first one with a greater id. NA is the
    /// end.
    pub(super) fn sample_at_or_after(&self, id: i32) -> usize {
        let ids = self.pending.ids;
        if id == NA {
            return ids.len();
        }
        self.row_of(Key::Sample, id).unwrap_or_else(|| {
            let next = ids.iter().position(|&other| other > id);
            next.unwrap_or(ids.len())
        })
    }
}

/// The text "", which rows hold where nothing is known; it is interned first.
pub(super) const EMPTY: StringId = StringId(0);

/// A text of a column in which an empty one is none.
pub(super) fn known(text: StringId) -> Option<StringId> {
    (text != EMPTY).then_some(text)
}

/// Columns of samples that are read together with a later one.
#[derive(Default)]
pub struct Pending<'a> {
    /// The ids of samples.
    pub ids: &'a [i32],
    pub(super) timestamps: &'a [f64],
    pub(super) trace_ids: Option<Vec<Option<StringId>>>,
}

/// Which rows of `sample_locations` make the stack of each sample.
#[derive(Debug, Default)]
pub struct Runs<'a> {
    /// For each sample its first row and the one behind its last.
    pub of_sample: Vec<(usize, usize)>,
    /// The rows in the order (sample, depth), where the table is in another.
    pub order: Option<Vec<u32>>,
    /// The column `location_id`.
    pub locations: &'a [i32],
}

impl Runs<'_> {
    /// The rows of a sample's frames, innermost first.
    pub fn rows(&self, sample: usize) -> impl Iterator<Item = usize> + '_ {
        let (start, end) = self.of_sample[sample];
        (start..end).map(|at| match &self.order {
            Some(order) => order[at] as usize,
            None => at,
        })
    }
}
