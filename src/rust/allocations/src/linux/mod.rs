//! Allocations on Linux.
//!
//! - [`start`]: the start and the end of a recording, and the [`hook`] in between, which uses the [`run`]; [`state`]: what it
//!   reads in any thread;
//! - [`table`]: the entries of R's table, replaced and restored; [`module`]: where R's library has it;
//! - [`learn`]: what the first vectors show; [`sites`]: new, copy or conversion; [`native`]: the native stack;
//! - [`holders`]: why an object is copied; [`memory`]: the memory of R's thread;
//! - [`cost`]: how much time that takes;
//! - [`identity`]: what distinguishes stacks of R, so that each is read once;
//! - [`sums`]: what the stacks have allocated; [`result`]: their profile.

mod cost;
mod holders;
mod hook;
mod identity;
mod learn;
mod memory;
mod module;
mod native;
mod result;
mod run;
mod sites;
mod start;
mod state;
mod sums;
mod table;

pub use hook::addresses as hooks;
pub use result::Stopped;
pub use run::{see_finalizer, stop_adding};
pub use start::{abandon, begin, is_on, look, prepare, stop};
pub use state::mark;
