//! Cancellation: long loops check regularly whether the user wants them to stop.

use crate::error::{Error, Result};

/// Returns `true` if work should stop.
///
/// The binding crate passes R's check for Ctrl-C, tests pass `&|| false`.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// The number of rows of a table or list between two checks. They take at most a few milliseconds, a
/// check a fraction of a microsecond.
pub const ROWS: usize = 10_000;
/// The number of bytes between two checks.
pub const BYTES: usize = 1 << 20;

/// `Err(Interrupted)` if work should stop.
pub fn check(stop: Stop) -> Result<()> {
    if stop() {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}

/// Checks once in [`ROWS`] rows. `row` is the number of the current one.
#[inline]
pub fn at_row(row: usize, stop: Stop) -> Result<()> {
    if row % ROWS == 0 { check(stop) } else { Ok(()) }
}

/// Checks once per [`BYTES`], in input that is read in order and in steps of any size.
pub struct Watch<'s> {
    stop: Stop<'s>,
    next: usize,
}

impl<'s> Watch<'s> {
    pub fn new(stop: Stop<'s>) -> Watch<'s> {
        Watch { stop, next: 0 }
    }

    /// Checks if [`BYTES`] have passed since the last check. `at` is the current offset.
    #[inline]
    pub fn reach(&mut self, at: usize) -> Result<()> {
        if at >= self.next {
            check(self.stop)?;
            self.next = at + BYTES;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_watch_checks_once_in_a_megabyte() {
        let checks = Cell::new(0);
        let stop = || {
            checks.set(checks.get() + 1);
            checks.get() == 3
        };
        let mut watch = Watch::new(&stop);
        for at in [0, 1, BYTES - 1, BYTES, BYTES + 1, 2 * BYTES - 1] {
            watch.reach(at).unwrap();
        }
        assert_eq!(checks.get(), 2);
        assert!(matches!(watch.reach(2 * BYTES), Err(Error::Interrupted)));
    }
}
