//! Reads and writes the files and raw vectors that arguments of entry points specify.

use crate::argument::{RAWSXP, Sexp, argument};
use crate::options::option;
use crate::progress::stop_and_report;
use extendr_api::Robj;
use profile_core::error::{Error, Result};
use profile_core::formats::{self, Format, Input, Losses, Problems, Writer};
use profile_core::io::input::Origin;
use profile_core::io::observed::Observed;
use profile_core::limits::memory::owned;
use profile_core::message;
use profile_core::model::Profile;
use std::sync::Arc;

/// The format with this name. An empty name means any format: `None`.
pub fn format(name: &str) -> Result<Option<&'static Format>> {
    if name.is_empty() {
        return Ok(None);
    }
    let unknown = || Error::Unsupported(message!("No format `{name}`."));
    formats::named(name).ok_or_else(unknown).map(Some)
}

/// Reads from a file or a raw vector. `input` is a list with `data` (a path or a raw vector)
/// and the elements that [`origin()`] reads. `report` is the R function that gets the numbers of bytes, or NULL.
pub fn read(
    input: &Robj,
    format: Option<&'static Format>,
    report: Sexp,
) -> Result<(Profile, Problems)> {
    let observed = Arc::new(Observed::default());
    let stop = stop_and_report(report, || bytes_of(&observed));
    let origin = Origin {
        observed: (!report.is_null()).then(|| observed.clone()),
        ..origin(input)?
    };
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
        observed: None,
    })
}

/// Writes a file; returns the information that could not be stored. `report` is as for [`read()`].
pub fn write(file: &Robj, profile: &Profile, writer: &dyn Writer, report: Sexp) -> Result<Losses> {
    let file = argument(file).file()?;
    let observed = Observed::default();
    let stop = stop_and_report(report, || bytes_of(&observed));
    let observed = (!report.is_null()).then_some(&observed);
    formats::write_file(writer, profile, file.path, observed, &stop)
        .map_err(|error| error.during("write", file.shown))
}

fn bytes_of(observed: &Observed) -> Option<(f64, f64)> {
    let (done, size) = observed.progress()?;
    Some((done as f64, size as f64))
}
