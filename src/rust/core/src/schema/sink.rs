//! The trait by which tables are written: the binding crate creates R vectors, tests store them in
//! memory.

use crate::error::Result;
use crate::limits::memory::TryCollect;
use crate::model::Frames;

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

    /// Columns whose values follow from a rule, for a sink that computes them later. Other sinks
    /// return `false`; they are then passed filled columns.
    fn computed(&mut self, _columns: Computed) -> Result<bool> {
        Ok(false)
    }

    /// A column of text: for each row an index into `texts`, or -1 for NA.
    fn texts(&mut self, name: &'static str, texts: &[&str], rows: &[i32]) -> Result<()>;

    fn finish(&mut self) -> Result<()>;
}

/// The rule that determines the values of columns.
pub enum Computed<'f> {
    /// 1, 2, 3, …, each in this number of rows.
    Counted(&'static str, usize),
    /// One value in all rows.
    Integer(&'static str, i32),
    Double(&'static str, f64),
    /// Distinct texts, and for each of the first rows an index into them, or -1 for NA. All further rows repeat
    /// these.
    Texts(&'static str, &'f [&'f str], &'f [i32]),
    /// The columns of the frames that this function returns.
    Frames(&'f [&'static str; 3], &'f mut dyn FnMut() -> Result<Frames>),
}

/// Writes a column of 1, 2, 3, …, each in `each` rows.
pub fn counted(sink: &mut dyn Sink, name: &'static str, each: usize) -> Result<()> {
    if sink.computed(Computed::Counted(name, each))? {
        return Ok(());
    }
    sink.integers(&[name], &mut |columns| {
        for (slots, number) in columns[0].chunks_mut(each.max(1)).zip(1..) {
            slots.fill(number);
        }
        Ok(())
    })
}

/// Writes a column that has the same value in all rows.
pub fn constant(sink: &mut dyn Sink, name: &'static str, value: i32) -> Result<()> {
    if sink.computed(Computed::Integer(name, value))? {
        return Ok(());
    }
    sink.integers(&[name], &mut |columns| {
        columns[0].fill(value);
        Ok(())
    })
}

/// Writes a column of doubles that has the same value in all rows.
pub fn constant_double(sink: &mut dyn Sink, name: &'static str, value: f64) -> Result<()> {
    if sink.computed(Computed::Double(name, value))? {
        return Ok(());
    }
    sink.doubles(name, &mut |column| {
        column.fill(value);
        Ok(())
    })
}

/// Writes a column in which these texts are repeated in order.
pub fn repeated_texts(
    sink: &mut dyn Sink,
    name: &'static str,
    texts: &[&str],
    rows: usize,
) -> Result<()> {
    let order = 0..texts.len() as i32;
    let one = order.clone().try_vec()?;
    if !texts.is_empty() && sink.computed(Computed::Texts(name, texts, &one))? {
        return Ok(());
    }
    sink.texts(name, texts, &order.cycle().take(rows).try_vec()?)
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
