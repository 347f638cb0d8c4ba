//! What follows from a profile: the values that other tools see, sums, other versions.

pub mod convert;
pub(crate) mod export;
pub mod summary;
