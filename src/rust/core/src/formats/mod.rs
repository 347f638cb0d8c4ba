//! The formats that are read and written, a folder for each, and what they share.
//!
//! - [`rprof`], [`pprof`], [`otlp`]: one format each, with its [`Format`] (how to recognise
//!   and read it) and its [`Writer`];
//! - [`read`], [`write`]: reading any of them, and writing files;
//! - [`problems`], [`losses`]: what readers found to be irregular, and what writers could not
//!   store;
//! - [`payload`]: a profile that carries along the file it was made of.
//!
//! A format knows the model, the analysis and the shared parts, never another format. To add
//! one, add its folder and its line in [`FORMATS`].

pub mod format;
pub mod losses;
pub mod otlp;
pub mod payload;
pub mod pprof;
pub mod problems;
pub mod read;
pub mod rprof;
pub mod write;

mod bytes;
mod message;
mod string_table;

pub use format::{Format, Input};
pub use losses::{LossKind, Losses};
pub use problems::{ProblemKind, Problems};
pub use read::{FORMATS, format_of, named, read};
pub use write::{Writer, write_file};
