//! Checks and reads tables of version "1.0", whose stacks are a list column of `samples`.

use super::list::{TableList, check_names, get, required};
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::known_types::SAMPLES;
use crate::model::{LocationId, Profile, Source, StackId, Values};
use crate::schema::{
    self, Data, Declared, Key, Reading, TABLES_V1, Table, TableInput, Version, find, invalid,
    invalid_column, unresolved,
};

/// The checked samples of version "1.0", and a model with functions and locations.
struct Checked<'a> {
    reading: Reading<'a>,
    value: &'a [i32],
    /// The index into `stacks` for each sample. Samples with equal stacks share one table, so each
    /// table is read once.
    stack_of: Vec<u32>,
    stacks: Vec<&'a [i32]>,
}

/// Checks all rules of version "1.0".
pub fn check_v1(list: &TableList, stop: Stop) -> Result<()> {
    check(list, stop).map(|_| ())
}

fn check<'a>(list: &TableList<'_, 'a>, stop: Stop) -> Result<Checked<'a>> {
    let names = TABLES_V1.iter().map(|table| table.info().name);
    check_names(list, names.clone())?;
    for (position, name) in names.enumerate() {
        let is_other = |(found, _): &(&str, _)| *found != name;
        if list.get(position).is_some_and(is_other) && get(list, name).is_some() {
            let rule = message!("must be component {} of the list", position + 1);
            return Err(invalid_column(name, None, rule));
        }
    }
    let [meta, types, samples, locations, functions] = TABLES_V1;
    let table =
        |table: &'static dyn Declared| required(list, table.info().name, || table.columns());
    if table(meta)?.rows() != 1 {
        let rule = "must have exactly one row, `version`";
        return Err(invalid_column("meta", None, rule));
    }
    check_types(table(types)?)?;
    let (value, stack_of, stacks) = read_samples(table(samples)?)?;
    cancel::check(stop)?;
    let mut reading = Reading::new()?;
    let (locations, functions) = (table(locations)?, table(functions)?);
    reading.read_ids(Key::Location, locations)?;
    reading.read_ids(Key::Function, functions)?;
    schema::FUNCTIONS.read(functions, &mut reading, Version::One, stop)?;
    schema::LOCATIONS.read(locations, &mut reading, Version::One, stop)?;
    for (stack, ids) in (0..).zip(&stacks) {
        let is_unknown = |id: &&i32| reading.row_of(Key::Location, **id).is_none();
        if let Some(&id) = ids.iter().find(is_unknown) {
            let row = stack_of.iter().position(|&s| s == stack).unwrap_or(0);
            return Err(unresolved("samples", "locations", row, id, Key::Location));
        }
    }
    Ok(Checked {
        reading,
        value,
        stack_of,
        stacks,
    })
}

fn check_types(table: &dyn TableInput) -> Result<()> {
    const TABLE: &str = "sample_types";
    let mut is_right = table.rows() == 1;
    for (column, wanted) in TABLES_V1[1].columns().zip([SAMPLES.name, SAMPLES.unit]) {
        if let Some(Data::Texts(text)) = find(table, TABLE, column)? {
            is_right &= text.get(0) == Some(wanted);
        }
    }
    if is_right {
        Ok(())
    } else {
        let rule = "must be one row, type `samples` and unit `count`";
        Err(invalid_column(TABLE, None, rule))
    }
}

type Samples<'a> = (&'a [i32], Vec<u32>, Vec<&'a [i32]>);

fn read_samples<'a>(table: &dyn TableInput<'a>) -> Result<Samples<'a>> {
    const TABLE: &str = "samples";
    let (mut value, mut stack_of, mut stacks): Samples = Default::default();
    for column in TABLES_V1[2].columns() {
        match find(table, TABLE, column)? {
            Some(Data::Integers(values)) => value = values,
            Some(Data::Stacks(rows, distinct)) => (stack_of, stacks) = (rows, distinct),
            _ => {}
        }
    }
    // NA is less than all others.
    match value.iter().position(|&value| value < 1) {
        Some(row) => Err(invalid(TABLE, "value", row, "must be 1 or more")),
        None => Ok((value, stack_of, stacks)),
    }
}

/// Checks the tables and converts them to a profile: one sample of `source` for each row, with its
/// value as the count.
pub fn profile_from_v1(list: &TableList, source: Source, stop: Stop) -> Result<Profile> {
    let Checked {
        mut reading,
        value,
        stack_of,
        stacks,
    } = check(list, stop)?;
    let mut profile = std::mem::take(&mut reading.profile);
    let source = profile.add_source(source)?;
    let mut known: Vec<StackId> = Vec::new();
    let mut stack: Vec<LocationId> = Vec::new();
    for (i, ids) in stacks.iter().enumerate() {
        if i % 1000 == 0 {
            cancel::check(stop)?;
        }
        stack.clear();
        for &id in *ids {
            if let Some(row) = reading.row_of(Key::Location, id) {
                stack.try_push(LocationId(next_row(row, "locations")?))?;
            }
        }
        known.try_push(profile.stacks.intern(&stack)?)?;
    }
    let mut counts = Values::absent_known(&SAMPLES, 0)?;
    for (&value, &stack) in value.iter().zip(&stack_of) {
        profile.samples.source.try_push(source)?;
        profile.samples.stack.try_push(known[stack as usize])?;
        counts.column.try_push(f64::from(value))?;
    }
    profile.values.try_push(counts)?;
    Ok(profile)
}
