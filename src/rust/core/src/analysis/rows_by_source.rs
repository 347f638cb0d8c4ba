//! The rows of the samples of each source, for formats that write one source after the other, and to
//! compare sources.

use crate::error::Result;
use crate::limits::memory::{TryGrow, sort_by_key};
use crate::model::{Profile, SourceId};

pub struct RowsBySource {
    /// Sorted by source, in the original order within each.
    rows: Vec<usize>,
    /// The end of the rows of each source.
    ends: Vec<usize>,
}

impl RowsBySource {
    pub fn new(profile: &Profile) -> Result<RowsBySource> {
        let source = &profile.samples.source;
        let mut rows = Vec::new();
        rows.try_extend_from(0..source.len())?;
        if !source.iter().is_sorted() {
            sort_by_key(&mut rows, |&row| source[row])?;
        }
        let mut ends = Vec::new();
        for id in profile.source_ids() {
            ends.try_push(rows.partition_point(|&row| source[row] <= id))?;
        }
        Ok(RowsBySource { rows, ends })
    }

    pub fn of(&self, source: SourceId) -> &[usize] {
        let start = source.row().checked_sub(1).map_or(0, |row| self.ends[row]);
        &self.rows[start..self.ends[source.row()]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;

    #[test]
    fn rows_keep_their_order_within_a_source() {
        let mut profile = Profile::default();
        let ids: Vec<_> = (0..4)
            .map(|_| profile.add_source(Source::default()).unwrap())
            .collect();
        let stack = profile.stacks.intern(&[]).unwrap();
        for source in [2, 0, 2, 3, 0] {
            profile.samples.source.try_push(ids[source]).unwrap();
            profile.samples.stack.push(stack);
        }
        let rows = RowsBySource::new(&profile).unwrap();
        let all: Vec<_> = ids.iter().map(|&id| rows.of(id)).collect();
        assert_eq!(all, [&[1, 4][..], &[], &[0, 2], &[3]]);
    }
}
