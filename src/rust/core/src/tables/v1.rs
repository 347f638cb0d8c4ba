//! Version "1.0": the stacks in a list column.

use super::checks::{self, dangling, invalid};
use super::ids::Ids;
use super::{FunctionFacts, Functions, LocationFacts, Locations, Meta, NA, Text, take};
use crate::cancel::{self, Stop};
use crate::error::{Error, Invalid, Result};
use crate::memory::TryGrow;
use crate::model::{LocationId, Profile, Source, StackId, Values, next_row};

/// The five tables.
#[derive(Debug, Default)]
pub struct TablesV1<'a> {
    pub meta: Meta<'a>,
    pub type_: Text<'a>,
    pub unit: Text<'a>,
    pub value: &'a [i32],
    /// For each sample which of `stacks` it has. Samples share the tibble of
    /// their stack, so each distinct one is looked at once.
    pub stack_of: Vec<u32>,
    pub stacks: Vec<&'a [i32]>,
    pub locations: Locations<'a>,
    pub functions: Functions<'a>,
    /// What the hidden components tell about the origin.
    pub source: Source,
}

/// Every rule of version "1.0".
pub fn check_v1(tables: &TablesV1, stop: Stop) -> Result<()> {
    check(tables, stop).map(|_| ())
}

/// Functions and locations by their ids.
fn check(tables: &TablesV1, stop: Stop) -> Result<(Ids, Ids)> {
    checks::meta(&tables.meta, "1.0")?;
    if tables.meta.key.len() != 1 {
        return Err(Error::Invalid(Invalid {
            table: "meta".into(),
            column: None,
            row: None,
            rule: "must have exactly one row, `version`".to_owned(),
        }));
    }
    let types: Vec<_> = (0..tables.type_.len())
        .map(|row| (tables.type_.get(row), tables.unit.get(row)))
        .collect();
    if types != [(Some("samples"), Some("count"))] {
        return Err(Error::Invalid(Invalid {
            table: "sample_types".into(),
            column: None,
            row: None,
            rule: "must be one row, type `samples` and unit `count`".to_owned(),
        }));
    }
    for (row, &value) in tables.value.iter().enumerate() {
        if value == NA || value < 1 {
            return Err(invalid("samples", "value", row, "must be 1 or more"));
        }
    }
    cancel::check(stop)?;
    let functions = checks::functions(&tables.functions)?;
    let locations = checks::locations(&tables.locations, &functions)?;
    for (stack, ids) in tables.stacks.iter().enumerate() {
        if let Some(&id) = ids.iter().find(|&&id| locations.row(id).is_none()) {
            let row = tables
                .stack_of
                .iter()
                .position(|&s| s as usize == stack)
                .unwrap_or(0);
            return Err(dangling("samples", "locations", row, id, "locations"));
        }
    }
    Ok((functions, locations))
}

/// Checks the tables and makes a profile of them: one sample for each row, with
/// its value as the count.
pub fn profile_from_v1(tables: &TablesV1, stop: Stop) -> Result<Profile> {
    let (function_ids, location_ids) = check(tables, stop)?;
    let mut profile = Profile::default();
    let no_facts = (FunctionFacts::default(), LocationFacts::default());
    take::functions(&mut profile, &tables.functions, &no_facts.0)?;
    take::locations(
        &mut profile,
        &tables.locations,
        &function_ids,
        &no_facts.1,
        None,
    )?;
    let source = profile.add_source(tables.source.clone())?;
    let mut known: Vec<StackId> = Vec::new();
    let mut stack: Vec<LocationId> = Vec::new();
    for (i, ids) in tables.stacks.iter().enumerate() {
        if i % 1000 == 0 {
            cancel::check(stop)?;
        }
        stack.clear();
        for &id in *ids {
            if let Some(row) = location_ids.row(id) {
                stack.try_push(LocationId(next_row(row, "locations")?), "a stack")?;
            }
        }
        known.try_push(profile.stacks.intern(&stack)?, "stacks")?;
    }
    let mut counts = Values::absent("samples", "count", 0)?;
    for (&value, &stack) in tables.value.iter().zip(&tables.stack_of) {
        profile.samples.source.try_push(source, "samples")?;
        profile
            .samples
            .stack
            .try_push(known[stack as usize], "samples")?;
        counts.column.try_push(f64::from(value), "sample values")?;
    }
    profile.values.push(counts);
    Ok(profile)
}
