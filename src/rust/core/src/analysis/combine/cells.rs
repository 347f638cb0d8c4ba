//! The cells of a column of one profile.

use crate::schema::Text;
use std::borrow::Cow;

/// A column of one part.
pub enum Cells<'a> {
    /// Owned if they are ids after renumbering.
    Integers(Cow<'a, [i32]>),
    /// Owned if they are values in another unit than the profile has.
    Doubles(Cow<'a, [f64]>),
    Texts(Text<'a>),
    /// The table of this profile has no such column. Contains its number of rows.
    Missing(usize),
}

impl Cells<'_> {
    pub fn len(&self) -> usize {
        match self {
            Cells::Integers(values) => values.len(),
            Cells::Doubles(values) => values.len(),
            Cells::Texts(text) => text.rows.len(),
            Cells::Missing(rows) => *rows,
        }
    }

    pub fn integers(&self) -> Option<&[i32]> {
        match self {
            Cells::Integers(values) => Some(values),
            _ => None,
        }
    }

    pub fn doubles(&self) -> Option<&[f64]> {
        match self {
            Cells::Doubles(values) => Some(values),
            _ => None,
        }
    }
}
