//! `sample_values`: the values of samples, a row for each value. In the model they are one column
//! for each sample type.

use super::cells::{self, exact_double};
use super::column::{ColumnInfo, Type};
use super::ids::Ids;
use super::input::{self, Only, TableInput, Text, find, invalid};
use super::key::Key;
use super::read::{check_texts, unresolved};
use super::reading::Reading;
use super::sink::{Sink, constant_double, counted, fill, repeated_texts};
use super::table::{Declared, Table, TableInfo, Version};
use super::write::{formatted, id_of};
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, copied, with_room};
use crate::message;
use crate::model::{Profile, SampleColumn, Values};

const TABLE: &str = "sample_values";

pub struct SampleValueTable {
    info: TableInfo,
}

pub static SAMPLE_VALUES: SampleValueTable = SampleValueTable {
    info: TableInfo {
        key: &["sample_id", "type"],
        ..TableInfo::new(TABLE, "a value of a sample")
    },
};

const COLUMNS: [ColumnInfo; 5] = [
    ColumnInfo::new("sample_id", Type::Integer, "the sample"),
    ColumnInfo::new("type", Type::Text, "what the number counts"),
    ColumnInfo::new("unit", Type::Text, "its unit"),
    ColumnInfo::new("value", Type::Double, "the number; finite").unit("`unit`"),
    ColumnInfo::new(
        ".value_exact",
        Type::Text,
        "`value`, if a double cannot represent it",
    )
    .optional(),
];

impl Declared for SampleValueTable {
    fn info(&self) -> &TableInfo {
        &self.info
    }

    fn columns(&self) -> Box<dyn Iterator<Item = &ColumnInfo> + '_> {
        Box::new(COLUMNS.iter())
    }
}

impl Table for SampleValueTable {
    fn write(&self, profile: &Profile, _: Version, sink: &mut dyn Sink, _: Stop) -> Result<()> {
        let values = &profile.values;
        let has_value = |value: &&f64| !value.is_nan();
        let rows = values
            .iter()
            .map(|v| v.column.iter().filter(has_value).count());
        let rows = rows.sum();
        sink.start(TABLE, rows)?;
        let [sample_id, type_, unit, value, value_exact] = COLUMNS.map(|column| column.name);
        let types = values.iter().map(|v| v.type_.name.as_str());
        let types = types.try_vec()?;
        let units = values.iter().map(|v| v.type_.unit.as_str());
        let units = units.try_vec()?;
        // Whether each sample has all types.
        let is_complete = rows == values.len() * profile.samples.len();
        // Otherwise the type and the sample of each row.
        let mut type_of: Vec<i32> = Vec::new();
        let mut sample_of: Vec<u32> = Vec::new();
        if is_complete {
            counted(sink, sample_id, values.len())?;
            repeated_texts(sink, type_, &types, rows)?;
            repeated_texts(sink, unit, &units, rows)?;
        } else {
            type_of = with_room(rows)?;
            sample_of = with_room(rows)?;
            for sample in 0..profile.samples.len() {
                for (type_, values) in values.iter().enumerate() {
                    if !values.column[sample].is_nan() {
                        type_of.try_push(type_ as i32)?;
                        sample_of.try_push(sample as u32)?;
                    }
                }
            }
            sink.integers(&[sample_id], &mut |columns| {
                fill(columns[0], sample_of.iter().map(|&row| id_of(row as usize)))
            })?;
            sink.texts(type_, &types, &type_of)?;
            sink.texts(unit, &units, &type_of)?;
        }
        let width = values.len().max(1);
        let at = |row: usize| {
            if is_complete {
                (&values[row % width], row / width)
            } else {
                (&values[type_of[row] as usize], sample_of[row] as usize)
            }
        };
        let only = match values.as_slice() {
            [values] if is_complete => values.column.the_only(),
            _ => None,
        };
        match only {
            Some(only) => constant_double(sink, value, only)?,
            None => sink.doubles(value, &mut |column| {
                if !is_complete {
                    return fill(column, (0..rows).map(at).map(|(v, row)| v.column[row]));
                }
                for (slots, row) in column.chunks_mut(width).zip(0..) {
                    fill(slots, values.iter().map(|v| v.column[row]))?;
                }
                Ok(())
            })?,
        }
        if values.iter().any(|values| !values.exact.is_empty()) {
            let mut numbers = (0..rows).map(at).map(|(v, row)| v.exact(row));
            formatted(sink, value_exact, &mut numbers)?;
        }
        sink.finish()
    }

