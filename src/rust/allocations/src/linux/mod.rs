//! Allocations on Linux.
//!
//! - [`run`]: a recording, from its start to its end, and the [`hook`] in between;
//! - [`table`]: the entries of R's table, replaced and restored; [`module`]: where R's library has it;
//! - [`learn`]: what the first vectors show; [`sites`]: new, copy or conversion; [`native`]: the native stack;
//! - [`identity`]: what distinguishes stacks of R, so that each is read once;
//! - [`sums`]: what the stacks have allocated; [`result`]: their profile.

mod hook;
mod identity;
mod learn;
mod module;
mod native;
mod result;
mod run;
mod sites;
mod sums;
mod table;

pub use result::Stopped;
pub use run::{abandon, begin, is_on, prepare, stop};
