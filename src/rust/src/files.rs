//! The files and bytes that arguments name, read and written.

use crate::argument::{RAWSXP, argument, text};
use crate::guard::stop;
use extendr_api::Robj;
use profile_core::error::{Error, Result};
use profile_core::formats::pprof;
use profile_core::formats::problems::Problems;
use profile_core::io::gzip;
use profile_core::io::input::Origin;
use profile_core::limits::memory::{Growing, owned};
use profile_core::message;
use profile_core::model::{Payload, Profile};
use std::path::Path;

/// Writes to a file.
pub fn write<T>(file: &Robj, to_path: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let file = argument(file).file()?;
    to_path(file.path).map_err(|error| error.shown_as(file.shown))
}

/// Reads from a file, or from bytes (a raw vector) that are called `name`.
pub fn read(
    input: &Robj,
    [name, uri, max_memory]: [&Robj; 3],
    from_path: impl FnOnce(&Path, Origin) -> Result<(Profile, Problems)>,
    from_bytes: impl FnOnce(&[u8], Origin) -> Result<(Profile, Problems)>,
) -> Result<(Profile, Problems)> {
    let input = argument(input);
    let origin = Origin {
        name: owned(text(name)?, "a name")?,
        uri: argument(uri).owned_text()?,
        written: None,
        stored: input.bytes()?.len() as u64,
        max_memory: memory_limit(max_memory)?,
    };
    if input.kind() == RAWSXP {
        from_bytes(input.bytes()?, origin)
    } else {
        let file = input.file()?;
        from_path(file.path, origin).map_err(|error| error.shown_as(file.shown))
    }
}

/// Bytes, or NULL for what follows from the size of a file.
fn memory_limit(bytes: &Robj) -> Result<Option<u64>> {
    Ok(argument(bytes).doubles()?.first().map(|&n| n as u64))
}

/// Reads the pprof file that the only profile of a file was made from.
pub fn read_payload(
    profile: Profile,
    [name, uri, max_memory]: [&Robj; 3],
) -> Result<(Profile, Problems)> {
    let name = text(name)?;
    let count = profile.sources.len();
    let source = profile.sources.into_iter().next();
    match source.and_then(|source| source.payload) {
        Some(payload) if count == 1 && payload.format == "pprof" => {
            let origin = Origin {
                name: message!("The original payload of {name}"),
                uri: argument(uri).owned_text()?,
                written: None,
                stored: payload.bytes.len() as u64,
                max_memory: memory_limit(max_memory)?,
            };
            pprof::read(payload.bytes.as_slice(), origin, &stop)
        }
        Some(payload) if count == 1 => Err(Error::Unsupported(message!(
            "The original payload of {name} has the format `{}`; only `pprof` can be read.",
            payload.format
        ))),
        _ => Err(Error::Unsupported(message!(
            "{name} is not one profile with its original payload."
        ))),
    }
}

/// The profile as a pprof file, of the kind that holds most of it.
pub fn pprof_payload(profile: &Profile) -> Result<Payload> {
    let options = pprof::WriteOptions {
        aggregate: false,
        sources: false,
    };
    let mut bytes = Vec::new();
    gzip::compress(&mut Growing(&mut bytes), |out| {
        pprof::write(profile, &options, out, &stop).map(|_| ())
    })?;
    Ok(Payload {
        format: owned("pprof", "a payload")?,
        bytes,
    })
}
