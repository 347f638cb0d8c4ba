//! The core of the R package profile: formats, data model and checks. It is independent of R.
//!
//! Data flow from bytes to the [`model`] to columns, and in the opposite direction:
//!
//! - [`model`]: the profile in memory, one file for each table;
//! - [`formats`]: detects, reads and writes files, and records irregularities;
//! - [`schema`]: every table and column, declared once, and how to write and read them;
//! - [`tables`]: reads, checks and filters tables of users;
//! - [`analysis`]: what is computed from a profile, such as self and total values;
//! - [`json`]: writes JSON, and parses its tokens; [`formats`] reads files of it;
//! - [`page`]: an HTML file that shows a profile;
//! - [`joint`]: creates a profile from a recording of R and native code;
//! - [`retry`]: whether and when requests to a server are retried;
//! - `attribute_value`: the values of attributes as trees, and as the texts of the model;
//! - `rprof_header`: the lines that describe a run, in Rprof files and in tables;
//! - [`collections`], [`io`], [`limits`], [`text`], [`error`], [`message`](mod@message): shared
//!   code.
//!
//! A profile that was read can be written in any format:
//!
//! ```
//! use profile_core::formats::{self, Input, Writer, pprof, rprof};
//! use profile_core::io::input::Origin;
//!
//! let stop = || false;
//! let file: &[u8] = b"sample.interval=20000\n\"inner\" \"outer\" \n";
//! let input = Input::Bytes(file);
//! let origin = Origin::default();
//! let (profile, problems) = formats::read(input, Some(&rprof::FORMAT), origin, &stop)?;
//! assert!(problems.is_empty());
//! let stack = profile.stacks.get(profile.samples.stack[0]);
//! let function = stack.first().and_then(|frame| profile.function_of(frame));
//! let innermost = function.map(|f| profile.strings.get(f.name));
//! assert_eq!(innermost, Some("inner"));
//!
//! let mut message = Vec::new();
//! pprof::Writer::default().write(&profile, &mut message, &stop)?;
//! # Ok::<(), profile_core::Error>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

// Modules that both kinds of tests share name this crate as the tests outside of it do.
#[cfg(test)]
extern crate self as profile_core;

pub mod analysis;
mod attribute_value;
pub mod collections;
pub mod error;
pub mod formats;
pub mod io;
pub mod joint;
pub mod json;
pub mod limits;
pub mod message;
pub mod model;
pub mod page;
mod protobuf;
pub mod retry;
mod rprof_header;
pub mod schema;
pub mod tables;
pub mod text;

pub use error::{Error, Result};
