//! Cancelling: long work checks regularly whether the user wants it to stop.

use crate::error::{Error, Result};

/// Returns `true` if work should stop.
///
/// The binding passes R's check for Ctrl-C, tests pass `&|| false`.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Rows between two checks, of tables and lists: some milliseconds. A check takes
/// a fraction of a microsecond.
pub const ROWS: usize = 10_000;
/// Bytes between two checks.
pub const BYTES: usize = 1 << 20;

/// `Err(Interrupted)` if work should stop.
pub fn check(stop: Stop) -> Result<()> {
    if stop() {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}

/// Checks once in [`BYTES`] of something that is read in order, but not byte by byte.
pub struct Watch<'s> {
    stop: Stop<'s>,
    next: usize,
}

impl<'s> Watch<'s> {
    pub fn new(stop: Stop<'s>) -> Watch<'s> {
        Watch { stop, next: 0 }
    }

    /// Byte `at` is reached.
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
