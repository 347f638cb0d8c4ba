//! The formats that are read and written, a folder for each, and what they share.
//!
//! - [`rprof`], [`pprof`], [`otlp`], [`speedscope`], [`cpuprofile`], [`firefox`], [`collapsed`], [`rprofmem`],
//!   [`perf`]: one format each, with its [`Format`] (how to recognise and read it) and its [`Writer`]; [`callgrind`]
//!   is only written;
//! - [`read`], [`write`]: reading any of them, and writing files;
//! - [`foreign`], [`signatures`]: what content of another format looks like, and the kinds of files that cannot be read;
//! - [`problems`], [`losses`]: irregularities that readers found, and information that writers could
//!   not store;
//! - [`payload`]: the original file that is embedded in a profile.
//!
//! A format uses the model, the analysis and the shared parts, but no other format. To add
//! one, add its folder and an entry in [`FORMATS`].

pub mod callgrind;
pub mod collapsed;
pub mod cpuprofile;
pub mod firefox;
pub mod foreign;
pub mod format;
pub mod losses;
pub mod otlp;
pub mod payload;
pub mod perf;
pub mod pprof;
pub mod problems;
pub mod read;
pub mod rprof;
pub mod rprofmem;
pub mod signatures;
pub mod speedscope;
pub mod write;

mod bytes;
mod lines;
mod message;
mod r_names;
mod string_table;
mod text_cache;
mod text_file;

#[cfg(test)]
mod testing;

pub use format::{Format, Input};
pub use losses::{LossKind, Losses};
pub use problems::{ProblemKind, Problems};
pub use read::{FORMATS, format_of, named, read};
pub use write::{Writer, write_file};

use crate::error::{Error, Result};
use crate::limits::budget::Budget;
use crate::limits::memory::TryGrow;
use crate::model::{Profile, SourceId, StackId};

/// Appends a sample without values. `frames` is the length of its stack, and `input` the name of the file.
#[inline]
fn add_sample(
    profile: &mut Profile,
    budget: &mut Budget,
    input: &str,
    source: SourceId,
    stack: StackId,
    frames: usize,
) -> Result<()> {
    if profile.samples.len() >= i32::MAX as usize {
        return Err(Error::Unsupported(crate::message!(
            "{input}: more than {} samples, which R cannot number.",
            i32::MAX
        )));
    }
    budget.samples(1, frames, input)?;
    profile.samples.source.try_push(source, "samples")?;
    profile.samples.stack.try_push(stack, "samples")
}
