//! Interned tables: each distinct row is stored once, and is referred to by its row number.

use super::index::{Index, next_row};
use super::lists::{Lists, SharedLists, TextList};
use crate::error::Result;
use crate::limits::memory::TryGrow;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

/// The number of a row. Each table of the model has its own type of ids, so that the compiler detects
/// ids of another table.
pub trait Id: Copy {
    /// The name of the rows in error messages.
    const ROWS: &'static str;
    fn from_row(row: u32) -> Self;
    /// The row in its table, counted from 0.
    fn to_row(self) -> usize;
}

/// Ids of tables outside the model, which are used in one place only.
impl Id for u32 {
    const ROWS: &'static str = "rows";

    fn from_row(row: u32) -> u32 {
        row
    }

    fn to_row(self) -> usize {
        self as usize
    }
}

/// Declares a type of ids; `$rows` is the name of the rows of its table in error messages.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $rows:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        // A list of ids can then be borrowed as a list of numbers.
        #[repr(transparent)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The row in its table, counted from 0.
            #[inline]
            pub fn row(self) -> usize {
                self.0 as usize
            }
        }

        impl $crate::collections::Id for $name {
            const ROWS: &'static str = $rows;

            #[inline]
            fn from_row(row: u32) -> $name {
                $name(row)
            }

            #[inline]
            fn to_row(self) -> usize {
                self.row()
            }
        }
    };
}
pub(crate) use id;

/// Appends a row to a table that is not interned.
pub fn add<I: Id, T>(rows: &mut Vec<T>, row: T) -> Result<I> {
    let id = I::from_row(next_row(rows.len(), I::ROWS)?);
    rows.try_push(row)?;
    Ok(id)
}

/// A collection in which an interner can store its rows.
pub trait Rows: Default {
    type Row<'r>: Copy + Hash
    where
        Self: 'r;

    fn count(&self) -> usize;
    fn row(&self, row: usize) -> Self::Row<'_>;
    fn equals(&self, row: usize, other: Self::Row<'_>) -> bool;
    fn append(&mut self, row: Self::Row<'_>) -> Result<()>;
}

impl<T: Copy + Eq + Hash> Rows for Vec<T> {
    type Row<'r>
        = T
    where
        T: 'r;

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn row(&self, row: usize) -> T {
        self[row]
    }

    #[inline]
    fn equals(&self, row: usize, other: T) -> bool {
        self[row] == other
    }

    #[inline]
    fn append(&mut self, row: T) -> Result<()> {
        self.try_push(row)
    }
}

/// Lists have the same methods, whether they are shared or not.
macro_rules! rows_are_lists {
    ($($lists:ident),*) => {$(
        impl<T: Copy + Eq + Hash> Rows for $lists<T> {
            type Row<'r>
                = &'r [T]
            where
                T: 'r;

            #[inline]
            fn count(&self) -> usize {
                self.len()
            }

            #[inline]
            fn row(&self, row: usize) -> &[T] {
                self.get(row)
            }

            #[inline]
            fn equals(&self, row: usize, other: &[T]) -> bool {
                self.get(row) == other
            }

            #[inline]
            fn append(&mut self, row: &[T]) -> Result<()> {
                self.push(row)
            }
        }
    )*};
}
rows_are_lists!(Lists, SharedLists);

impl Rows for TextList {
    type Row<'r> = &'r str;

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn row(&self, row: usize) -> &str {
        self.get(row)
    }

    #[inline]
    fn equals(&self, row: usize, other: &str) -> bool {
        self.get(row) == other
    }

    #[inline]
    fn append(&mut self, row: &str) -> Result<()> {
        self.push(row)
    }
}

#[derive(Clone)]
pub struct Interner<R, I = u32> {
    rows: R,
    index: Index,
    id: PhantomData<fn() -> I>,
}

impl<R: Default, I> Default for Interner<R, I> {
    fn default() -> Self {
        Interner {
            rows: R::default(),
            index: Index::default(),
            id: PhantomData,
        }
    }
}

impl<R: fmt::Debug, I> fmt::Debug for Interner<R, I> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.rows.fmt(f)
    }
}

impl<R: Rows, I: Id> Interner<R, I> {
    /// The id of the row that equals this one, which is added if there is none.
    pub fn intern(&mut self, row: R::Row<'_>) -> Result<I> {
        let hash = self.index.hash(row);
        if let Some(id) = self.find_hashed(hash, row) {
            return Ok(id);
        }
        let id = self.append(row)?;
        self.index.insert(hash, id)?;
        Ok(I::from_row(id))
    }

    #[inline]
    pub fn find(&self, row: R::Row<'_>) -> Option<I> {
        self.find_hashed(self.index.hash(row), row)
    }

    #[inline]
    fn find_hashed(&self, hash: u64, row: R::Row<'_>) -> Option<I> {
        let equal = |other: u32| self.rows.equals(other as usize, row);
        self.index.find(hash, equal).map(I::from_row)
    }

    /// Adds a row even if there is an equal one; `intern()` does not find it later. Used for tables whose
    /// rows are kept as they are, and for rows that are known to be distinct.
    pub fn push(&mut self, row: R::Row<'_>) -> Result<I> {
        self.append(row).map(I::from_row)
    }

    #[inline]
    fn append(&mut self, row: R::Row<'_>) -> Result<u32> {
        let id = next_row(self.rows.count(), I::ROWS)?;
        self.rows.append(row)?;
        Ok(id)
    }

    #[inline]
    pub fn get(&self, id: I) -> R::Row<'_> {
        self.rows.row(id.to_row())
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.rows.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = I> + use<R, I> {
        (0..self.len() as u32).map(I::from_row)
    }
}

impl<T, I> Interner<Vec<T>, I> {
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }
}

impl<T: Copy, I> Interner<SharedLists<T>, I> {
    /// A table with these rows, which are not copied. `intern()` of the new table does not find them.
    pub fn share(&self) -> Self {
        Interner {
            rows: self.rows.clone(),
            ..Interner::default()
        }
    }

    /// The items of all rows in one list, and the end of each row in that list.
    pub fn parts(&self) -> (&[T], &[usize]) {
        (self.rows.items(), self.rows.ends())
    }
}

impl<T: Copy, I> Interner<Lists<T>, I> {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        self.rows.iter()
    }
}

impl<I> Interner<TextList, I> {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rows.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_are_stored_once() {
        let mut texts: Interner<TextList> = Interner::default();
        let ids: Vec<u32> = ["a", "", "ab", "a", ""]
            .map(|text| texts.intern(text).unwrap())
            .to_vec();
        assert_eq!(ids, [0, 1, 2, 0, 1]);
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "", "ab"]);
        assert_eq!(texts.find("ab"), Some(2));
        assert_eq!(texts.find("b"), None);
    }

    #[test]
    fn pushed_rows_are_not_merged() {
        let mut lists: Interner<Lists<u8>> = Interner::default();
        assert_eq!(lists.push(&[1]).unwrap(), 0);
        assert_eq!(lists.push(&[1]).unwrap(), 1);
        assert_eq!(lists.intern(&[1]).unwrap(), 2);
        assert_eq!(lists.intern(&[1]).unwrap(), 2);
        assert_eq!(lists.len(), 3);
    }
}
