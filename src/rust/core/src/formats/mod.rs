//! The formats that are read and written, a folder for each, and what they share.
//!
//! - [`rprof`], [`pprof`], [`otlp`], [`speedscope`], [`cpuprofile`], [`firefox`], [`collapsed`], [`rprofmem`],
//!   [`perf`], [`callgrind`], [`page`], [`profvis`]: one format each, with its description, [`Format`], and its reader and [`Writer`];
//! - [`read`], [`write`]: reading any of them, and writing files;
//! - [`format`](mod@format): the description of a format for other code;
//! - [`signatures`]: the kinds of files that cannot be read;
//! - `lines`, `text_file`, `json_file`, `message`: reading lines, whole files of text or JSON, and messages of protocol
//!   buffers;
//! - [`problems`], [`losses`]: irregularities that readers found, and information that writers could
//!   not store;
//! - [`payload`]: the original file that is embedded in a profile.
//!
//! A format uses the model, the analysis and the shared parts, but no other format. To add
//! one, add its folder, here its module and an entry in [`FORMATS`], and its functions in R.

pub mod callgrind;
pub mod collapsed;
pub mod cpuprofile;
pub mod firefox;
pub mod format;
pub mod losses;
pub mod otlp;
pub mod page;
pub mod payload;
pub mod perf;
pub mod pprof;
pub mod problems;
pub mod profvis;
pub mod read;
pub mod rprof;
pub mod rprofmem;
pub mod signatures;
pub mod speedscope;
pub mod write;

mod bytes;
mod html;
mod json_file;
mod lines;
mod message;
mod r_names;
mod samples;
mod string_table;
mod text_cache;
mod text_file;

#[cfg(test)]
mod testing;

pub use format::{Format, Input};
pub use losses::{LossKind, Losses};
pub use problems::{ProblemKind, Problems};
pub use read::{format_of, read};
pub use write::{Options, Writer, write_file};

/// All formats. The first that recognises a file reads it.
pub const FORMATS: &[&Format] = &[
    &rprof::FORMAT,
    &pprof::FORMAT,
    &otlp::FORMAT,
    &speedscope::FORMAT,
    &cpuprofile::FORMAT,
    &firefox::FORMAT,
    &rprofmem::FORMAT,
    &perf::FORMAT,
    &collapsed::FORMAT,
    &callgrind::FORMAT,
    &page::FORMAT,
    &profvis::FORMAT,
];

/// The format with this name.
pub fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name)
}
