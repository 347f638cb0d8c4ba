//! The core of the R package profile: formats, model, checks. It knows no R.
//!
//! Data flows one way, bytes → [`model`] → columns, and back the same way:
//!
//! - [`model`]: the profile in memory, one file for each table;
//! - [`rprof`], [`pprof`], [`otlp`]: a format each, with its reader and its writer;
//! - [`read`]: whichever of them a file is of;
//! - [`problems`]: what was odd in an input; [`error`]: what cannot be read;
//! - [`tables`]: what comes back from users, checked; [`convert`]: between its
//!   versions; [`summary`]: self and total;
//! - `budget`: how much memory a file may take;
//! - [`gzip`], [`input`], [`save`], [`text`], [`memory`], [`cancel`]: what they
//!   share.
//!
//! Everything that a reader makes can be written again, in either format:
//!
//! ```
//! use profile_core::input::Origin;
//! use profile_core::{pprof, rprof};
//!
//! let go_on = || false;
//! let file: &[u8] = b"sample.interval=20000\n\"inner\" \"outer\" \n";
//! let (profile, problems) = rprof::read(file, Origin::default(), &go_on)?;
//! assert!(problems.is_empty());
//! let stack = profile.stacks.get(profile.samples.stack[0]);
//! let innermost = profile.function_of(stack[0]).map(|f| profile.strings.get(f.name));
//! assert_eq!(innermost, Some("inner"));
//!
//! let mut message = Vec::new();
//! pprof::write(&profile, &pprof::WriteOptions::default(), &mut message, &go_on)?;
//! # Ok::<(), profile_core::Error>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

mod budget;
pub mod cancel;
pub mod convert;
pub mod error;
mod export;
pub mod formats;
pub mod gzip;
pub mod input;
pub mod joint;
pub mod memory;
pub mod model;
pub mod otlp;
pub mod pprof;
pub mod problems;
mod protobuf;
pub mod read;
pub mod rprof;
pub mod save;
pub mod summary;
pub mod tables;
pub mod text;

pub use error::{Error, Result};
