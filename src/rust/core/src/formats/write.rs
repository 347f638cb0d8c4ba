//! Writes a profile to a file, in the format of a [`Writer`].

use super::losses::Losses;
use crate::error::Result;
use crate::io::observed::Observed;
use crate::io::{gzip, save};
use crate::limits::cancel::Stop;
use crate::model::{Payload, Profile};
use std::io::Write;
use std::path::Path;

/// Makes the writer of a format with options.
pub type MakeWriter = for<'a> fn(&'a dyn Options) -> Result<Box<dyn Writer + 'a>>;

/// The options of a writer by their names, as R passes them.
pub trait Options {
    fn flag(&self, name: &str) -> Result<bool>;
    /// `None` if the writer decides.
    fn optional_flag(&self, name: &str) -> Result<Option<bool>>;
    fn text(&self, name: &str) -> Result<Option<&str>>;
    fn texts(&self, name: &str) -> Result<Vec<&str>>;
    /// The whole profile as a file to embed, if this flag is set.
    fn payload(&self, name: &str) -> Result<Option<Payload>>;
}

/// Writes profiles in a format. Its fields are the options.
pub trait Writer {
    /// Whether all files are compressed, because the tools for the format expect that. Otherwise a file
    /// is compressed if its path ends in `.gz`.
    fn always_gzip(&self) -> bool {
        false
    }

    /// Writes the content of a file, not compressed.
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses>;
}

/// Writes a file. An existing file is replaced when the new one is complete. `observed` reports the position while it is written.
pub fn write_file(
    writer: &dyn Writer,
    profile: &Profile,
    path: &Path,
    observed: Option<&Observed>,
    stop: Stop,
) -> Result<Losses> {
    let mut losses = Losses::default();
    let mut write = |out: &mut dyn Write| {
        losses = writer.write(profile, out, stop)?;
        Ok(())
    };
    let name = path.as_os_str().as_encoded_bytes();
    let gzip = writer.always_gzip() || name.ends_with(b".gz");
    save::replace(path, observed, |out| {
        if gzip {
            gzip::compress(out, write)
        } else {
            write(out)
        }
    })?;
    Ok(losses)
}
