//! Reads a profile of any format, told by its bytes.

use crate::error::{Error, Place, Result};
use crate::formats::detect::{self, Format};
use crate::formats::problems::Problems;
use crate::formats::{otlp, pprof, rprof};
use crate::io::gzip::Content;
use crate::io::input::{self, Origin};
use crate::limits::cancel::Stop;
use crate::model::Profile;
use std::io::Read;
use std::path::Path;

/// What is looked at first. Where it is a message, all of it decides.
const START: u64 = 1 << 16;

/// Reads a file, gzip'd or not.
pub fn read_path(path: &Path, origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let (content, origin) = input::open(path, origin)?;
    dispatch(content, origin, stop)
}

/// Reads bytes, gzip'd or not.
pub fn read_bytes(bytes: &[u8], origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let content =
        Content::new(bytes).map_err(|e| Error::damaged(&origin.name, Place::Byte(0), &e))?;
    dispatch(content, origin, stop)
}

/// What the file looks like, if it is one that can be read here.
pub fn format_of_path(path: &Path, origin: Origin) -> Result<Option<Format>> {
    let (mut content, origin) = input::open(path, origin)?;
    let start = content
        .peek(START)
        .map_err(|e| Error::damaged(&origin.name, Place::Byte(0), &e))?;
    Ok(detect::of(start))
}

fn dispatch(
    mut content: Content<impl Read>,
    origin: Origin,
    stop: Stop,
) -> Result<(Profile, Problems)> {
    // What can be read of a file that breaks off is for its reader to say.
    let start = content
        .peek(START)
        .map_err(|e| Error::damaged(&origin.name, Place::Byte(0), &e))?;
    let format = detect::of(start);
    match format {
        Some(Format::Pprof) => pprof::read_content(content, origin, stop),
        Some(Format::Otlp) => otlp::read_content(content, origin, stop),
        // It knows best what other files look like.
        Some(Format::Rprof) | None => {
            rprof::read_content(content, origin, stop).map_err(|error| match error {
                Error::Foreign { input, found, .. } => Error::Foreign {
                    input,
                    wanted: "a profile that can be read here",
                    found,
                },
                other => other,
            })
        }
    }
}
