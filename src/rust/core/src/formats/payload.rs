//! The original file that is embedded in a profile, which OpenTelemetry calls "original payload".

use super::format::{Format, Input};
use super::pprof;
use super::problems::Problems;
use super::write::Writer;
use super::{named, read};
use crate::error::{Error, Result};
use crate::io::gzip;
use crate::io::input::Origin;
use crate::limits::cancel::Stop;
use crate::limits::memory::{Growing, owned};
use crate::message;
use crate::model::{Payload, Profile};

/// The format in which a profile is embedded: the one that preserves most information.
const WRITTEN: &Format = &pprof::FORMAT;

/// Reads the payload of a profile with one source. `of` describes the input from which the profile was read.
pub fn read_payload(profile: Profile, of: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let count = profile.sources.len();
    let source = profile.sources.into_iter().next();
    let Some(payload) = source.filter(|_| count == 1).and_then(|one| one.payload) else {
        return Err(Error::Unsupported(message!(
            "{} is not one profile with its original payload.",
            of.name
        )));
    };
    let Some(format) = named(&payload.format) else {
        return Err(Error::Unsupported(message!(
            "The original payload of {} has the format `{}`, which cannot be read here.",
            of.name,
            payload.format
        )));
    };
    let origin = Origin {
        name: message!("The original payload of {}", of.name),
        written: None,
        stored: payload.bytes.len() as u64,
        ..of
    };
    let input = Input::Bytes(&payload.bytes);
    read(input, Some(format), origin, stop)
}

/// Creates a payload that contains the whole profile.
pub fn payload_of(profile: &Profile, stop: Stop) -> Result<Payload> {
    let writer = pprof::Writer {
        aggregate: false,
        source_labels: false,
    };
    let mut bytes = Vec::new();
    gzip::compress(&mut Growing(&mut bytes), |out| {
        writer.write(profile, out, stop).map(|_| ())
    })?;
    Ok(Payload {
        format: owned(WRITTEN.name)?,
        bytes,
    })
}
