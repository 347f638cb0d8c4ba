//! `sample_locations`: the stacks of samples, a row for each frame. This is the largest table; in
//! the model, each distinct stack is stored once.

use super::column::{ColumnInfo, Type};
use super::ids::Ids;
use super::input::{TableInput, find, integers, invalid};
use super::key::Key;
use super::read::unresolved;
use super::reading::{Reading, Runs, SampleStacks};
use super::sink::{Computed, Sink, fill};
use super::table::{Declared, Table, TableInfo, Version};
use super::write::id_of;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryGrow, filled};
use crate::message;
use crate::model::{self, Profile};

const TABLE: &str = "sample_locations";

pub struct SampleLocationTable {
    info: TableInfo,
}

pub static SAMPLE_LOCATIONS: SampleLocationTable = SampleLocationTable {
    info: TableInfo {
        key: &["sample_id", "depth"],
        ..TableInfo::new(TABLE, "a frame of a sample's stack")
    },
};

/// The names of the columns.
pub const FRAME_COLUMNS: [&str; 3] = ["sample_id", "depth", "location_id"];

const COLUMNS: [ColumnInfo; 3] = [
    ColumnInfo::new(FRAME_COLUMNS[0], Type::Integer, "the sample"),
    ColumnInfo::new(
        FRAME_COLUMNS[1],
        Type::Integer,
        "the position in the stack: 1 for the innermost frame, the function that was running",
    ),
    ColumnInfo::new(FRAME_COLUMNS[2], Type::Integer, "the location"),
];

impl Declared for SampleLocationTable {
    fn info(&self) -> &TableInfo {
        &self.info
    }

    fn columns(&self) -> Box<dyn Iterator<Item = &ColumnInfo> + '_> {
        Box::new(COLUMNS.iter())
    }
}

impl Table for SampleLocationTable {
    fn write(&self, profile: &Profile, _: Version, sink: &mut dyn Sink, stop: Stop) -> Result<()> {
        let stacks = &profile.stacks;
        let samples = &profile.samples.stack;
        let rows = samples.iter().map(|stack| stacks.get(*stack).len()).sum();
        sink.start(TABLE, rows)?;
        let locations = profile.locations.len();
        let mut make = || model::Frames::new(stacks, samples, locations, stop);
        if sink.computed(Computed::Frames(&FRAME_COLUMNS, &mut make))? {
            return sink.finish();
        }
        sink.integers(&FRAME_COLUMNS, &mut |columns| {
            let [sample_id, depth, location_id] = columns else {
                return Ok(());
            };
            let mut space = Vec::new();
            let mut end = 0;
            for (sample, &stack) in samples.iter().enumerate() {
                cancel::at_row(sample, stop)?;
                let frames = stacks.get(stack).unpacked(&mut space)?;
                let rows = end..end + frames.len();
                end = rows.end;
                sample_id[rows.clone()].fill(id_of(sample));
                fill(&mut depth[rows.clone()], 1..)?;
                let ids = frames.iter().map(|frame| id_of(frame.row()));
                fill(&mut location_id[rows], ids)?;
            }
            Ok(())
        })?;
        sink.finish()
    }

    fn read<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        _: Version,
        stop: Stop,
    ) -> Result<()> {
        let ids = [Key::Sample, Key::Location].map(|key| reading.ids(key));
        if let Some(frames) = known(input, ids, stop)? {
            reading.stacks = SampleStacks::Known(frames);
            return Ok(());
        }
        let [sample_id, depth, location_id] = &COLUMNS;
        let column = |column| Ok::<_, Error>(integers(find(input, TABLE, column)?));
        let rows = Rows {
            sample_id: column(sample_id)?.unwrap_or_default(),
            depth: column(depth)?.unwrap_or_default(),
            location_id: column(location_id)?.unwrap_or_default(),
        };
        let ids = (reading.ids(Key::Sample), reading.ids(Key::Location));
        let (Some(samples), Some(locations)) = ids else {
            return Ok(());
        };
        let runs = rows.runs(reading.pending.samples, samples, locations, stop)?;
        reading.stacks = SampleStacks::Rows(runs);
        Ok(())
    }
}

