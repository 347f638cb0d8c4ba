//! The binding crate: the only one that knows R and extendr.
//!
//! - [`entry`]: the entry points. extendr registers them, and `R/extendr-wrappers.R` is generated from them;
//! - [`vector_data`], [`argument`], [`options`], [`files`], [`from_r`]: from objects of R to values, settings, files and
//!   profiles;
//! - [`arena`], [`tibble`], [`to_r`], [`altrep`]: from results to objects of R;
//! - [`pool`]: several profiles as one;
//! - [`outcome`], [`guard`]: errors, panics and jumps, see `README.md` beside this crate;
//! - [`agent`]: settings and status of the agent;
//! - [`thread_clock`]: the CPU time of R's thread;
//! - [`program`]: runs a program in the place of this process.

#![warn(clippy::disallowed_macros, clippy::disallowed_methods)]

// The code that `#[extendr]` generates allocates a few bytes with such methods, for a message or for the table of
// functions.
#[allow(clippy::disallowed_macros, clippy::disallowed_methods)]
mod entry;

#[cfg_attr(
    not(all(target_os = "linux", target_pointer_width = "64")),
    path = "agent_unsupported.rs"
)]
mod agent;
mod altrep;
mod arena;
mod argument;
mod files;
mod from_r;
mod guard;
mod options;
mod outcome;
mod pool;
mod program;
mod progress;
mod thread_clock;
mod tibble;
mod to_r;
mod vector_data;

use extendr_api::prelude::Robj;
use profile_sampler as sampler;
use std::ffi::c_int;

/// Called when the package was loaded, after a check that there is memory for extendr's table of
/// protected objects. The first object creates the table; it is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn profile_rust_load() {
    std::mem::forget(Robj::default());
}

/// Called before the package is unloaded, and with it the signal handler and the code of threads. Returns 1 if a
/// thread is still running, so that the code must stay in memory.
#[unsafe(no_mangle)]
pub extern "C" fn profile_rust_unload() -> c_int {
    sampler::abandon();
    profile_allocations::abandon();
    entry::abandon();
    c_int::from(agent::abandon())
}
