//! The trait by which tables are written: the binding crate creates R vectors, tests store them in
//! memory.

use crate::error::Result;

/// Receives tables: for each its start, its columns in order, and its end.
pub trait Sink {
    fn start(&mut self, table: &'static str, rows: usize) -> Result<()>;

    /// Columns of integers with these names. `fill` sets the elements of their slices.
    fn integers(
        &mut self,
        names: &[&'static str],
        fill: &mut dyn FnMut(&mut [&mut [i32]]) -> Result<()>,
    ) -> Result<()>;

    /// A column of 0, 1 and [`NA`](super::NA).
    fn logicals(
        &mut self,
        name: &'static str,
        fill: &mut dyn FnMut(&mut [i32]) -> Result<()>,
    ) -> Result<()>;

    fn doubles(
        &mut self,
        name: &'static str,
        fill: &mut dyn FnMut(&mut [f64]) -> Result<()>,
    ) -> Result<()>;

    /// A column of text: for each row an index into `texts`, or -1 for NA.
    fn texts(&mut self, name: &'static str, texts: &[&str], rows: &[i32]) -> Result<()>;

    fn finish(&mut self) -> Result<()>;
}

/// R's `NA_real_`: a NaN whose low word is 1954.
pub const NA_REAL: f64 = f64::from_bits(0x7ff0_0000_0000_07a2);

/// Sets the elements of a slice to the values of an iterator of the same length.
pub fn fill<T>(slots: &mut [T], values: impl IntoIterator<Item = T>) -> Result<()> {
    for (slot, value) in slots.iter_mut().zip(values) {
        *slot = value;
    }
    Ok(())
}
