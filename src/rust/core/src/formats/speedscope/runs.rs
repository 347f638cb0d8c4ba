//! Adds the profiles of a run: a source whose samples have a value of each type.

use super::recorded::Recorded;
use crate::error::Result;
use crate::formats::json_file::Reader;
use crate::json::Number;
use crate::limits::memory::TryGrow;
use crate::model::{Profile, SourceId, StackId, ValueType, Values, inexact};

/// Adds the samples of the profiles of a run. Profiles with the same stacks are values of the same samples.
pub fn add_run(
    profile: &mut Profile,
    source: SourceId,
    run: &[Recorded],
    stacks: &[StackId],
    json: &Reader,
) -> Result<()> {
    // The profiles that were added as samples, with the first row of each, and the columns with values.
    let mut added: Vec<(&Recorded, usize)> = Vec::new();
    let mut used = Vec::new();
    for recorded in run {
        let column = column_of(profile, recorded.value_type()?)?;
        let same = added
            .iter()
            .find(|(other, _)| other.stacks == recorded.stacks);
        let first = match same.filter(|_| !used.contains(&column)) {
            Some(&(_, first)) => first,
            None => {
                let first = profile.samples.len();
                add_samples(profile, source, recorded, stacks, json)?;
                added.try_push((recorded, first))?;
                first
            }
        };
        used.try_push(column)?;
        set_values(&mut profile.values[column], first, &recorded.weights, json)?;
    }
    Ok(())
}

fn column_of(profile: &mut Profile, type_: ValueType) -> Result<usize> {
    if let Some(column) = profile.values.iter().position(|v| v.type_ == type_) {
        return Ok(column);
    }
    let values = Values::absent(&type_.name, &type_.unit, profile.samples.len())?;
    profile.values.try_push(values)?;
    Ok(profile.values.len() - 1)
}

fn add_samples(
    profile: &mut Profile,
    source: SourceId,
    recorded: &Recorded,
    stacks: &[StackId],
    json: &Reader,
) -> Result<()> {
    let samples = &mut profile.samples;
    for (row, &stack) in recorded.stacks.iter().enumerate() {
        json.check(row)?;
        samples.source.try_push(source)?;
        samples.stack.try_push(stacks[stack as usize])?;
    }
    Ok(())
}

/// Sets the values of samples from this row on.
fn set_values(values: &mut Values, first: usize, weights: &[Number], json: &Reader) -> Result<()> {
    // Consecutive runs append to the column.
    if values.column.len() <= first {
        values.column.try_fill(first, f64::NAN)?;
        for (row, &weight) in weights.iter().enumerate() {
            json.check(row)?;
            match weight {
                Number::Whole(number) => drop(values.push(number)?),
                Number::Real(number) => values.column.try_push(number)?,
            }
        }
        return Ok(());
    }
    values.column.try_fill(first + weights.len(), f64::NAN)?;
    let slots = values.column.each()?.iter_mut().enumerate().skip(first);
    for ((row, slot), &weight) in slots.zip(weights) {
        *slot = weight.real();
        if let Number::Whole(number) = weight {
            if inexact(number).is_some() {
                values.exact.try_push((row, number))?;
            }
        }
    }
    Ok(())
}
