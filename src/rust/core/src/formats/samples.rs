//! Adds samples to a profile that is read.

use crate::error::{Error, Result};
use crate::limits::budget::Budget;
use crate::limits::memory::TryGrow;
use crate::model::{Profile, SourceId, StackId};

/// Appends a sample without values. `frames` is the length of its stack, and `input` the name of the file.
#[inline]
pub fn add_sample(
    profile: &mut Profile,
    budget: &mut Budget,
    input: &str,
    source: SourceId,
    stack: StackId,
    frames: usize,
) -> Result<()> {
    next_row(profile, input)?;
    budget.samples(1, frames, input)?;
    profile.samples.source.try_push(source)?;
    profile.samples.stack.try_push(stack)
}

/// The row of the next sample. `input` is the name of the file.
#[inline]
pub fn next_row(profile: &Profile, input: &str) -> Result<usize> {
    let row = profile.samples.len();
    if row >= i32::MAX as usize {
        Err(Error::Unsupported(crate::message!(
            "{input}: more than {} samples, which R cannot number.",
            i32::MAX
        )))
    } else {
        Ok(row)
    }
}
