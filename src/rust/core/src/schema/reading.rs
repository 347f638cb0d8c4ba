//! The state while the tables of a profile are read: the profile so far, the ids of its tables, and
//! columns that are needed together with a later one.

use super::column::{ColumnInfo, Type};
use super::ids::Ids;
use super::input::{self, NA, TableInput, Text, find};
use super::key::Key;
use super::write::id_of;
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::memory::{TryGrow, with_room};
use crate::model::{Frames, LocationId, Profile, StringId};

/// A profile whose tables are being read, or were read.
pub struct Reading<'a> {
    /// The profile without the stacks of its samples, see [`SampleStacks`].
    pub profile: Profile,
    ids: [Option<Ids>; Key::ALL.len()],
    pub(super) pending: Pending<'a>,
    pub stacks: SampleStacks<'a>,
}

impl<'a> Reading<'a> {
    pub fn new() -> Result<Reading<'a>> {
        let mut profile = Profile::default();
        profile.strings.intern("")?;
        Ok(Reading {
            profile,
            ids: [const { None }; Key::ALL.len()],
            pending: Pending::default(),
            stacks: SampleStacks::Rows(Runs::default()),
        })
    }

    /// Reads the ids of a table, to which other tables may refer.
    pub fn read_ids(&mut self, key: Key, input: &dyn TableInput<'a>) -> Result<()> {
        let ids = if input.is_counted(key.name(), 1)? {
            Ids::Sequence(input.rows())
        } else {
            let column = ColumnInfo::new(key.name(), Type::Integer, "");
            let ids = input::integers(find(input, key.table(), &column)?).unwrap_or_default();
            if key == Key::Sample {
                self.pending.ids = ids;
            }
            Ids::new(key.table(), key.name(), ids)?
        };
        if key == Key::Sample {
            self.pending.samples = input.rows();
        }
        self.ids[key as usize] = Some(ids);
        Ok(())
    }

    /// The row of an id, counted from 0.
    pub fn row_of(&self, key: Key, id: i32) -> Option<usize> {
        self.ids[key as usize].as_ref()?.row(id)
    }

    /// The index of the ids of a table, to find many rows.
    pub(super) fn ids(&self, key: Key) -> Option<&Ids> {
        self.ids[key as usize].as_ref()
    }

    /// Whether the ids of a table are 1, 2, 3, ….
    pub fn has_row_ids(&self, key: Key) -> bool {
        matches!(self.ids(key), Some(Ids::Sequence(_)))
    }

    /// The current row of a location of [`SampleStacks::Known`].
    pub fn location_now(&self, location: LocationId) -> Result<Option<LocationId>> {
        let row = self.row_of(Key::Location, id_of(location.row()));
        row.map(|row| Ok(LocationId(next_row(row, "locations")?)))
            .transpose()
    }

    /// Passes the frames of a sample to `each`, innermost first: the row in `sample_locations`
    /// and the location.
    pub fn each_frame(
        &self,
        sample: usize,
        mut each: impl FnMut(usize, LocationId) -> Result<()>,
    ) -> Result<()> {
        match &self.stacks {
            SampleStacks::Known(frames) => {
                let (mut rows, stack) = frames.of(sample);
                stack.try_for_each(|location| {
                    let (row, location) = (rows.next(), self.location_now(location)?);
                    row.zip(location)
                        .map_or(Ok(()), |(row, location)| each(row, location))
                })
            }
            SampleStacks::Rows(runs) => runs.rows(sample).try_for_each(|row| {
                let location = self.row_of(Key::Location, runs.locations[row]);
                location.map_or(Ok(()), |location| {
                    each(row, LocationId(next_row(location, "locations")?))
                })
            }),
        }
    }

    /// The distinct texts of a column as strings of the profile.
    pub(super) fn intern(&mut self, text: &Text) -> Result<Vec<StringId>> {
        let mut ids = with_room(text.distinct.len())?;
        for text in &text.distinct {
            ids.try_push(self.profile.strings.intern(text)?)?;
        }
        Ok(ids)
    }

    /// The row of a sample. If the sample was removed, it is the row of the first one with a greater
    /// id. For NA it is the number of samples.
    pub(super) fn sample_at_or_after(&self, id: i32) -> usize {
        let count = self.pending.samples;
        let next = || match self.ids(Key::Sample) {
            _ if id == NA => None,
            Some(Ids::Sequence(_)) => (id < 1).then_some(0),
            _ => self.pending.ids.iter().position(|&other| other > id),
        };
        let row = self.row_of(Key::Sample, id).or_else(next);
        row.unwrap_or(count)
    }
}

/// The text "", for unknown texts; it is interned first.
pub(super) const EMPTY: StringId = StringId(0);

/// `None` for an empty text, in columns in which that means unknown.
pub(super) fn known(text: StringId) -> Option<StringId> {
    (text != EMPTY).then_some(text)
}

/// Columns of samples that are read together with a later one.
#[derive(Default)]
pub struct Pending<'a> {
    /// The number of samples.
    pub samples: usize,
    /// Their ids, if these are not 1, 2, 3, ….
    ids: &'a [i32],
    pub(super) timestamps: &'a [f64],
    pub(super) trace_ids: Option<Vec<Option<StringId>>>,
}

/// The stacks of samples, as the table `sample_locations` has them.
#[derive(Debug)]
pub enum SampleStacks<'a> {
    /// The frames from which the table was created, if it is unchanged. Locations are the rows at that
    /// time, and their ids are these rows, counted from 1.
    Known(&'a Frames),
    /// The rows of any other table.
    Rows(Runs<'a>),
}

impl SampleStacks<'_> {
    /// The number of samples.
    pub fn samples(&self) -> usize {
        match self {
            SampleStacks::Known(frames) => frames.of_sample().len(),
            SampleStacks::Rows(runs) => runs.of_sample.len(),
        }
    }

    /// The number of rows of the table.
    pub fn rows(&self) -> usize {
        match self {
            SampleStacks::Known(frames) => frames.rows(),
            SampleStacks::Rows(runs) => runs.locations.len(),
        }
    }
}

/// The rows of `sample_locations` that form the stack of each sample.
#[derive(Debug, Default)]
pub struct Runs<'a> {
    /// For each sample the range of its rows.
    pub of_sample: Vec<(usize, usize)>,
    /// The rows in the order (sample, depth), if the table is not in that order. The ranges then refer
    /// to this list.
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
