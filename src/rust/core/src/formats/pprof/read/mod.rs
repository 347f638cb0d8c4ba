//! Reads a pprof message into the columns of the model.
//!
//! A regular file is read in one pass (`stream.rs`). If that reader finds anything irregular, or the
//! input cannot be read again, the whole message is read into memory, and scanned twice: the first
//! pass collects everything except the samples ([`Outline`]), since the string table may come last
//! and the tables refer to each other in any order; the second reads the samples. Messages that
//! Go's reader rejects are rejected here as well, and the error contains the byte offset.

mod header;
mod ids;
mod outline;
mod parts;
mod samples;
mod sources;
mod spans;
mod stream;
mod tables;

use crate::error::{Error, Position, Result};
use crate::formats::format::{Format, Opened};
use crate::formats::message::{Expected, load};
use crate::formats::pprof::proto::profile as field;
use crate::formats::problems::Problems;
use crate::io::gzip::Content;
use crate::io::input::Origin;
use crate::io::pieces::PIECE;
use crate::limits::budget::Budget;
use crate::limits::cancel::{Stop, Watch};
use crate::message;
use crate::model::Profile;
use crate::protobuf::decode::{DecodeError, Message, Result as WireResult, error_at};
use outline::Outline;
use parts::Parts;
use samples::SampleReader;

/// Reads a pprof message.
///
/// If two sample types have the same name, the second is called `name/unit`. Messages of
/// 2 GiB or more are rejected.
pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    read_in(opened, PIECE, stop)
}

/// Reads pieces of this size, in bytes.
fn read_in(opened: Opened, piece: usize, stop: Stop) -> Result<(Profile, Problems)> {
    let (origin, format) = (&opened.origin, opened.format);
    let Some(again) = opened.content.again() else {
        return read_whole(opened, stop);
    };
    if let Some(profile) = stream::read(opened.content, piece, origin, format, stop)? {
        return Ok((profile, Problems::default()));
    }
    let content =
        Content::new(again).map_err(|e| Error::damaged(&origin.name, Position::Byte(0), &e))?;
    read_whole(Opened { content, ..opened }, stop)
}

/// Reads the whole message into memory first, and reports what is wrong with it.
fn read_whole(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let expected = Expected {
        format: opened.format,
        other_start: |_| false,
        look: opened.look,
    };
    let origin = opened.origin;
    let mut problems = Problems::default();
    let (bytes, budget) = load(opened.content, &origin, expected, &mut problems, stop)?;
    build(&bytes, &origin, expected.format, problems, budget, stop).map_err(|error| match error {
        DecodeError::Other(error) => error,
        DecodeError::At { at, message } => {
            let foreign = expected.foreign(&origin.name, &bytes);
            foreign.unwrap_or(Error::Parse {
                input: origin.name,
                position: Position::Byte(at as u64),
                message,
            })
        }
    })
}

fn build(
    bytes: &[u8],
    origin: &Origin,
    format: &'static Format,
    problems: Problems,
    budget: Budget,
    stop: Stop,
) -> WireResult<(Profile, Problems)> {
    let mut outline = Outline::read(bytes, stop)?;
    let parts = Parts::read(&mut outline, origin, format, problems)?;
    if outline.types.is_empty() && outline.samples > 0 {
        return error_at(
            outline.first_sample,
            "The profile has samples, but no sample types that describe their values.",
        );
    }
    let name = message!("{}", origin.name);
    let mut reader = SampleReader::new(outline.texts, parts, budget, name);
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
    spans::from_labels(&mut profile, stop)?;
    Ok((profile, reader.problems))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::format::Look;
    use crate::formats::pprof::{FORMAT, Writer};
    use crate::formats::write::Writer as _;
    use crate::io::input::Source;
    use std::path::Path;

    fn opened(bytes: &[u8]) -> Opened<'_> {
        Opened {
            content: Content::new(Source::Bytes(bytes)).unwrap(),
            origin: Origin::default(),
            format: &FORMAT,
            look: Look::Unknown,
        }
    }

    /// The whole content of a profile as text.
    fn show(profile: &Profile) -> String {
        let stacks = profile.stacks.ids();
        let stacks: Vec<_> = stacks.map(|id| profile.stacks.get(id).to_vec()).collect();
        let rest = Profile {
            stacks: Default::default(),
            ..profile.clone()
        };
        format!("{stacks:?} {rest:#?}")
    }

    fn check(bytes: &[u8], is_regular: bool, of: &str) {
        let (whole, problems) = read_whole(opened(bytes), &|| false).unwrap();
        for piece in [64, 1000, PIECE] {
            let (content, origin) = (opened(bytes).content, Origin::default());
            let read = stream::read(content, piece, &origin, &FORMAT, &|| false);
            match read.unwrap() {
                Some(profile) => {
                    assert!(is_regular && problems.is_empty(), "{of}");
                    assert!(show(&profile) == show(&whole), "{of}, pieces of {piece}");
                    let all = profile.samples.stack.iter();
                    assert!(all.max().is_none_or(|id| id.row() < profile.stacks.len()));
                }
                None => assert!(!is_regular, "{of}"),
            }
            let (profile, noted) = read_in(opened(bytes), piece, &|| false).unwrap();
            assert!(show(&profile) == show(&whole) && noted.kept() == problems.kept());
        }
    }

    #[test]
    fn both_readers_read_the_same() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/testthat/data/pprof");
        let mut regular = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let Ok((profile, problems)) = read_whole(opened(&bytes), &|| false) else {
                continue;
            };
            regular += usize::from(problems.is_empty());
            check(&bytes, problems.is_empty(), &path.display().to_string());
            // The same as this package writes it, with ids that are row numbers.
            let mut ours = Vec::new();
            let writer = Writer {
                aggregate: false,
                ..Writer::default()
            };
            if writer.write(&profile, &mut ours, &|| false).is_ok() {
                check(&ours, true, &path.display().to_string());
            }
        }
        assert!(regular > 5, "{regular}");
    }

    #[test]
    fn cut_off_messages_are_read_as_a_whole() {
        let file = "../../../tests/testthat/data/pprof/go_goroutine.pb.gz";
        let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        for length in 0..bytes.len() {
            let bytes = &bytes[..length];
            let whole = read_whole(opened(bytes), &|| false).map(|(profile, _)| show(&profile));
            let either = read_in(opened(bytes), 64, &|| false).map(|(profile, _)| show(&profile));
            assert_eq!(format!("{whole:?}"), format!("{either:?}"), "{length}");
        }
    }
}
