//! Fills the columns of `sample_locations` in two halves, since the table is large.

use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::thread::start;
use crate::model::{StackId, Stacks};
use crate::schema::sink::fill;
use crate::schema::write::id_of;
use std::thread::{self, ScopedJoinHandle};

/// From this number of rows on, a second thread is used. Most of the time is taken by page faults in
/// new memory, which two threads handle in parallel: 2.1 million rows are filled in 4.4 instead of
/// 8.6 ms, 10 million in 31 instead of 57 ms.
pub const ROWS_FOR_TWO: usize = 1 << 20;

/// A half of the table: the columns of consecutive samples.
pub struct Half<'a> {
    pub stacks: &'a [StackId],
    pub first_id: i32,
    pub sample_id: &'a mut [i32],
    pub depth: &'a mut [i32],
    pub location_id: &'a mut [i32],
}

/// Fills both halves at the same time, or one after the other if no thread can be started.
pub fn fill_both(first: Half, second: Half, stacks: &Stacks, stop: Stop) -> Result<()> {
    let mut second = Some(second);
    let filled = thread::scope(|scope| {
        // Only this thread may call R to check for an interrupt.
        let fill = || {
            second
                .take()
                .map_or(Ok(()), |second| second.fill(stacks, &|| false))
        };
        let worker = start(scope, fill);
        let filled = first.fill(stacks, stop);
        match worker.map(ScopedJoinHandle::join) {
            Ok(Ok(second)) => filled.and(second),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // There is no thread.
            Err(_) => filled,
        }
    });
    filled?;
    second.map_or(Ok(()), |second| second.fill(stacks, stop))
}

impl Half<'_> {
    pub fn fill(self, stacks: &Stacks, stop: Stop) -> Result<()> {
        let Half {
            mut sample_id,
            mut depth,
            mut location_id,
            ..
        } = self;
        let mut space = Vec::new();
        for (i, (id, &stack)) in (self.first_id..).zip(self.stacks).enumerate() {
            cancel::at_row(i, stop)?;
            let frames = stacks.get(stack).unpacked(&mut space)?;
            let (ids, rest) = sample_id.split_at_mut(frames.len());
            ids.fill(id);
            sample_id = rest;
            let (depths, rest) = depth.split_at_mut(frames.len());
            fill(depths, 1..)?;
            depth = rest;
            let (locations, rest) = location_id.split_at_mut(frames.len());
            fill(locations, frames.iter().map(|frame| id_of(frame.row())))?;
            location_id = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::thread::tests::without_threads;
    use crate::model::LocationId;

    #[test]
    fn the_halves_are_filled_with_and_without_a_thread() {
        let mut stacks = Stacks::default();
        let short = stacks.intern(&[LocationId(4)]).unwrap();
        let long = [7, 4].map(LocationId);
        let long = stacks.intern(&long).unwrap();
        let filled = || {
            let (mut sample_id, mut depth, mut location_id) = ([0; 5], [0; 5], [0; 5]);
            let (first, second) = (&[long, short], &[long]);
            let (sample_1, sample_2) = sample_id.split_at_mut(3);
            let (depth_1, depth_2) = depth.split_at_mut(3);
            let (location_1, location_2) = location_id.split_at_mut(3);
            let first = Half {
                stacks: first,
                first_id: 1,
                sample_id: sample_1,
                depth: depth_1,
                location_id: location_1,
            };
            let second = Half {
                stacks: second,
                first_id: 3,
                sample_id: sample_2,
                depth: depth_2,
                location_id: location_2,
            };
            fill_both(first, second, &stacks, &|| false).unwrap();
            (sample_id, depth, location_id)
        };
        let expected = ([1, 1, 2, 3, 3], [1, 2, 1, 1, 2], [8, 5, 5, 8, 5]);
        assert_eq!(filled(), expected);
        assert_eq!(without_threads(filled), expected);
    }
}
