//! The core of the R package profile: formats, model, checks. It knows no R.
//!
//! Data flows one way, bytes → [`model`] → columns, and back the same way:
//!
//! - [`model`]: the profile in memory, one file for each table;
//! - [`rprof`], [`pprof`]: a format each, with its reader and its writer;
//! - [`problems`]: what was odd in an input; [`error`]: what cannot be read;
//! - [`gzip`], [`input`], [`save`], [`memory`], [`cancel`]: what they share.

#![forbid(unsafe_code)]

pub mod cancel;
pub mod error;
pub mod gzip;
pub mod input;
pub mod memory;
pub mod model;
pub mod pprof;
pub mod problems;
pub mod rprof;
pub mod save;
pub mod summary;
pub mod tables;
pub mod text;

pub use error::{Error, Result};
