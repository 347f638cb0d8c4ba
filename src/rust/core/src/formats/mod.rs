//! The formats that are read and written, a folder for each, and what they share.
//!
//! - [`rprof`], [`pprof`], [`otlp`], [`speedscope`], [`cpuprofile`]: one format each, with its [`Format`] (how to recognise
//!   and read it) and its [`Writer`];
//! - [`read`], [`write`]: reading any of them, and writing files;
//! - [`problems`], [`losses`]: irregularities that readers found, and information that writers could
//!   not store;
//! - [`payload`]: the original file that is embedded in a profile.
//!
//! A format uses the model, the analysis and the shared parts, but no other format. To add
//! one, add its folder and an entry in [`FORMATS`].

pub mod cpuprofile;
pub mod format;
pub mod losses;
pub mod otlp;
pub mod payload;
pub mod pprof;
pub mod problems;
pub mod read;
pub mod rprof;
pub mod speedscope;
pub mod write;

mod bytes;
mod frame_names;
mod message;
mod string_table;

pub use format::{Format, Input};
pub use losses::{LossKind, Losses};
pub use problems::{ProblemKind, Problems};
pub use read::{FORMATS, format_of, named, read};
pub use write::{Writer, write_file};
