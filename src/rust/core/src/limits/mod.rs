//! What work on a profile may not exceed: memory, the size that a file lets expect, and
//! the user's patience.

pub(crate) mod budget;
pub mod cancel;
pub mod memory;
