//! Values of a type that profiles have in several units: converted into one of these, since they are one quantity.

use super::cells::Cells;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::model::{Conversion, conversion};
use crate::schema::{Data, SAMPLE_VALUES, TableInput, Text, Type};
use crate::tables::{TableList, get};
use std::borrow::Cow;

/// The tables with types and units.
const TABLES: [&str; 2] = [SAMPLE_VALUES, ".sample_types"];
const TYPE: &str = "type";
const UNIT: &str = "unit";
const VALUE: &str = "value";
const EXACT: &str = ".value_exact";

/// How the values of each profile are converted.
pub struct Units<'a> {
    /// By profile.
    changes: Vec<Vec<Change<'a>>>,
}

#[derive(Debug, Clone, Copy)]
struct Change<'a> {
    type_: &'a str,
    from: &'a str,
    to: &'a str,
    conversion: Conversion,
}

/// A type with a unit, and the profile that has values of it.
type Recorded<'a> = (&'a str, &'a str, usize);

impl<'a> Units<'a> {
    pub fn new(profiles: &[&TableList<'_, 'a>]) -> Result<Units<'a>> {
        let mut recorded: Vec<Recorded> = Vec::new();
        for (profile, list) in profiles.iter().enumerate() {
            let tables = (get(list, SAMPLE_VALUES), get(list, "samples"));
            if let (Some(values), Some(samples)) = tables {
                for (type_, unit) in pairs(values, samples.rows())? {
                    recorded.try_push((type_, unit, profile))?;
                }
            }
        }
        let mut changes = filled(profiles.len(), Vec::new())?;
        for (at, first) in recorded.iter().enumerate() {
            let is_same = |other: &&Recorded| is_one_quantity(first, other);
            if recorded[..at].iter().any(|other| is_same(&other)) {
                continue;
            }
            let others = recorded[at..].iter().filter(is_same).copied().try_vec()?;
            for (profile, change) in changes_of(&others, profiles)? {
                changes[profile].try_push(change)?;
            }
        }
        Ok(Units { changes })
    }

    /// The cells of a column of a table with types, in the units of the combined profile.
    pub fn in_one_unit(
        &self,
        table: &'static str,
        name: &str,
        profile: usize,
        part: &dyn TableInput<'a>,
        cells: Cells<'a>,
    ) -> Result<Cells<'a>> {
        let changes = self.changes.get(profile);
        let Some(changes) = changes.filter(|changes| !changes.is_empty()) else {
            return Ok(cells);
        };
        if !TABLES.contains(&table) || ![UNIT, VALUE].contains(&name) {
            return Ok(cells);
        }
        let [types, units] = [TYPE, UNIT].map(|name| texts(part, table, name));
        let (types, units) = (types?, units?);
        let change = |row: usize| {
            let (type_, unit) = (types.get(row)?, units.get(row)?);
            let mut changes = changes.iter();
            changes.position(|change| change.type_ == type_ && change.from == unit)
        };
        Ok(match cells {
            Cells::Doubles(values) => {
                let mut converted = with_room(values.len())?;
                for (row, &value) in values.iter().enumerate() {
                    let change = change(row).and_then(|change| changes.get(change));
                    converted.try_push(match change {
                        Some(change) => change.conversion.convert(value),
                        None => value,
                    })?;
                }
                Cells::Doubles(Cow::Owned(converted))
            }
            Cells::Texts(mut text) => {
                let first = text.distinct.len();
                for change in changes {
                    text.distinct.try_push(change.to)?;
                }
                for (row, slot) in text.rows.iter_mut().enumerate() {
                    if let Some(change) = change(row) {
                        *slot = (first + change) as i32;
                    }
                }
                Cells::Texts(text)
            }
            other => other,
        })
    }
}

fn is_one_quantity(one: &Recorded, other: &Recorded) -> bool {
    one.0 == other.0 && (one.1 == other.1 || conversion(one.1, other.1).is_some())
}

