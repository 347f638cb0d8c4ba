//! From columns to rows of the model: each cell is parsed once, and its rule checked there.

use super::column::Access;
use super::input::{self, Data, NA, TableInput, Text, find, invalid};
use super::sample_locations::Runs;
use super::samples::Pending;
use super::table::{RowTable, Version};
use super::{Column, Ids, Key, cells};
use crate::error::{Error, Result};
use crate::limits::memory::{TryGrow, owned, with_room};
use crate::message;
use crate::model::{Profile, StringId, ValueKind};
use crate::text::decoded;

const WHAT: &str = "rows of a table";

/// Tables that are being read: what is known so far.
pub struct Reading<'a> {
    /// All of the profile but the stacks of samples, see [`Runs`].
    pub profile: Profile,
    ids: [Option<Ids>; Key::ALL.len()],
    pub(super) pending: Pending<'a>,
    pub runs: Runs<'a>,
}

/// The text "", which rows hold where nothing is known; it is interned first.
pub(super) const EMPTY: StringId = StringId(0);

/// A text of a column in which an empty one is none.
pub(super) fn known(text: StringId) -> Option<StringId> {
    (text != EMPTY).then_some(text)
}

impl<'a> Reading<'a> {
    pub fn new() -> Result<Reading<'a>> {
        let mut profile = Profile::default();
        profile.strings.intern("")?;
        Ok(Reading {
            profile,
            ids: [const { None }; Key::ALL.len()],
            pending: Pending::default(),
            runs: Runs::default(),
        })
    }

    /// Takes in the ids of a table that others may refer to.
    pub fn read_ids(&mut self, key: Key, input: &dyn TableInput<'a>) -> Result<()> {
        let column = super::ColumnInfo::new(key.name(), super::Type::Integer, "");
        let ids = input::integers(find(input, key.table(), &column)?).unwrap_or_default();
        if key == Key::Sample {
            self.pending.ids = ids;
        }
        self.ids[key as usize] = Some(Ids::new(key.table(), key.name(), ids)?);
        Ok(())
    }

    /// The row of an id, counted from 0.
    pub fn row_of(&self, key: Key, id: i32) -> Option<usize> {
        self.ids[key as usize].as_ref()?.row(id)
    }

    /// How to find the rows of many ids.
    pub(super) fn ids(&self, key: Key) -> Option<&Ids> {
        self.ids[key as usize].as_ref()
    }

    /// The distinct texts of a column as strings of the profile.
    pub(super) fn intern(&mut self, text: &Text) -> Result<Vec<StringId>> {
        let mut ids = with_room(text.distinct.len(), "strings")?;
        for text in &text.distinct {
            ids.try_push(self.profile.strings.intern(text)?, "strings")?;
        }
        Ok(ids)
    }
}

/// A row refers to an id that `key`'s table does not have.
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

/// What is wrong with each of the distinct texts of a column, and with NA.
pub(super) fn check_texts(
    table: &'static str,
    column: &'static str,
    text: &Text,
    rule: impl Fn(Option<&str>) -> Option<&'static str>,
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
    /// Sets this column's cell of all rows.
    fn read<'a>(
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
        if let Access::Reference(key, _, set) = self.access {
            let ids = reading.ids(key);
            for (row, (draft, &id)) in rows.iter_mut().zip(values).enumerate() {
                if id == NA && self.allows_na {
                    continue;
                }
                match ids.and_then(|ids| ids.row(id)) {
                    Some(found) => set(draft, found),
                    None => return Err(unresolved(table, column, row, id, key)),
                }
            }
            return Ok(());
        }
        for (row, (draft, &value)) in rows.iter_mut().zip(values).enumerate() {
            if value == NA {
                if !self.allows_na {
                    return broken(row, "must not be NA");
                }
                continue;
            }
            match self.access {
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
        check_texts(table, self.info.name, text, |text| match text {
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
            }
            Access::OwnText(_, set) => {
                return parsing.set_each(rows, "", set, |text| owned(text, WHAT).map(Some));
            }
            Access::HexDigits(_, set) => {
                return parsing.set_each(rows, cells::HEX_DIGITS, set, cells::hex_digits);
            }
            Access::Bytes(_, set) => {
                return parsing.set_each(rows, cells::BASE64, set, |text| {
                    decoded(&cells::ENCODING, text.as_bytes())
                });
            }
            Access::Decimal(_, set) | Access::ExactLine(_, set) => {
                let numbers = parsing.parse(cells::DECIMAL, |t| Ok(cells::decimal(t)))?;
                parsing.set(&numbers, rows, set);
            }
            Access::Hexadecimal(_, set) => {
                let numbers = parsing.parse(cells::HEXADECIMAL, |t| Ok(cells::hexadecimal(t)))?;
                parsing.set(&numbers, rows, set);
            }
            Access::NativeId(_, set) => {
                let ids = parsing.parse(cells::NATIVE_ID, |t| Ok(cells::native_id(t)))?;
                parsing.set(&ids, rows, set);
            }
            Access::Kind(_, set) => {
                let kinds = parsing.parse(cells::KIND, |t| Ok(ValueKind::of_name(t)))?;
                parsing.set(&kinds, rows, set);
            }
            Access::Texts(_, set) => {
                let strings = &mut reading.profile.strings;
                return parsing
                    .set_each(rows, cells::TEXTS, set, |text| cells::texts(text, strings));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A column of text that is being parsed.
struct Parsing<'t, 'a> {
    table: &'static str,
    column: &'static str,
    text: &'t Text<'a>,
}

impl Parsing<'_, '_> {
    /// What each of the distinct texts stands for.
    fn parse<T>(
        &self,
        rule: &'static str,
        parse: impl Fn(&str) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let mut parsed = with_room(self.text.distinct.len(), WHAT)?;
        for (at, text) in (0..).zip(&self.text.distinct) {
            match parse(text)? {
                Some(value) => parsed.try_push(value, WHAT)?,
                None => {
                    let row = self.text.first_row(at);
                    return Err(invalid(self.table, self.column, row, rule));
                }
            }
        }
        Ok(parsed)
    }

    fn set<D, T: Copy>(&self, values: &[T], rows: &mut [D], set: fn(&mut D, T)) {
        for (draft, &row) in rows.iter_mut().zip(&self.text.rows) {
            if let Some(&value) = usize::try_from(row).ok().and_then(|row| values.get(row)) {
                set(draft, value);
            }
        }
    }

    /// Parses for each row what it owns.
    fn set_each<D, T>(
        &self,
        rows: &mut [D],
        rule: &'static str,
        set: fn(&mut D, T),
        mut parse: impl FnMut(&str) -> Result<Option<T>>,
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

impl<R: Clone, D> RowTable<R, D> {
    pub(super) fn read_rows<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        version: Version,
    ) -> Result<()> {
        let table = self.info.name;
        let mut rows: Vec<D> = with_room(input.rows(), WHAT)?;
        for _ in 0..input.rows() {
            rows.try_push((self.blank)(), WHAT)?;
        }
        for column in self.columns {
            if (version == Version::Two || column.info.required)
                && !matches!(column.access, Access::Key)
            {
                column.read(table, input, &mut rows, reading)?;
            }
        }
        for rule in self.rules {
            for (row, draft) in rows.iter().enumerate() {
                if let Some((column, rule)) = rule(draft, &reading.profile.strings)? {
                    return Err(invalid(table, column, row, rule));
                }
            }
        }
        (self.store)(reading, rows)
    }
}
