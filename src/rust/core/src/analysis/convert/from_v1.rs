//! From tables of version "1.0" to the model, and to the recorded samples of version "2.0".

use super::origin::Origin;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow};
use crate::message;
use crate::model::known_types::SAMPLES;
use crate::model::{Profile, Samples, Values};
use crate::tables::{TableList, profile_from_v1};

/// A sample for each row, with its count, and the first run as the source of all samples.
pub fn counted(list: &TableList, origin: &Origin<&str>, stop: Stop) -> Result<Profile> {
    let mut profile = profile_from_v1(list, origin.first_run()?, stop)?;
    origin.add_texts(&mut profile)?;
    Ok(profile)
}

/// A profile of version "2.0": each sample is repeated by its count, and all runs are sources.
pub fn from_v1(list: &TableList, origin: &Origin<&str>, stop: Stop) -> Result<Profile> {
    let mut profile = counted(list, origin, stop)?;
    repeat_samples(&mut profile, stop)?;
    for run in origin.further_runs() {
        profile.add_source(run?)?;
    }
    Ok(profile)
}

/// Repeats samples by their counts. Nothing else may refer to the rows of samples, which is the case for tables of
/// version "1.0".
fn repeat_samples(profile: &mut Profile, stop: Stop) -> Result<()> {
    let Some(counts) = profile.counts() else {
        return Ok(());
    };
    let total: f64 = counts.column.iter().sum();
    if total > f64::from(i32::MAX) {
        return Err(Error::Unsupported(message!(
            "{total} samples: a table of version \"2.0\" has {} rows at most.",
            i32::MAX
        )));
    }
    let mut samples = Samples::default();
    let mut starts = Vec::new();
    let rows = profile
        .samples
        .stack
        .iter()
        .zip(profile.samples.source.iter());
    for (row, ((&stack, &source), &count)) in rows.zip(counts.column.iter()).enumerate() {
        cancel::at_row(row, stop)?;
        starts.try_push(samples.len())?;
        let len = samples.len() + count as usize;
        samples.stack.try_fill(len, stack)?;
        samples.source.try_fill(len, source)?;
    }
    for file in profile.sources.iter_mut().flat_map(|s| &mut s.files) {
        file.before = starts.get(file.before).copied().unwrap_or(samples.len());
    }
    let mut ones = Values::absent_known(&SAMPLES, 0)?;
    ones.column.try_fill(samples.len(), 1.0)?;
    profile.samples = samples;
    profile.values = [ones].into_iter().try_vec()?;
    Ok(())
}
