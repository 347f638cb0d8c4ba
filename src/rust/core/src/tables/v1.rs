//! Version "1.0": the stacks in a list column.

use super::checks::{self, dangling, invalid};
use super::ids::Ids;
use super::{FunctionFacts, Functions, LocationFacts, Locations, Meta, NA, Text, take};
use crate::error::{Error, Invalid, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{LocationId, Profile, Source, SourceFile, StackId, Values, next_row};

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
    /// What the hidden components tell about the origin: the run that all samples are put
    /// down to, and those after it, since nothing says which samples are theirs.
    pub source: Source,
    pub further: Vec<Source>,
    /// Which the source has in the order of the file: number and name.
    pub files: Vec<(u32, &'a str)>,
    pub comments: Vec<&'a str>,
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
            rule: message!("must have exactly one row, `version`"),
        }));
    }
    let mut types =
        (0..tables.type_.len()).map(|row| (tables.type_.get(row), tables.unit.get(row)));
    if types.next() != Some((Some("samples"), Some("count"))) || types.next().is_some() {
        return Err(Error::Invalid(Invalid {
            table: "sample_types".into(),
            column: None,
            row: None,
            rule: message!("must be one row, type `samples` and unit `count`"),
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
    let mut source = tables.source.clone();
    for &(number, filename) in &tables.files {
        let filename = profile.strings.intern(filename)?;
        let file = SourceFile {
            number,
            filename,
            before: 0,
        };
        source.files.try_push(file, "files")?;
    }
    for comment in &tables.comments {
        let comment = profile.strings.intern(comment)?;
        source.comments.try_push(comment, "comments")?;
    }
    let source = profile.add_source(source)?;
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
    profile.values.try_push(counts, "sample values")?;
    place_files(&mut profile)?;
    Ok(profile)
}

/// Puts each `#File` line before the first sample that needs it, where `Rprof()` writes it.
fn place_files(profile: &mut Profile) -> Result<()> {
    let end = profile.samples.len();
    let (mut seen, mut first) = (Vec::new(), Vec::new());
    seen.try_fill(profile.stacks.len(), false, "stacks")?;
    first.try_fill(profile.strings.len(), end, "files")?;
    for (row, &stack) in profile.samples.stack.iter().enumerate() {
        if std::mem::replace(&mut seen[stack.row()], true) {
            continue;
        }
        for &location in profile.stacks.get(stack) {
            if let Some(function) = profile.function_of(location) {
                let first = &mut first[function.filename.row()];
                *first = row.min(*first);
            }
        }
    }
    // They stay in their order, whichever is not needed or needed earlier.
    let mut next = end;
    for file in profile
        .sources
        .iter_mut()
        .flat_map(|s| s.files.iter_mut().rev())
    {
        next = next.min(first[file.filename.row()]);
        file.before = next;
    }
    Ok(())
}
