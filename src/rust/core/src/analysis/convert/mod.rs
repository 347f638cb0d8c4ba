//! Converts profiles between versions "1.0" and "2.0" of the tables.
//!
//! Both versions are read into the same model. They differ in their samples: a row of version "1.0"
//! has a count and a stack; a row of version "2.0" is one recorded sample, whose values and frames
//! are in separate tables. They also differ in the origin of a profile: version "2.0" has the table
//! `sources`, version "1.0" a hidden component ([`Origin`]).
//!
//! - `from_v1`: creates a profile from tables of version "1.0", with the original counts
//!   ([`counted()`]) or with repeated samples ([`from_v1()`]);
//! - `to_v1`: creates the columns of version "1.0";
//! - `origin`: parses and creates the texts of the hidden components.

mod from_v1;
mod origin;
#[cfg(test)]
mod tests;
mod to_v1;

pub use from_v1::{counted, from_v1};
pub use origin::Origin;
pub use to_v1::{ColumnsV1, to_v1};
