//! Tests of OTLP profiles with independent code: encoders and decoders of the messages, the rules of the specification, and
//! messages that are valid but irregular.

mod bombs;
mod broken;
mod check;
mod content;
mod damaged;
pub mod irregular;
mod json;
pub mod message;
mod roundtrip;
mod rows;
mod stop;
pub mod wire;

use profile_core::error::{Error, Position, Result};
use profile_core::formats::otlp::{self, Writer};
use profile_core::formats::problems::Problems;
use profile_core::formats::{self, Input, Writer as _};
use profile_core::io::input::Origin;
use profile_core::limits::cancel::Stop;
use profile_core::model::Profile;

/// A message that breaks no rule and has all kinds of content: one scope and two profiles, each with two samples; there is a
/// single frame.
fn whole() -> serde_json::Value {
    serde_json::from_str(include_str!("golden/whole.json")).unwrap()
}

fn read_until(bytes: &[u8], stop: Stop) -> Result<(Profile, Problems)> {
    let origin = Origin {
        name: "input".to_owned(),
        ..Origin::default()
    };
    formats::read(Input::Bytes(bytes), Some(&otlp::FORMAT), origin, stop)
}

fn try_read(bytes: &[u8]) -> Result<Profile> {
    read_until(bytes, &|| false).map(|(profile, _)| profile)
}

#[track_caller]
fn read(bytes: &[u8]) -> Profile {
    try_read(bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Expects an error, and returns its position and message.
#[track_caller]
fn refused(bytes: &[u8]) -> (Position, String) {
    match try_read(bytes) {
        Err(Error::Parse {
            position, message, ..
        }) => (position, message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it can be read"),
    }
}

fn writer(aggregate: bool, json: bool) -> Writer {
    Writer {
        aggregate,
        json,
        ..Writer::default()
    }
}

fn try_write(profile: &Profile, writer: &Writer) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    writer.write(profile, &mut bytes, &|| false)?;
    Ok(bytes)
}

/// Writes as bytes, samples as they are.
#[track_caller]
fn write(profile: &Profile) -> Vec<u8> {
    try_write(profile, &writer(false, false)).unwrap_or_else(|error| panic!("{error}"))
}
