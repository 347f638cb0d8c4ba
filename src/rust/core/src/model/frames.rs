//! Frames: the stacks of all samples as rows of the table `sample_locations`, without a row in
//! memory.
//!
//! A million samples have thirty million frames, but often only a few thousand stacks. R therefore
//! does not get the rows: its columns compute values from this struct when R requests them (the
//! binding's `altrep.rs`). A table that R returns with these columns needs no check and no search
//! for equal stacks.

use super::stacks::{Stack, StackId, Stacks};
use crate::collections::add;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, copied, filled, with_room};
use crate::message;
use std::ops::Range;
use std::sync::OnceLock;

#[derive(Debug)]
pub struct Frames {
    stacks: Stacks,
    of_sample: Vec<StackId>,
    /// For each sample the row after its last frame.
    ends: Vec<u32>,
    /// The number of frames of the deepest stack.
    deepest: usize,
    /// The number of locations when the frames were created.
    locations: usize,
    /// Whether each of these locations is in a stack; see [`used()`](Frames::used).
    used: OnceLock<Vec<bool>>,
}

impl Frames {
    /// `locations` is the number of locations of the profile.
    ///
    /// Stacks are shared if each is the stack of a sample, and they are in the order of their first
    /// samples, as most readers create them. Otherwise they are copied in that order, in which they
    /// would be read from the table. The computed values are the same.
    pub fn new(
        stacks: &Stacks,
        of_sample: &[StackId],
        locations: usize,
        stop: Stop,
    ) -> Result<Frames> {
        let mut ends = with_room(of_sample.len())?;
        let mut rows = 0;
        let mut deepest = 0;
        let mut seen = 0;
        let mut in_order = true;
        for (sample, &stack) in of_sample.iter().enumerate() {
            cancel::at_row(sample, stop)?;
            in_order &= stack.row() <= seen;
            seen = seen.max(stack.row() + 1);
            let depth = stacks.get(stack).len();
            deepest = deepest.max(depth);
            rows += depth;
            let end = u32::try_from(rows).map_err(|_| too_many())?;
            ends.try_push(end)?;
        }
        if rows > i32::MAX as usize {
            return Err(too_many());
        }
        let (stacks, of_sample) = if in_order && seen == stacks.len() {
            (stacks.share(), copied(of_sample)?)
        } else {
            reordered(stacks, of_sample)?
        };
        Ok(Frames {
            stacks,
            of_sample,
            ends,
            deepest,
            locations,
            used: OnceLock::new(),
        })
    }

    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// The number of frames of the deepest stack.
    pub fn deepest(&self) -> usize {
        self.deepest
    }

    /// Writes the rows of a stack's locations to `out`, which has room for the deepest stack.
    pub fn unpack(&self, stack: u32, out: &mut [u32]) {
        self.stacks.get(StackId(stack)).fill(out);
    }

    /// The stack of each sample.
    pub fn of_sample(&self) -> &[StackId] {
        &self.of_sample
    }

    /// For each sample the row after its last frame.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    pub fn rows(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// The rows of a sample, innermost first, and its stack.
    pub fn of(&self, sample: usize) -> (Range<usize>, Stack<'_>) {
        let start = match sample {
            0 => 0,
            _ => self.ends[sample - 1] as usize,
        };
        let rows = start..self.ends[sample] as usize;
        (rows, self.stacks.get(self.of_sample[sample]))
    }

    /// The number of locations when the frames were created.
    pub fn locations(&self) -> usize {
        self.locations
    }

    /// For each of these locations whether it is in a stack. This is determined once.
    pub fn used(&self, stop: Stop) -> Result<&[bool]> {
        if let Some(used) = self.used.get() {
            return Ok(used);
        }
        let mut used = filled(self.locations, false)?;
        let mut space = Vec::new();
        for (row, stack) in self.stacks.ids().enumerate() {
            cancel::at_row(row, stop)?;
            for location in self.stacks.get(stack).unpacked(&mut space)? {
                used[location.row()] = true;
            }
        }
        Ok(self.used.get_or_init(|| used))
    }

    /// The memory that the frames take, in bytes.
    pub fn bytes(&self) -> usize {
        self.stacks.bytes() + size_of_val(&self.of_sample[..]) + size_of_val(&self.ends[..])
    }
}

