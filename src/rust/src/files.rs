//! Reads and writes the files and raw vectors that arguments of entry points specify.

use crate::argument::{RAWSXP, Sexp, argument};
use crate::guard::stop;
use crate::options::option;
use extendr_api::Robj;
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Format, Input, Losses, Problems, Writer};
use profile_core::io::input::Origin;
use profile_core::limits::memory::owned;
use profile_core::message;
use profile_core::model::Profile;

/// The format with this name. An empty name means any format: `None`.
pub fn format(name: &str) -> Result<Option<&'static Format>> {
    if name.is_empty() {
        return Ok(None);
    }
    let unknown = || Error::Unsupported(message!("No format `{name}`."));
    formats::named(name).ok_or_else(unknown).map(Some)
}

/// Reads from a file or a raw vector. `input` is a list with `data` (a path or a raw vector)
/// and the elements that [`origin()`] reads.
pub fn read(input: &Robj, format: Option<&'static Format>) -> Result<(Profile, Problems)> {
    let origin = origin(input)?;
    let data = option(input, "data")?;
    if data.kind() == RAWSXP {
        return formats::read(Input::Bytes(data.bytes()?), format, origin, &stop);
    }
    let file = data.file()?;
    formats::read(Input::File(file.path), format, origin, &stop)
        .map_err(|error| error.during("read", file.shown))
}

/// The description of an input: its `name` in messages, its `uri`, and `max_memory` (in bytes,
/// or NULL for the default, which depends on the size of the file).
pub fn origin(input: &Robj) -> Result<Origin> {
    let text = |text: Sexp| owned(text.text()?.unwrap_or_default());
    let max_memory = option(input, "max_memory")?.doubles()?.first().copied();
    Ok(Origin {
        name: text(option(input, "name")?)?,
        uri: option(input, "uri")?.owned_text()?,
        written: None,
        stored: option(input, "data")?.bytes()?.len() as u64,
        max_memory: max_memory.map(|bytes| bytes as u64),
    })
}

/// Writes a file; returns the information that could not be stored.
pub fn write(file: &Robj, profile: &Profile, writer: &dyn Writer) -> Result<Losses> {
    let file = argument(file).file()?;
    formats::write_file(writer, profile, file.path, &stop)
        .map_err(|error| error.during("write", file.shown))
}
