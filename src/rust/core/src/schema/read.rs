//! Reads columns into drafts of rows. Each cell is parsed once, and its rule is checked at the same
//! time.

use super::cells;
use super::column::{Access, Column};
use super::input::{Data, NA, TableInput, Text, find, invalid};
use super::key::Key;
use super::reading::Reading;
use crate::error::{Error, Result};
use crate::limits::memory::{TryGrow, owned, with_room};
use crate::message;
use crate::model::ValueKind;
use crate::text::decoded;

/// The error for a row that refers to an id that is not in the table of `key`.
#[cold]
pub(crate) fn unresolved(
    table: &'static str,
    column: &'static str,
    row: usize,
    id: i32,
    key: Key,
) -> Error {
    let rule = if id == NA {
        message!("must not be NA")
    } else {
        message!("{id} is not in table `{}`", key.table())
    };
    invalid(table, column, row, rule)
}

/// Checks each of the distinct texts of a column, and NA, with a function that returns the rule that is
/// broken.
pub(super) fn check_texts(
    table: &'static str,
    column: &'static str,
    text: &Text,
    rule: &dyn Fn(Option<&str>) -> Option<&'static str>,
) -> Result<()> {
    if let Some(broken) = rule(None) {
        if let Some(row) = text.rows.iter().position(|&row| row < 0) {
            return Err(invalid(table, column, row, broken));
        }
    }
    for (at, distinct) in (0..).zip(&text.distinct) {
        if let Some(broken) = rule(Some(distinct)) {
            return Err(invalid(table, column, text.first_row(at), broken));
        }
    }
    Ok(())
}

impl<R, D> Column<R, D> {
    /// Sets the cell of this column in all drafts.
    pub(super) fn read<'a>(
        &self,
        table: &'static str,
        input: &dyn TableInput<'a>,
        rows: &mut [D],
        reading: &mut Reading<'a>,
    ) -> Result<()> {
        let Some(data) = find(input, table, &self.info)? else {
            return Ok(());
        };
        let broken = |row, rule: &'static str| invalid(table, self.info.name, row, rule);
        match data {
            Data::Integers(values) => self.read_integers(table, values, rows, reading),
            Data::Doubles(values) => {
                for (row, (draft, &value)) in rows.iter_mut().zip(values).enumerate() {
                    if value.is_nan() {
                        if !self.allows_na {
                            return Err(broken(row, "must not be NA"));
                        }
                        continue;
                    }
                    match self.access {
                        Access::Double(_, set) => set(draft, value),
                        Access::Whole(_, set) if cells::is_whole(value) => set(draft, value),
                        Access::Whole(..) => return Err(broken(row, cells::WHOLE)),
                        Access::Count(_, set) => match cells::count(value) {
                            Some(count) => set(draft, count),
                            None => return Err(broken(row, cells::COUNT)),
                        },
                        _ => {}
                    }
                }
                Ok(())
            }
            Data::Texts(text) => self.read_texts(table, &text, rows, reading),
            Data::Stacks(..) | Data::Other(_) => Ok(()),
        }
    }

    fn read_integers(
        &self,
        table: &'static str,
        values: &[i32],
        rows: &mut [D],
        reading: &Reading,
    ) -> Result<()> {
        let column = self.info.name;
        let broken = |row, rule: &'static str| Err(invalid(table, column, row, rule));
        let ids = match self.access {
            Access::Reference(key, ..) => reading.ids(key),
            _ => None,
        };
        for (row, (draft, &value)) in rows.iter_mut().zip(values).enumerate() {
            if value == NA {
                if !self.allows_na {
                    return broken(row, "must not be NA");
                }
                continue;
            }
            match self.access {
                Access::Reference(key, _, set) => match ids.and_then(|ids| ids.row(value)) {
                    Some(found) => set(draft, found),
                    None => return Err(unresolved(table, column, row, value, key)),
                },
                Access::Id(_, set) => set(draft, value),
                Access::Integer(_, set) if value >= 0 => set(draft, value),
                Access::Line(_, set) if value >= 0 => set(draft, value.into()),
                Access::Integer(..) | Access::Line(..) => {
                    return broken(row, "must not be negative");
                }
                Access::Flag(_, set) => set(draft, value != 0),
                _ => {}
            }
        }
        Ok(())
    }

    /// Each of the distinct texts is checked and parsed once.
    fn read_texts(
        &self,
        table: &'static str,
        text: &Text,
        rows: &mut [D],
        reading: &mut Reading,
    ) -> Result<()> {
        check_texts(table, self.info.name, text, &|text| match text {
            None if !self.allows_na => Some("must not be NA"),
            Some("") if !self.allows_empty && self.allows_na => {
                Some("must not be empty; NA is unknown")
            }
            Some("") if !self.allows_empty => Some("must not be empty"),
            _ => None,
        })?;
        let parsing = Parsing {
            table,
            column: self.info.name,
            text,
        };
        match self.access {
            Access::Text(_, set) => {
                let ids = reading.intern(text)?;
                parsing.set(&ids, rows, set);
                Ok(())
            }
            Access::OwnText(_, set) => {
                parsing.set_each(rows, "", set, &mut |text| owned(text).map(Some))
            }
            Access::HexDigits(_, set) => {
                parsing.set_each(rows, cells::HEX_DIGITS, set, &mut cells::hex_digits)
            }
            Access::Bytes(_, set) => parsing.set_each(rows, cells::BASE64, set, &mut |text| {
                decoded(&cells::ENCODING, text.as_bytes())
            }),
            Access::Texts(_, set) => {
                let strings = &mut reading.profile.strings;
                parsing.set_each(rows, cells::TEXTS, set, &mut |text| {
                    cells::texts(text, strings)
                })
            }
            Access::Decimal(_, set) | Access::ExactLine(_, set) => {
                parsing.set_parsed(rows, cells::DECIMAL, set, cells::decimal)
            }
            Access::Hexadecimal(_, set) => {
                parsing.set_parsed(rows, cells::HEXADECIMAL, set, cells::hexadecimal)
            }
            Access::NativeId(_, set) => {
                parsing.set_parsed(rows, cells::NATIVE_ID, set, cells::native_id)
            }
            Access::Kind(_, set) => {
                parsing.set_parsed(rows, cells::KIND, set, ValueKind::from_name)
            }
            _ => Ok(()),
        }
    }
}

