//! Where the memory was allocated that was in use at the peak of a recording in which each vector was recorded.

use super::frame_names::FrameNames;
use super::places::{Place, place_of};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryPut, filled};
use crate::model::Profile;
use crate::model::known_types::PEAK_SPACE;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The peak of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Peak<'p> {
    /// The row of its source.
    pub source: usize,
    pub bytes: f64,
    /// The largest one first.
    pub places: Vec<AtPlace<'p>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AtPlace<'p> {
    /// Of the frame.
    pub name: &'p str,
    /// `None` if no frame has a line.
    pub line: Option<(&'p str, i32)>,
    pub bytes: f64,
}

/// The highest peak of all sources: each process has its own, at another moment. `None` if there is none.
pub fn peak<'p>(
    profile: &'p Profile,
    names: &'p FrameNames,
    stop: Stop,
) -> Result<Option<Peak<'p>>> {
    let Some(values) = profile.known(&PEAK_SPACE) else {
        return Ok(None);
    };
    let samples = || {
        let all = profile.samples.source.iter().zip(values.column.iter());
        all.filter(|(_, bytes)| !bytes.is_nan() && **bytes != 0.0)
    };
    let mut sums = filled(profile.sources.len(), 0.0)?;
    for (source, bytes) in samples() {
        sums[source.row()] += bytes;
    }
    // Of equals, the first one.
    let highest = sums.into_iter().enumerate().rev();
    let highest = highest.max_by(|(_, a), (_, b)| a.total_cmp(b));
    let Some((source, bytes)) = highest.filter(|(_, bytes)| *bytes > 0.0) else {
        return Ok(None);
    };
    let mut places: HashMap<Place, (f64, &str), RandomState> = HashMap::default();
    let mut space = Vec::new();
    for (row, (&of, &bytes)) in profile
        .samples
        .source
        .iter()
        .zip(values.column.iter())
        .enumerate()
    {
        cancel::at_row(row, stop)?;
        if of.row() != source || bytes.is_nan() || bytes == 0.0 {
            continue;
        }
        let stack = profile.samples.stack[row];
        let frames = profile.stacks.get(stack).unpacked(&mut space)?;
        if let Some((place, name)) = place_of(profile, names, frames) {
            let before = places.get(&place).map_or(0.0, |(sum, _)| *sum);
            places.try_put(place, (before + bytes, name))?;
        }
    }
    let mut places = places
        .into_iter()
        .map(|(place, (bytes, name))| AtPlace {
            name,
            line: place.line(profile),
            bytes,
        })
        .try_vec()?;
    places.sort_unstable_by(|a, b| {
        let by_size = b.bytes.total_cmp(&a.bytes);
        by_size.then_with(|| (a.line, a.name).cmp(&(b.line, b.name)))
    });
    Ok(Some(Peak {
        source,
        bytes,
        places,
    }))
}
