//! What follows from a profile, for whoever writes or shows it.
//!
//! - [`sample_types`]: the values that other tools expect, which type to show;
//! - [`aggregate`]: equal samples as one, with the sums of their values;
//! - [`inlining`]: which locations are one address;
//! - [`source_facts`]: time, period and duration of a source;
//! - [`summary`]: self and total by function and by line;
//! - [`combine`]: several profiles as one;
//! - [`compact`]: the rows of edited tables that are of use;
//! - [`convert`]: between the versions of the tables.

pub(crate) mod aggregate;
pub mod combine;
pub mod compact;
pub mod convert;
pub(crate) mod inlining;
pub(crate) mod sample_types;
pub(crate) mod source_facts;
pub mod summary;
