//! The cells of a column of one profile.

use crate::schema::Text;

/// A column of one part.
pub enum Cells<'a> {
    Integers(&'a [i32]),
    /// Ids after renumbering.
    Ids(Vec<i32>),
    Doubles(&'a [f64]),
    /// Values in another unit than the profile has.
    Converted(Vec<f64>),
    Texts(Text<'a>),
    /// The table of this profile has no such column. Contains its number of rows.
    Missing(usize),
}

impl Cells<'_> {
    pub fn len(&self) -> usize {
        match self {
            Cells::Integers(values) => values.len(),
            Cells::Ids(ids) => ids.len(),
            Cells::Doubles(values) => values.len(),
            Cells::Converted(values) => values.len(),
            Cells::Texts(text) => text.rows.len(),
            Cells::Missing(rows) => *rows,
        }
    }

    pub fn integers(&self) -> Option<&[i32]> {
        match self {
            Cells::Integers(values) => Some(values),
            Cells::Ids(ids) => Some(ids),
            _ => None,
        }
    }

    pub fn doubles(&self) -> Option<&[f64]> {
        match self {
            Cells::Doubles(values) => Some(values),
            Cells::Converted(values) => Some(values),
            _ => None,
        }
    }
}
