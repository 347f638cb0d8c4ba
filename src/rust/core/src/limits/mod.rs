//! The limits of work on a profile: memory, a budget by the size of a file, and the user's
//! wish to cancel.

pub(crate) mod budget;
pub mod cancel;
pub mod memory;
