//! From counted samples to recorded ones.

use crate::error::{Error, Result};
use crate::limits::cancel::{self, ROWS, Stop};
use crate::limits::memory::{TryCollect, TryGrow};
use crate::message;
use crate::model::{Profile, Samples, Values};
use crate::tables::{TablesV1, profile_from_v1};

/// A profile of version "1.0" as one of version "2.0".
pub fn from_v1(tables: &TablesV1, stop: Stop) -> Result<Profile> {
    let mut profile = profile_from_v1(tables, stop)?;
    repeat_samples(&mut profile, stop)?;
    for source in &tables.further {
        profile.add_source(source.clone())?;
    }
    Ok(profile)
}

/// Version "1.0" says how often in a row a stack was seen; version "2.0" has a
/// row for each time. The profile must have counts and nothing else that hangs on
/// its samples, as what version "1.0" can hold does.
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
    let rows = profile.samples.stack.iter().zip(&profile.samples.source);
    for (row, ((&stack, &source), &count)) in rows.zip(&counts.column).enumerate() {
        if row % ROWS == 0 {
            cancel::check(stop)?;
        }
        starts.try_push(samples.len(), "samples")?;
        let len = samples.len() + count as usize;
        samples.stack.try_fill(len, stack, "samples")?;
        samples.source.try_fill(len, source, "samples")?;
    }
    for file in profile.sources.iter_mut().flat_map(|s| &mut s.files) {
        file.before = starts.get(file.before).copied().unwrap_or(samples.len());
    }
    let mut ones = Values::absent("samples", "count", 0)?;
    ones.column.try_fill(samples.len(), 1.0, "sample values")?;
    profile.samples = samples;
    profile.values = [ones].into_iter().try_vec("sample values")?;
    Ok(())
}
