//! The ids that functions, mappings and locations had in the file they were read from.
//!
//! In the model ids are row numbers. The original ids are kept so that a profile can be written
//! as it was read.

use std::num::NonZeroU64;

/// The id that a row had in its file, if it differs from the row number, counted from 1.
pub type NativeId = NonZeroU64;
