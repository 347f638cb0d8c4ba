//! Memory that is looked at without copying it.

use crate::memory::Memory;

/// Memory that does not change for some time, so that it can be looked at without copying it.
pub trait View<'m>: Memory {
    /// `None` if not all of it can be read.
    fn view(&mut self, address: u64, size: usize) -> Option<&'m [u8]>;
}