    /// The key is (sample, type): a type may have two units only if no sample has values of both.
    fn read<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        _: Version,
        stop: Stop,
    ) -> Result<()> {
        if let Some(values) = read_regular(input, reading)? {
            reading.profile.values = values;
            return Ok(());
        }
        let [sample_id, type_, unit, value, exact] = &COLUMNS;
        let sample_ids = input::integers(find(input, TABLE, sample_id)?).unwrap_or_default();
        let types = input::texts(find(input, TABLE, type_)?).unwrap_or_default();
        let units = input::texts(find(input, TABLE, unit)?).unwrap_or_default();
        let numbers = input::doubles(find(input, TABLE, value)?).unwrap_or_default();
        let exact = input::texts(find(input, TABLE, exact)?).unwrap_or_default();
        check_texts(TABLE, "type", &types, &|text| match text {
            None => Some("must not be NA"),
            Some("") => Some("must not be empty"),
            Some(_) => None,
        })?;
        check_texts(TABLE, "unit", &units, &|text| match text {
            None => Some("must not be NA"),
            Some(_) => None,
        })?;
        check_texts(TABLE, ".value_exact", &exact, &|text| {
            let is_wrong = |text| cells::decimal(text).is_none();
            text.is_some_and(is_wrong).then_some(cells::DECIMAL)
        })?;
        let Some(samples) = reading.ids(Key::Sample) else {
            return Ok(());
        };
        let count = reading.pending.samples;
        let mut columns: Vec<Values> = Vec::new();
        // The column of each pair of type and unit, in the order of first occurrence.
        let mut pairs: Vec<((i32, i32), usize)> = Vec::new();
        let mut at = 0;
        let rows = types.rows.iter().copied().zip(units.rows.iter().copied());
        for (row, ((&id, pair), &value)) in sample_ids.iter().zip(rows).zip(numbers).enumerate() {
            let Some(sample) = samples.row(id) else {
                return Err(unresolved(TABLE, "sample_id", row, id, Key::Sample));
            };
            // Usually, all samples have the same types in the same order, so the next pair is tried
            // first: for 3 million rows this takes 4 ms, a search 8 ms with 6 types and 21 ms with 20.
            at = if at + 1 < pairs.len() { at + 1 } else { 0 };
            at = match pairs.get(at) {
                Some((next, _)) if *next == pair => at,
                _ => match pairs.iter().position(|(known, _)| *known == pair) {
                    Some(found) => found,
                    None => {
                        let (name, unit) = (types.get(row), units.get(row));
                        let (name, unit) = (name.unwrap_or(""), unit.unwrap_or(""));
                        let column = column_of(&mut columns, name, unit, count)?;
                        pairs.try_push((pair, column))?;
                        pairs.len() - 1
                    }
                },
            };
            if !value.is_finite() {
                return Err(invalid(TABLE, "value", row, "must be a finite number"));
            }
            let values = &mut columns[pairs[at].1];
            let slot = &mut values.column.each()?[sample];
            if !slot.is_nan() {
                return Err(duplicate(row, id, values));
            }
            *slot = value;
            let number = exact.get(row).and_then(cells::decimal);
            if let Some(number) = number.and_then(|number| exact_double(number, value)) {
                values.exact.try_push((sample, number))?;
            }
        }
        cancel::check(stop)?;
        for values in &mut columns {
            values.exact.sort_unstable();
        }
        check_units(&columns, sample_ids, [&types, &units], samples)?;
        reading.profile.values = columns;
        Ok(())
    }
}

/// The number of rows of each sample, if it is the same for all samples, the rows are in the order
/// of samples, and this is known without the data.
pub(crate) fn rows_of_each(input: &dyn TableInput, samples: Option<&Ids>) -> Result<Option<usize>> {
    let Some(&Ids::Sequence(samples)) = samples else {
        return Ok(None);
    };
    let each = input.rows().checked_div(samples).unwrap_or(0);
    let is_each = each * samples == input.rows() && input.is_counted(Key::Sample.name(), each)?;
    Ok((is_each && each > 0).then_some(each))
}