/// Parses a column of text.
struct Parsing<'t, 'a> {
    table: &'static str,
    column: &'static str,
    text: &'t Text<'a>,
}

impl Parsing<'_, '_> {
    /// The parsed values of the distinct texts.
    fn parse<T>(&self, rule: &'static str, parse: fn(&str) -> Option<T>) -> Result<Vec<T>> {
        let mut parsed = with_room(self.text.distinct.len())?;
        for (at, text) in (0..).zip(&self.text.distinct) {
            match parse(text) {
                Some(value) => parsed.try_push(value)?,
                None => {
                    let row = self.text.first_row(at);
                    return Err(invalid(self.table, self.column, row, rule));
                }
            }
        }
        Ok(parsed)
    }

    fn set_parsed<D, T: Copy>(
        &self,
        rows: &mut [D],
        rule: &'static str,
        set: fn(&mut D, T),
        parse: fn(&str) -> Option<T>,
    ) -> Result<()> {
        self.set(&self.parse(rule, parse)?, rows, set);
        Ok(())
    }

    fn set<D, T: Copy>(&self, values: &[T], rows: &mut [D], set: fn(&mut D, T)) {
        for (draft, &row) in rows.iter_mut().zip(&self.text.rows) {
            if let Some(&value) = usize::try_from(row).ok().and_then(|row| values.get(row)) {
                set(draft, value);
            }
        }
    }

    /// Parses the text of each row, for values that rows own.
    fn set_each<D, T>(
        &self,
        rows: &mut [D],
        rule: &'static str,
        set: fn(&mut D, T),
        parse: &mut dyn FnMut(&str) -> Result<Option<T>>,
    ) -> Result<()> {
        for (row, draft) in rows.iter_mut().enumerate() {
            let Some(text) = self.text.get(row) else {
                continue;
            };
            match parse(text)? {
                Some(value) => set(draft, value),
                None => return Err(invalid(self.table, self.column, row, rule)),
            }
        }
        Ok(())
    }
}
