//! Growing without aborting.
//!
//! Rust's collections abort the process, and R with it, when memory runs out.
//! Whatever grows with its input therefore grows through [`TryGrow`].

use crate::error::{Error, Result};
use std::io::{self, Write};

pub trait TryGrow<T> {
    /// Appends one element; `what` names the data in the error.
    fn try_push(&mut self, value: T, what: &'static str) -> Result<()>;
    /// Appends a slice.
    fn try_extend(&mut self, values: &[T], what: &'static str) -> Result<()>
    where
        T: Copy;
    /// Appends what an iterator of known length gives.
    fn try_extend_from(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        what: &'static str,
    ) -> Result<()>;
    /// Grows to `len` elements, all new ones equal to `value`.
    fn try_fill(&mut self, len: usize, value: T, what: &'static str) -> Result<()>
    where
        T: Clone;
}

impl<T> TryGrow<T> for Vec<T> {
    #[inline]
    fn try_push(&mut self, value: T, what: &'static str) -> Result<()> {
        if self.len() == self.capacity() {
            self.try_reserve(1).map_err(|_| Error::Memory(what))?;
        }
        self.push(value);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, values: &[T], what: &'static str) -> Result<()>
    where
        T: Copy,
    {
        self.try_reserve(values.len())
            .map_err(|_| Error::Memory(what))?;
        self.extend_from_slice(values);
        Ok(())
    }

    fn try_extend_from(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        what: &'static str,
    ) -> Result<()> {
        self.try_reserve(values.len())
            .map_err(|_| Error::Memory(what))?;
        self.extend(values);
        Ok(())
    }

    fn try_fill(&mut self, len: usize, value: T, what: &'static str) -> Result<()>
    where
        T: Clone,
    {
        let more = len.saturating_sub(self.len());
        self.try_reserve(more).map_err(|_| Error::Memory(what))?;
        self.resize(self.len() + more, value);
        Ok(())
    }
}

/// Bytes that are written to memory, as far as there is any.
pub struct Growing<'m>(pub &'m mut Vec<u8>);

impl Write for Growing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .try_reserve(bytes.len())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
