//! Long work asks now and then whether it should go on.

use crate::error::{Error, Result};

/// Asked about once a megabyte or ten thousand rows; `true` means stop.
///
/// The binding passes R's check for Ctrl-C, tests pass `&|| false`.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// `Err(Interrupted)` once the user wants out.
pub fn check(stop: Stop) -> Result<()> {
    if stop() {
        Err(Error::Interrupted)
    } else {
        Ok(())
    }
}