/// Reads a table in which all samples have the same types in the same order, as readers create it.
/// Returns `None` for any other table, including those that break a rule.
///
/// 100,000 samples are checked 20 times as fast as by rows, and summarised 1.9 to 2.8 times as fast
/// (`validate_profile()` and `summary()` in `bench/lazy`).
fn read_regular(input: &dyn TableInput, reading: &Reading) -> Result<Option<Vec<Values>>> {
    let [_, type_, unit, value, value_exact] = &COLUMNS;
    let Some(width) = rows_of_each(input, reading.ids(Key::Sample))? else {
        return Ok(None);
    };
    if input.names().contains(&value_exact.name) {
        return Ok(None);
    }
    let types = input.repeated_texts(type_.name, width)?;
    let units = input.repeated_texts(unit.name, width)?;
    let (Some(types), Some(units)) = (types, units) else {
        return Ok(None);
    };
    let mut sorted = copied(&types)?;
    sorted.sort_unstable();
    if sorted.contains(&"") || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Ok(None);
    }
    let columns = match input.the_only(value.name)? {
        Some(Only::Double(only)) if only.is_finite() => {
            let columns = types.iter().map(|_| {
                let mut column = SampleColumn::default();
                column.try_fill(input.rows() / width, only)?;
                Ok(column)
            });
            columns.try_vec_of()?
        }
        _ => {
            let numbers = input::doubles(find(input, TABLE, value)?).unwrap_or_default();
            match split(numbers, width)? {
                Some(columns) => columns,
                None => return Ok(None),
            }
        }
    };
    let named = types.into_iter().zip(units).zip(columns);
    let values = named.map(|((name, unit), column)| {
        Ok(Values {
            column,
            ..Values::absent(name, unit, 0)?
        })
    });
    values.try_vec_of().map(Some)
}

/// Splits the numbers of rows into one column for each type; `None` if a number is not finite.
fn split(rows: &[f64], width: usize) -> Result<Option<Vec<SampleColumn<f64>>>> {
    let columns = (0..width).map(|_| with_room(rows.len() / width));
    let mut columns: Vec<Vec<f64>> = columns.try_vec_of()?;
    // In parts, so that the rows are still in the cache when they are read for the next column.
    for part in rows.chunks(width.saturating_mul(1024)) {
        if !part.iter().fold(true, |all, value| all & value.is_finite()) {
            return Ok(None);
        }
        for (at, column) in columns.iter_mut().enumerate() {
            column.try_extend_from(part[at..].iter().step_by(width).copied())?;
        }
    }
    let columns = columns.into_iter().map(SampleColumn::from);
    columns.try_vec().map(Some)
}

/// The index of the column of a sample type, which is added if it is missing.
fn column_of(columns: &mut Vec<Values>, name: &str, unit: &str, count: usize) -> Result<usize> {
    let is = |values: &Values| values.type_.name == name && values.type_.unit == unit;
    match columns.iter().position(is) {
        // The same type may occur with texts in different encodings.
        Some(column) => Ok(column),
        None => {
            columns.try_push(Values::absent(name, unit, count)?)?;
            Ok(columns.len() - 1)
        }
    }
}

#[cold]
fn duplicate(row: usize, sample: i32, values: &Values) -> Error {
    let rule = message!("duplicate type `{}` in sample {sample}", values.type_.name);
    invalid(TABLE, "type", row, rule)
}

/// Checks that no sample has values of a type in two units.
fn check_units(
    columns: &[Values],
    sample_ids: &[i32],
    [types, units]: [&Text; 2],
    samples: &Ids,
) -> Result<()> {
    for (i, a) in columns.iter().enumerate() {
        for b in &columns[i + 1..] {
            if a.type_.name != b.type_.name {
                continue;
            }
            let has_both = |row: usize| !a.column[row].is_nan() && !b.column[row].is_nan();
            if !(0..a.column.len()).any(has_both) {
                continue;
            }
            let is_second = |row: &usize| {
                types.get(*row) == Some(&b.type_.name)
                    && units.get(*row) == Some(&b.type_.unit)
                    && samples.row(sample_ids[*row]).is_some_and(has_both)
            };
            let row = (0..sample_ids.len()).find(is_second).unwrap_or(0);
            return Err(duplicate(row, sample_ids[row], b));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
