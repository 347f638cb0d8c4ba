//! Reads a pprof message into the columns of the model.
//!
//! Two passes: the first collects everything except the samples ([`Outline`]), since the
//! string table may come last and the tables refer to each other in any order; the second
//! reads the samples. Messages that Go's reader rejects are rejected here as well, and the
//! error contains the byte offset.

mod header;
mod ids;
mod outline;
mod samples;
mod sources;
mod tables;

use crate::error::{Error, Position, Result};
use crate::formats::format::{Format, Opened};
use crate::formats::message::{Expected, load};
use crate::formats::pprof::proto::profile as field;
use crate::formats::problems::Problems;
use crate::io::input::Origin;
use crate::limits::budget::Budget;
use crate::limits::cancel::{Stop, Watch};
use crate::message;
use crate::model::Profile;
use crate::protobuf::decode::{DecodeError, Message, Result as WireResult, error_at};
use outline::Outline;
use samples::SampleReader;

/// Reads a pprof message.
///
/// If two sample types have the same name, the second is called `name/unit`. Messages of
/// 2 GiB or more are rejected.
pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let expected = Expected {
        format: opened.format,
        other_start: |_| false,
        recognise: opened.recognise,
    };
    let origin = opened.origin;
    let mut problems = Problems::default();
    let (bytes, budget) = load(opened.content, &origin, expected, &mut problems, stop)?;
    let name = origin.name.clone();
    build(&bytes, origin, expected.format, problems, budget, stop).map_err(|error| match error {
        DecodeError::Other(error) => error,
        DecodeError::At { at, message } => {
            expected.foreign(&name, &bytes).unwrap_or(Error::Parse {
                input: name,
                position: Position::Byte(at as u64),
                message,
            })
        }
    })
}

fn build(
    bytes: &[u8],
    origin: Origin,
    format: &'static Format,
    mut problems: Problems,
    budget: Budget,
    stop: Stop,
) -> WireResult<(Profile, Problems)> {
    let mut outline = Outline::read(bytes, stop)?;
    let mut profile = Profile::default();
    let mappings = tables::mappings(&mut outline, &mut profile, &mut problems)?;
    let functions = tables::functions(&mut outline, &mut profile, &mut problems)?;
    let locations =
        tables::locations(&outline, &mappings, &functions, &mut profile, &mut problems)?;
    let name = message!("{}", origin.name);
    let types = header::types(&mut outline, &origin.name, &mut profile, &mut problems)?;
    let strings = &mut profile.strings;
    let source = header::source(&mut outline, origin, format, types, strings, &mut problems)?;
    let source = profile.add_source(source)?;
    if outline.types.is_empty() && outline.samples > 0 {
        return error_at(
            outline.first_sample,
            "There are samples, but no sample type says what their values mean.",
        );
    }
    let texts = outline.texts;
    let mut reader = SampleReader::new(texts, locations, source, profile, problems, budget, name);
    let mut message = Message::new(bytes);
    let mut watch = Watch::new(stop);
    while let Some(found) = message.field()? {
        watch.reach(found.at)?;
        if found.number == field::SAMPLE {
            reader.sample(found.message()?)?;
        }
    }
    let mut profile = reader.profile;
    sources::from_labels(&mut profile, bytes.len(), stop)?;
    Ok((profile, reader.problems))
}
