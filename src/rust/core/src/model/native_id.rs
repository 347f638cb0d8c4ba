//! The ids that functions, mappings and locations had in the file they were read from.
//!
//! They are kept so that a profile can be written as it was: here ids are row numbers.

use std::num::NonZeroU64;

/// The id that a row had in its file, if that was not its row number, counted from 1.
pub type NativeId = NonZeroU64;
