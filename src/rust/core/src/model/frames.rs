//! Frames: the stacks of all samples as rows of the table `sample_locations`, without a row in
//! memory.
//!
//! A million samples have thirty million frames, but often no more than some thousand stacks.
//! So R does not get the rows: its columns compute a value from what is here when R asks for it
//! (the binding's `altrep.rs`). A table that comes back with these columns needs no check and
//! no search for equal stacks.

use super::locations::LocationId;
use super::stacks::{LocationLists, StackId, Stacks};
use crate::error::{Error, Result};
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryGrow, copied, filled, with_room};
use crate::message;
use std::ops::Range;

const WHAT: &str = "the frames of samples";

#[derive(Debug)]
pub struct Frames {
    stacks: LocationLists,
    of_sample: Vec<StackId>,
    /// For each sample the row behind its last frame.
    ends: Vec<u32>,
    /// The locations that there were; those of the stacks are among them.
    locations: usize,
}

impl Frames {
    /// `locations`: how many there are.
    ///
    /// Stacks are shared if none is packed, each is the stack of a sample, and they are in the order
    /// of their first samples, as most readers create them. Otherwise they are copied in that order,
    /// which is the order of reading the table: the computed values are the same.
    pub fn new(
        stacks: &Stacks,
        of_sample: &[StackId],
        locations: usize,
        stop: Stop,
    ) -> Result<Frames> {
        let mut ends = with_room(of_sample.len(), WHAT)?;
        let mut rows = 0;
        let mut seen = 0;
        let mut in_order = true;
        for (sample, &stack) in of_sample.iter().enumerate() {
            if sample % ROWS == 0 {
                cancel::check(stop)?;
            }
            in_order &= stack.row() <= seen;
            seen = seen.max(stack.row() + 1);
            rows += stacks.get(stack).len();
            let end = u32::try_from(rows).map_err(|_| too_many())?;
            ends.try_push(end, WHAT)?;
        }
        if rows > i32::MAX as usize {
            return Err(too_many());
        }
        let is_shareable = in_order && seen == stacks.len();
        let (stacks, of_sample) = match stacks.lists().filter(|_| is_shareable) {
            Some(lists) => (lists.share(), copied(of_sample, WHAT)?),
            None => reordered(stacks, of_sample)?,
        };
        Ok(Frames {
            stacks,
            of_sample,
            ends,
            locations,
        })
    }

    /// The stacks, shared.
    pub fn stacks(&self) -> &LocationLists {
        &self.stacks
    }

    /// The stack of each sample.
    pub fn of_sample(&self) -> &[StackId] {
        &self.of_sample
    }

    /// For each sample the row behind its last frame.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    pub fn rows(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// The rows of a sample, innermost first, and their locations.
    pub fn of(&self, sample: usize) -> (Range<usize>, &[LocationId]) {
        let start = match sample {
            0 => 0,
            _ => self.ends[sample - 1] as usize,
        };
        let rows = start..self.ends[sample] as usize;
        (rows, self.stacks.get(self.of_sample[sample]))
    }

    /// Whether they are those of samples and locations with the ids 1, 2, 3, …, of which there
    /// are so many.
    pub fn fit(&self, samples: usize, locations: usize) -> bool {
        self.of_sample.len() == samples && self.locations <= locations
    }

    /// What they take in memory.
    pub fn bytes(&self) -> usize {
        let (locations, ends) = self.stacks.parts();
        size_of_val(locations)
            + size_of_val(ends)
            + size_of_val(&self.of_sample[..])
            + size_of_val(&self.ends[..])
    }
}

/// Copies the stacks that samples have, in the order of the samples.
fn reordered(stacks: &Stacks, of_sample: &[StackId]) -> Result<(LocationLists, Vec<StackId>)> {
    let mut new: Vec<Option<StackId>> = filled(stacks.len(), None, WHAT)?;
    let mut own = LocationLists::default();
    let mut space = Vec::new();
    let mut renamed = with_room(of_sample.len(), WHAT)?;
    for &stack in of_sample {
        let id = match new[stack.row()] {
            Some(id) => id,
            None => own.push(stacks.get(stack).unpacked(&mut space)?)?,
        };
        new[stack.row()] = Some(id);
        renamed.try_push(id, WHAT)?;
    }
    Ok((own, renamed))
}

#[cold]
fn too_many() -> Error {
    Error::Unsupported(message!(
        "Table `sample_locations` would have more rows than a data frame can have."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(stacks: &[&[u32]], of_sample: &[u32]) -> Frames {
        let mut all = Stacks::default();
        for stack in stacks {
            let stack: Vec<_> = stack.iter().map(|&row| LocationId(row)).collect();
            all.push(&stack).unwrap();
        }
        let of_sample: Vec<_> = of_sample.iter().map(|&row| StackId(row)).collect();
        Frames::new(&all, &of_sample, 3, &|| false).unwrap()
    }

    fn all(frames: &Frames) -> Vec<(Range<usize>, Vec<u32>)> {
        let samples = 0..frames.of_sample().len();
        let all = samples.map(|sample| frames.of(sample));
        all.map(|(rows, stack)| (rows, stack.iter().map(|id| id.0).collect()))
            .collect()
    }

    #[test]
    fn rows_are_those_of_the_table() {
        let two = frames(&[&[0, 1], &[], &[2]], &[0, 1, 0, 2]);
        let rows = [
            (0..2, vec![0, 1]),
            (2..2, vec![]),
            (2..4, vec![0, 1]),
            (4..5, vec![2]),
        ];
        assert_eq!(all(&two), rows);
        assert_eq!((two.rows(), two.ends()), (5, &[2, 2, 4, 5][..]));
        assert!(two.fit(4, 3) && two.fit(4, 4) && !two.fit(4, 2) && !two.fit(5, 3));
        assert_eq!(frames(&[], &[]).rows(), 0);
    }

    #[test]
    fn stacks_in_another_order_and_stacks_without_a_sample_are_copied() {
        let two = frames(&[&[0], &[1], &[2, 2]], &[2, 0, 2]);
        assert_eq!(
            all(&two),
            [(0..2, vec![2, 2]), (2..3, vec![0]), (3..5, vec![2, 2])]
        );
        let ids: Vec<_> = two.of_sample().iter().map(|id| id.row()).collect();
        assert_eq!(ids, [0, 1, 0]);
        assert_eq!(two.stacks().len(), 2);
    }

    #[test]
    fn stacks_are_shared_where_they_can_be() {
        let mut stacks = Stacks::default();
        let ids = [0, 1].map(|row| stacks.push(&[LocationId(row)]).unwrap());
        let is_shared = |of_sample: &[StackId]| {
            let frames = Frames::new(&stacks, of_sample, 2, &|| false).unwrap();
            let lists = stacks.lists().unwrap();
            frames.stacks.parts().0.as_ptr() == lists.parts().0.as_ptr()
        };
        assert!(is_shared(&[ids[0], ids[1], ids[0]]));
        assert!(!is_shared(&[ids[1], ids[0]]));
        assert!(!is_shared(&[ids[0]]));
    }
}