/// How the values of a quantity get one unit: the first one or, if this would round values, the smallest one. If that would
/// round values as well, they keep their units; analyses convert them.
fn changes_of<'a>(
    recorded: &[Recorded<'a>],
    profiles: &[&TableList<'_, 'a>],
) -> Result<Vec<(usize, Change<'a>)>> {
    let units = || recorded.iter().map(|&(_, unit, _)| unit);
    let is_smaller = |unit: &str, than: &str| {
        conversion(than, unit).is_some_and(|conversion| conversion.convert(1.0) > 1.0)
    };
    let smallest = units().reduce(|one, other| if is_smaller(other, one) { other } else { one });
    for to in units().take(1).chain(smallest) {
        let mut changes = Vec::new();
        for &(type_, from, profile) in recorded {
            if let Some(conversion) = conversion(from, to) {
                let change = Change {
                    type_,
                    from,
                    to,
                    conversion,
                };
                changes.try_push((profile, change))?;
            }
        }
        let mut are_exact = true;
        for (profile, change) in &changes {
            are_exact = are_exact && is_exact(change, profiles[*profile])?;
        }
        if are_exact {
            return Ok(changes);
        }
    }
    Ok(Vec::new())
}

/// Whether no value of a profile is rounded, and whole numbers remain so, which most formats require.
fn is_exact(change: &Change, profile: &TableList) -> Result<bool> {
    let Some(values) = get(profile, SAMPLE_VALUES) else {
        return Ok(true);
    };
    let [types, units, digits] = [TYPE, UNIT, EXACT].map(|name| texts(values, SAMPLE_VALUES, name));
    let (types, units, digits) = (types?, units?, digits?);
    let numbers = match values.column(SAMPLE_VALUES, VALUE, Type::Double)? {
        Some(Data::Doubles(numbers)) => numbers,
        _ => &[],
    };
    let is_changed =
        |row| types.get(row) == Some(change.type_) && units.get(row) == Some(change.from);
    let mut changed = numbers
        .iter()
        .enumerate()
        .filter(|(row, _)| is_changed(*row));
    Ok(changed.all(|(row, &value)| digits.get(row).is_none() && change.conversion.is_exact(value)))
}

/// The types and units of a table of values, in the order of their first occurrence.
fn pairs<'a>(values: &dyn TableInput<'a>, samples: usize) -> Result<Vec<(&'a str, &'a str)>> {
    let each = values.rows().checked_div(samples).unwrap_or(0);
    let repeated = |name| values.repeated_texts(name, each);
    let mut pairs = Vec::new();
    if let (true, Some(types), Some(units)) = (each > 0, repeated(TYPE)?, repeated(UNIT)?) {
        for pair in types.into_iter().zip(units) {
            add(pair, &mut pairs)?;
        }
        return Ok(pairs);
    }
    let [types, units] = [TYPE, UNIT].map(|name| texts(values, SAMPLE_VALUES, name));
    let (types, units) = (types?, units?);
    let mut last = None;
    for (row, pair) in types.rows.iter().zip(&units.rows).enumerate() {
        if last != Some(pair) {
            last = Some(pair);
            if let (Some(type_), Some(unit)) = (types.get(row), units.get(row)) {
                add((type_, unit), &mut pairs)?;
            }
        }
    }
    Ok(pairs)
}

fn add<'a>(pair: (&'a str, &'a str), pairs: &mut Vec<(&'a str, &'a str)>) -> Result<()> {
    if pairs.contains(&pair) {
        Ok(())
    } else {
        pairs.try_push(pair)
    }
}

fn texts<'a>(
    part: &dyn TableInput<'a>,
    table: &'static str,
    name: &'static str,
) -> Result<Text<'a>> {
    Ok(match part.column(table, name, Type::Text)? {
        Some(Data::Texts(text)) => text,
        _ => Text::default(),
    })
}