/// Copies the stacks that samples have, in the order of the samples.
fn reordered(stacks: &Stacks, of_sample: &[StackId]) -> Result<(Stacks, Vec<StackId>)> {
    let mut new: Vec<Option<StackId>> = filled(stacks.len(), None)?;
    let mut used = Vec::new();
    let mut renamed = with_room(of_sample.len())?;
    for &stack in of_sample {
        let id = match new[stack.row()] {
            Some(id) => id,
            None => add(&mut used, stack)?,
        };
        new[stack.row()] = Some(id);
        renamed.try_push(id)?;
    }
    Ok((stacks.selected(&used)?, renamed))
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
    use crate::collections::Lists;
    use crate::model::LocationId;
    use crate::protobuf::encode::put_varint;

    const LOCATIONS: usize = 200;

    /// The same stacks as lists of locations, and packed.
    fn stacks(rows: &[&[u32]]) -> [Stacks; 2] {
        let mut lists = Stacks::default();
        let mut packed = Lists::default();
        for row in rows {
            let ids: Vec<_> = row.iter().map(|&id| LocationId(id)).collect();
            lists.push(&ids).unwrap();
            let mut bytes = Vec::new();
            row.iter()
                .for_each(|&id| put_varint(&mut bytes, u64::from(id) + 1));
            packed.push(&bytes).unwrap();
        }
        [lists, Stacks::from_packed(packed, LOCATIONS).unwrap()]
    }

    fn frames(stacks: &Stacks, of_sample: &[u32]) -> Frames {
        let of_sample: Vec<_> = of_sample.iter().map(|&row| StackId(row)).collect();
        Frames::new(stacks, &of_sample, LOCATIONS, &|| false).unwrap()
    }

    fn all(frames: &Frames) -> Vec<(Range<usize>, Vec<u32>)> {
        let samples = 0..frames.of_sample().len();
        let all = samples.map(|sample| frames.of(sample));
        all.map(|(rows, stack)| {
            let ids = stack.to_vec().unwrap();
            (rows, ids.iter().map(|id| id.0).collect())
        })
        .collect()
    }

    #[test]
    fn rows_are_those_of_the_table() {
        for stacks in stacks(&[&[0, 150], &[], &[2]]) {
            let two = frames(&stacks, &[0, 1, 0, 2]);
            let rows = [
                (0..2, vec![0, 150]),
                (2..2, vec![]),
                (2..4, vec![0, 150]),
                (4..5, vec![2]),
            ];
            assert_eq!(all(&two), rows);
            assert_eq!((two.rows(), two.ends()), (5, &[2, 2, 4, 5][..]));
            assert_eq!(two.deepest(), 2);
            assert_eq!(two.locations(), LOCATIONS);
            let used = two.used(&|| false).unwrap().iter().enumerate();
            let used: Vec<_> = used
                .filter(|(_, used)| **used)
                .map(|(row, _)| row)
                .collect();
            assert_eq!(used, [0, 2, 150]);
        }
        assert_eq!(frames(&Stacks::default(), &[]).rows(), 0);
    }

    #[test]
    fn stacks_in_another_order_and_stacks_without_a_sample_are_copied() {
        for stacks in stacks(&[&[0], &[150], &[2, 2]]) {
            let two = frames(&stacks, &[2, 0, 2]);
            assert_eq!(
                all(&two),
                [(0..2, vec![2, 2]), (2..3, vec![0]), (3..5, vec![2, 2])]
            );
            let ids: Vec<_> = two.of_sample().iter().map(|id| id.row()).collect();
            assert_eq!(ids, [0, 1, 0]);
            assert_eq!(two.stacks().len(), 2);
            assert_eq!(two.stacks().parts().0 == 0, stacks.parts().0 == 0);
        }
    }

    #[test]
    fn stacks_are_shared_where_they_can_be() {
        for stacks in stacks(&[&[0], &[1]]) {
            let address = |stacks: &Stacks| match stacks.get(StackId(0)) {
                Stack::Locations(list) => list.as_ptr().cast(),
                Stack::Packed(list) => list.as_ptr(),
            };
            let is_shared =
                |of_sample| address(frames(&stacks, of_sample).stacks()) == address(&stacks);
            assert!(is_shared(&[0, 1, 0]));
            assert!(!is_shared(&[1, 0]));
            assert!(!is_shared(&[0]));
        }
    }
}
