//! Filters samples and their frames by the rules of pprof.
//!
//! R matches the regular expressions against names of functions and files. Here the results
//! are applied to the stack of each sample, and the rows that remain are determined.

mod frame;
mod matching;
mod rows;
mod rules;
#[cfg(test)]
mod tests;

pub use matching::{Matching, matching_locations};
pub use rows::rows_of_samples;
pub use rules::Filters;

use crate::error::Result;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryGrow, filled};
use crate::schema::Reading;
use frame::{Frame, number_groups};

/// What remains of samples and their frames.
#[derive(Debug)]
pub struct Filtered {
    /// For each sample whether it stays.
    pub samples: Vec<bool>,
    /// For each sample whether its outermost frame stays.
    pub outermost: Vec<bool>,
    /// The new depth of each row of `sample_locations`; 0 if the row is removed.
    pub depths: Vec<i32>,
    /// The rows of `sample_locations` whose function was inlined into a removed one, and
    /// would now appear to be inlined into another one.
    pub no_longer_inlined: Vec<usize>,
}

/// Filters tables that were checked.
pub fn filter(reading: &Reading, filters: &Filters, stop: Stop) -> Result<Filtered> {
    let profile = &reading.profile;
    let samples = reading.stacks.samples();
    let mut left = Filtered {
        samples: filled(samples, false, "samples")?,
        outermost: filled(samples, false, "samples")?,
        depths: filled(reading.stacks.rows(), 0, "rows")?,
        no_longer_inlined: Vec::new(),
    };
    let mut frames: Vec<Frame> = Vec::new();
    for sample in 0..samples {
        if sample % ROWS == 0 {
            cancel::check(stop)?;
        }
        frames.clear();
        reading.each_frame(sample, |row, location| {
            frames.try_push(Frame::new(profile, location, row), "a stack")
        })?;
        number_groups(profile, &mut frames);
        let source = profile.samples.source[sample];
        let stays = filters.apply(&mut frames, source.row());
        left.samples[sample] = stays;
        left.outermost[sample] = frames.last().is_none_or(|frame| frame.stays);
        if !stays {
            continue;
        }
        let mut inner: Option<&Frame> = None;
        for (frame, depth) in frames.iter().filter(|frame| frame.stays).zip(1..) {
            left.depths[frame.row] = depth;
            let joined = |inner: &&Frame| {
                inner.group != frame.group
                    && profile.is_inlined_into(inner.location, frame.location)
            };
            if let Some(inner) = inner.filter(joined) {
                left.no_longer_inlined.try_push(inner.row, "rows")?;
            }
            inner = Some(frame);
        }
    }
    Ok(left)
}
