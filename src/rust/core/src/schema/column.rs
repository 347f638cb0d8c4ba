//! The entry of a column: its name, the content of its cells, and how it is stored in the model.
//!
//! [`Access`] is the kind of content. It determines the type in R, how a cell is parsed, checked
//! and written, and contains the two functions that get it from the model and set it there. `R` is
//! the type of a row of the model, `D` the type of a draft of a row while it is read; in most
//! tables they are the same.

use super::key::Key;
use crate::model::{NativeId, Profile, StringId, ValueKind};

/// The type of a column in R.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Integer,
    Double,
    Text,
    Logical,
    /// A list of tibbles with the column `location_id`, in version "1.0".
    Stacks,
}

impl Type {
    pub fn name(self) -> &'static str {
        match self {
            Type::Integer => "integer",
            Type::Double => "double",
            Type::Text => "character",
            Type::Logical => "logical",
            Type::Stacks => "list",
        }
    }
}

/// The description of a column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnInfo {
    pub name: &'static str,
    pub type_: Type,
    /// Whether the table must have the column. Optional columns are omitted if they have no values.
    pub required: bool,
    /// Another column, which must not be present without this one.
    pub needed_by: Option<&'static str>,
    /// The unit of the numbers, or the encoding of the text.
    pub unit: Option<&'static str>,
    pub doc: &'static str,
}

impl ColumnInfo {
    pub const fn new(name: &'static str, type_: Type, doc: &'static str) -> ColumnInfo {
        ColumnInfo {
            name,
            type_,
            required: true,
            needed_by: None,
            unit: None,
            doc,
        }
    }

    pub const fn optional(mut self) -> ColumnInfo {
        self.required = false;
        self
    }

    pub const fn unit(mut self, unit: &'static str) -> ColumnInfo {
        self.unit = Some(unit);
        self
    }

    pub const fn needed_by(mut self, column: &'static str) -> ColumnInfo {
        self.needed_by = Some(column);
        self
    }

    /// The key whose ids the column contains, if it has the name of a key.
    pub fn refers_to(&self) -> Option<Key> {
        Key::from_column(self.name)
    }
}

pub(super) type Get<R, T> = fn(&Profile, &R) -> Option<T>;
/// For what the model owns.
pub(super) type GetPart<R, T> = for<'a> fn(&Profile, &'a R) -> Option<&'a T>;
pub(super) type Set<D, T> = fn(&mut D, T);

/// The content of the cells of a column, with the functions that get it from a row of the model and
/// set it in a draft. NA is `None`, and is not set.
pub(super) enum Access<R: 'static, D: 'static> {
    /// The id of the row itself: 1, 2, 3, ….
    Key,
    /// The id of a row of another table, which is looked up: the functions use the row.
    Reference(Key, Get<R, usize>, Set<D, usize>),
    /// An id that may not exist: it is not looked up.
    Id(Get<R, usize>, Set<D, i32>),
    Integer(Get<R, i32>, Set<D, i32>),
    /// A line number that is not negative; 0 if it is too large for an R integer.
    Line(Get<R, i64>, Set<D, i64>),
    /// A line number that is too large for an R integer, in addition to a column of line numbers.
    ExactLine(Get<R, i64>, Set<D, i64>),
    Double(Get<R, f64>, Set<D, f64>),
    /// A whole number of 64 bits, as the nearest double.
    Whole(Get<R, i64>, Set<D, f64>),
    /// A whole number from 0 to 2^32 - 1.
    Count(Get<R, u32>, Set<D, u32>),
    Flag(Get<R, bool>, Set<D, bool>),
    Text(Get<R, StringId>, Set<D, StringId>),
    OwnText(GetPart<R, str>, Set<D, String>),
    /// A whole number of 64 bits, in decimal.
    Decimal(Get<R, i64>, Set<D, i64>),
    Hexadecimal(Get<R, u64>, Set<D, u64>),
    NativeId(Get<R, NativeId>, Set<D, NativeId>),
    /// Bytes, in base64.
    Bytes(GetPart<R, [u8]>, Set<D, Vec<u8>>),
    /// Bytes, in hexadecimal. The functions use the digits.
    HexDigits(GetPart<R, str>, Set<D, String>),
    /// The type of the value in another column.
    Kind(Get<R, ValueKind>, Set<D, ValueKind>),
    /// Texts, as a JSON array; no texts are NA.
    Texts(GetPart<R, [StringId]>, Set<D, Vec<StringId>>),
}

/// When an optional column is written.
pub(super) enum Given<R: 'static> {
    Always,
    /// Written if any cell has a value.
    WhereAny,
    /// Written if the function returns `true` for any row.
    Where(fn(&Profile, &R) -> bool),
}

pub struct Column<R: 'static, D: 'static = R> {
    pub info: ColumnInfo,
    pub(super) access: Access<R, D>,
    pub(super) given: Given<R>,
    pub(super) allows_na: bool,
    pub(super) allows_empty: bool,
}

impl<R, D> Access<R, D> {
    const fn type_(&self) -> Type {
        match self {
            Access::Key | Access::Reference(..) | Access::Id(..) => Type::Integer,
            Access::Integer(..) | Access::Line(..) => Type::Integer,
            Access::Double(..) | Access::Whole(..) | Access::Count(..) => Type::Double,
            Access::Flag(..) => Type::Logical,
            Access::Text(..) | Access::OwnText(..) | Access::Texts(..) => Type::Text,
            Access::Decimal(..) | Access::ExactLine(..) | Access::NativeId(..) => Type::Text,
            Access::Hexadecimal(..) | Access::HexDigits(..) | Access::Bytes(..) => Type::Text,
            Access::Kind(..) => Type::Text,
        }
    }
}

impl<R, D> Column<R, D> {
    /// Keys and references must not be NA, unless [`Column::or_na`] is called.
    pub(super) const fn new(
        name: &'static str,
        access: Access<R, D>,
        doc: &'static str,
    ) -> Column<R, D> {
        Column {
            info: ColumnInfo::new(name, access.type_(), doc),
            allows_na: !matches!(access, Access::Key | Access::Reference(..)),
            access,
            given: Given::Always,
            allows_empty: true,
        }
    }

    pub(super) const fn unit(mut self, unit: &'static str) -> Column<R, D> {
        self.info.unit = Some(unit);
        self
    }

    pub(super) const fn not_na(mut self) -> Column<R, D> {
        self.allows_na = false;
        self
    }

    pub(super) const fn or_na(mut self) -> Column<R, D> {
        self.allows_na = true;
        self
    }

    /// Empty texts are not allowed.
    pub(super) const fn not_empty(mut self) -> Column<R, D> {
        self.allows_empty = false;
        self
    }

    /// Written if any cell has a value.
    pub(super) const fn optional(mut self) -> Column<R, D> {
        self.info.required = false;
        self.given = Given::WhereAny;
        self
    }

    /// Written if `given` returns `true` for any row.
    pub(super) const fn optional_where(mut self, given: fn(&Profile, &R) -> bool) -> Column<R, D> {
        self.info.required = false;
        self.given = Given::Where(given);
        self
    }
}
