//! Columns of samples, in which all rows may have the same value.
//!
//! The samples of a file have one source, and each sample of `Rprof()` counts once. Such a column
//! is stored as one value and a length. Writing a million rows, and later finding that all are the
//! same, would take more time than everything else that is done with samples.

use crate::error::Result;
use crate::limits::memory::TryGrow;
use std::fmt;
use std::ops::Index;

/// Values of columns.
pub trait Cell: Copy {
    /// Whether both are identical, which differs from equality: 0 is not -0, and NaN is NaN.
    fn is(self, other: Self) -> bool;
}

impl Cell for f64 {
    #[inline]
    fn is(self, other: f64) -> bool {
        self.to_bits() == other.to_bits()
    }
}

#[derive(Clone)]
pub struct SampleColumn<T> {
    /// A value for each row, or a single value that all rows have.
    values: Vec<T>,
    len: usize,
}

/// The values, however they are stored.
impl<T: fmt::Debug> fmt::Debug for SampleColumn<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> Default for SampleColumn<T> {
    fn default() -> Self {
        SampleColumn::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for SampleColumn<T> {
    fn from(values: Vec<T>) -> Self {
        let len = values.len();
        SampleColumn { values, len }
    }
}

impl<T> Index<usize> for SampleColumn<T> {
    type Output = T;

    #[inline]
    fn index(&self, row: usize) -> &T {
        assert!(row < self.len);
        if self.values.len() == self.len {
            &self.values[row]
        } else {
            &self.values[0]
        }
    }
}

impl<T> SampleColumn<T> {
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        (0..self.len).map(|row| &self[row])
    }
}

impl<T: Cell> SampleColumn<T> {
    /// The value that all rows have, if there is one.
    pub fn the_only(&self) -> Option<T> {
        let first = *self.values.first()?;
        let is_only = self.values.iter().all(|value| value.is(first));
        is_only.then_some(first)
    }

    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<()> {
        if self.values.len() < self.len || self.len < 2 {
            return self.try_fill(self.len + 1, value);
        }
        self.values.try_push(value)?;
        self.len += 1;
        Ok(())
    }

    /// Grows to `len` rows, all new ones with this value.
    pub fn try_fill(&mut self, len: usize, value: T) -> Result<()> {
        if len <= self.len {
            return Ok(());
        }
        match self.values.as_slice() {
            [] => self.values.try_push(value)?,
            [same] if same.is(value) => {}
            _ => {
                self.each()?;
                self.values.try_fill(len, value)?;
            }
        }
        self.len = len;
        Ok(())
    }

    /// Mutable values of all rows.
    #[inline]
    pub fn each(&mut self) -> Result<&mut [T]> {
        if let [same] = *self.values {
            self.values.try_fill(self.len, same)?;
        }
        Ok(&mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(values: &[f64]) -> SampleColumn<f64> {
        let mut column = SampleColumn::default();
        for &value in values {
            column.try_push(value).unwrap();
        }
        column
    }

    #[test]
    fn values_come_back() {
        for values in [
            &[][..],
            &[1.0],
            &[1.0, 1.0],
            &[1.0, 2.0],
            &[1.0, 1.0, 2.0, 1.0],
            &[0.0, -0.0, 0.0],
        ] {
            let column = pushed(values);
            assert_eq!(
                (column.len(), column.is_empty()),
                (values.len(), values.is_empty())
            );
            let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(
                bits(column.iter().copied().collect()),
                bits(values.to_vec())
            );
            let mut column = column;
            assert_eq!(bits(column.each().unwrap().to_vec()), bits(values.to_vec()));
        }
    }

    #[test]
    fn equal_values_are_stored_once() {
        let mut column = pushed(&[f64::NAN; 3]);
        assert!(column.the_only().unwrap().is_nan());
        column.try_fill(1000, f64::NAN).unwrap();
        column.try_fill(10, 0.0).unwrap();
        assert_eq!((column.len(), column.values.len()), (1000, 1));
        column.try_fill(1001, 1.0).unwrap();
        assert_eq!((column.len(), column.values.len()), (1001, 1001));
        assert!(column[999].is_nan() && column[1000] == 1.0);
        assert!(column.the_only().is_none());
        assert_eq!(SampleColumn::from(vec![2.0, 2.0]).the_only(), Some(2.0));
        assert_eq!(pushed(&[0.0, -0.0]).the_only(), None);
        assert_eq!(pushed(&[]).the_only(), None);
    }

    #[test]
    #[should_panic]
    fn there_is_nothing_behind_the_end() {
        let _ = pushed(&[1.0, 1.0])[2];
    }
}