/// The frames from which a table was created, if it is unchanged, samples still have the same ids,
/// and each location of a stack still exists.
pub(crate) fn known<'a>(
    input: &dyn TableInput<'a>,
    [samples, locations]: [Option<&Ids>; 2],
    stop: Stop,
) -> Result<Option<&'a model::Frames>> {
    let (Some(Ids::Sequence(samples)), Some(locations)) = (samples, locations) else {
        return Ok(None);
    };
    let Some(frames) = input.frames(&FRAME_COLUMNS) else {
        return Ok(None);
    };
    let is_whole = input.rows() == frames.rows() && frames.of_sample().len() == *samples;
    let is_known = is_whole
        && match locations {
            Ids::Sequence(count) if frames.locations() <= *count => true,
            _ => {
                let mut ids = (1..).zip(frames.used(stop)?);
                ids.all(|(id, used)| !used || locations.row(id).is_some())
            }
        };
    Ok(is_known.then_some(frames))
}

/// The columns of the table that is read.
struct Rows<'a> {
    sample_id: &'a [i32],
    depth: &'a [i32],
    location_id: &'a [i32],
}

impl<'a> Rows<'a> {
    fn runs(&self, count: usize, samples: &Ids, locations: &Ids, stop: Stop) -> Result<Runs<'a>> {
        let (ids, depths) = (self.sample_id, self.depth);
        let mut of_sample = filled(count, (0, 0))?;
        let mut sorted = true;
        let mut row = 0;
        let mut next_sample = 0;
        let mut next_check = ROWS;
        while row < ids.len() {
            let id = ids[row];
            let Some(sample) = samples.row(id) else {
                return Err(unresolved(TABLE, "sample_id", row, id, Key::Sample));
            };
            sorted &= sample >= next_sample;
            next_sample = sample + 1;
            let start = row;
            let mut depth = 0;
            while row < ids.len() && ids[row] == id {
                if depths[row] < 1 {
                    let rule = "must be 1 (innermost) or more, and not NA";
                    return Err(invalid(TABLE, "depth", row, rule));
                }
                sorted &= depths[row] > depth;
                depth = depths[row];
                let location = self.location_id[row];
                if locations.row(location).is_none() {
                    let key = Key::Location;
                    return Err(unresolved(TABLE, "location_id", row, location, key));
                }
                row += 1;
            }
            of_sample[sample] = (start, row);
            if row > next_check {
                next_check = row + ROWS;
                cancel::check(stop)?;
            }
        }
        let runs = Runs {
            of_sample,
            order: None,
            locations: self.location_id,
        };
        if sorted {
            Ok(runs)
        } else {
            self.sort(runs, samples)
        }
    }

    /// Sorts the rows of a table that is not in the order (sample, depth), in which readers create it.
    fn sort(&self, mut runs: Runs<'a>, samples: &Ids) -> Result<Runs<'a>> {
        let (ids, depths) = (self.sample_id, self.depth);
        let mut order = Vec::new();
        order.try_extend_from(0..ids.len() as u32)?;
        let key = |row: u32| {
            let row = row as usize;
            (samples.row(ids[row]), depths[row], row)
        };
        order.sort_unstable_by_key(|&row| key(row));
        runs.of_sample.fill((0, 0));
        for (at, &row) in order.iter().enumerate() {
            let (sample, depth, row) = key(row);
            if let Some(&before) = at.checked_sub(1).and_then(|b| order.get(b)) {
                let (other, same_depth, _) = key(before);
                if other == sample && same_depth == depth {
                    let rule = message!("duplicate depth {depth} in sample {}", ids[row]);
                    return Err(invalid(TABLE, "depth", row, rule));
                }
            }
            if let Some(run) = sample.and_then(|s| runs.of_sample.get_mut(s)) {
                if run.1 == 0 {
                    run.0 = at;
                }
                run.1 = at + 1;
            }
        }
        runs.order = Some(order);
        Ok(runs)
    }
}
