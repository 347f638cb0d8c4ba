//! Allocations on Linux.
//!
//! - [`start`]: the start and the end of a recording, and the [`hook`] in between, which uses the [`run`]; [`state`]: what it
//!   reads in any thread;
//! - [`table`]: the entries of R's table, replaced and restored; [`module`]: where R's library has it;
//! - [`learn`]: what the first vectors show; [`sites`]: new, copy or conversion; [`native`]: the native stack;
//! - [`holders`]: who refers to an object that is copied; [`names`]: how they are called; [`reasons`]: that as a sentence;
//!   [`memory`]: the memory of R's thread; [`cost`]: how much time all of this takes;
//! - [`identity`]: what distinguishes stacks of R, so that each is read once; [`titles`]: of some calls, as a part of that;
//!   [`hash`]: numbers for it;
//! - [`sums`]: what the stacks of a process have allocated; [`counts`]: the file that has this of all processes;
//!   [`record`]: a stack in it; [`result`]: the profile;
//! - [`images`]: the process when its memory was highest.

mod cost;
mod counts;
mod hash;
mod holders;
mod hook;
mod identity;
mod images;
mod learn;
mod memory;
mod module;
mod names;
mod native;
mod reasons;
mod record;
mod result;
mod run;
mod sites;
mod start;
mod state;
mod sums;
mod table;
mod titles;

pub use hook::addresses as hooks;
pub use result::{Found, read};
pub use run::{see_finalizer, stop_adding};
pub use start::{abandon, begin, is_on, look, prepare, stop};
pub use state::mark;
