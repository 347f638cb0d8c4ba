//! Reads OpenTelemetry messages directly into the columns of the model.
//!
//! For each message, its version is detected first ([`layout`]). Then the tables of its dictionary
//! are added to the model ([`Dictionary`]), and after them the profiles, scope by scope
//! ([`ResourceReader`]).

mod attributes;
mod budget;
mod dictionary;
mod file;
mod profiles;
mod recorded;
mod samples;
mod scopes;
mod sources;

use crate::collections::Index;
use crate::error::{Error, Position, Result};
use crate::formats::bytes::{is_json, is_text};
use crate::formats::format::Opened;
use crate::formats::message::{Expected, load};
use crate::formats::otlp::detect::{is_framed, is_otlp};
use crate::formats::otlp::json;
use crate::formats::otlp::layout::{self, SampleFields};
use crate::formats::otlp::proto::data;
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::string_table::StringTable;
use crate::io::input::Origin;
use crate::limits::cancel::{self, Stop, Watch};
use crate::limits::memory::{TryCollect, TryGrow};
use crate::message;
use crate::model::Profile;
use crate::protobuf::decode::{DecodeError, Message, Result as WireResult, error_at};
use budget::Budget;
use dictionary::Dictionary;
use file::File;
use samples::LabelForms;
use scopes::ResourceReader;

/// The size of the length before each message, in bytes.
const FRAME: usize = 4;

/// Reads a file of `ProfilesData` or `ExportProfilesServiceRequest` messages: a single protocol
/// buffer message, several with a length before each, or JSON, which may have a message on each
/// line.
///
/// Each profile becomes a source, but profiles of a scope that have the same samples become one
/// source with several sample types.
pub fn read(opened: Opened, stop: Stop) -> Result<(Profile, Problems)> {
    let expected = Expected {
        format: opened.format,
        other_start: |bytes| is_json(bytes) || is_framed(bytes) && bytes.len() > FRAME,
        look: opened.look,
    };
    let origin = opened.origin;
    let mut problems = Problems::default();
    let (bytes, memory) = load(opened.content, &origin, expected, &mut problems, stop)?;
    decode(&bytes, origin, expected, problems, memory, stop)
}

fn decode(
    bytes: &[u8],
    origin: Origin,
    expected: Expected,
    problems: Problems,
    memory: crate::limits::budget::Budget,
    stop: Stop,
) -> Result<(Profile, Problems)> {
    let mut file = File {
        profile: Profile::default(),
        types: Index::default(),
        problems,
        budget: Budget::new(bytes.len(), memory, message!("{}", origin.name)),
        is_known: false,
        origin,
        format: expected.format,
    };
    if is_json(bytes) {
        for text in json::messages(bytes, &file.origin.name, stop)? {
            let (known, message) = (file.problems.kept().len(), Message::new(&text.message));
            file.message(&text.message, message, Some(SampleFields::CURRENT), stop)
                .map_err(|error| in_json(error, &text, &file.origin.name))?;
            file.problems
                .offsets_to_fields(known, |bytes| text.paths(bytes))?;
        }
        return file.finish(bytes, expected);
    }
    for message in framed(bytes, &file.origin.name)? {
        file.message(bytes, message, None, stop)
            .map_err(|error| foreign_or(error, bytes, &file.origin.name, expected))?;
    }
    file.finish(bytes, expected)
}

/// The messages of a file with a length of four bytes before each message, which is how the
/// OpenTelemetry Collector writes several messages to a file. Any other file is a single message.
fn framed<'a>(bytes: &'a [u8], name: &str) -> Result<Vec<Message<'a>>> {
    let mut messages = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let length = length.map_or(0, |length| u32::from_be_bytes(*length) as usize);
        // No writer writes empty messages. A crash may leave a file that ends with zeros.
        let message = Message::part(bytes, at + 4, length).filter(|_| length > 0);
        let Some(message) = message else {
            // No field has the number 0, so if the first byte is 0, it belongs to a length.
            if !(is_framed(bytes) && is_otlp(bytes)) {
                return [Message::new(bytes)].into_iter().try_vec();
            }
            return Err(Error::Parse {
                input: message!("{name}"),
                position: Position::Byte(at as u64),
                message: message!(
                    "No complete message starts here after its length of four bytes. The file may \
                     be truncated."
                ),
            });
        };
        messages.try_push(message)?;
        at += 4 + length;
    }
    Ok(messages)
}

fn foreign_or(error: DecodeError, bytes: &[u8], name: &str, expected: Expected) -> Error {
    let foreign = || expected.foreign(name, bytes);
    match error {
        // Text may look like fields of an old version.
        DecodeError::Other(error @ Error::Unsupported(_)) if is_text(bytes) => {
            foreign().unwrap_or(error)
        }
        DecodeError::Other(error) => error,
        DecodeError::At { at, message } => foreign().unwrap_or_else(|| Error::Parse {
            input: message!("{name}"),
            position: Position::Byte(at as u64),
            message,
        }),
    }
}

/// The error with the path in the JSON in place of the offset in the message made from it.
fn in_json(error: DecodeError, text: &json::Converted, name: &str) -> Error {
    match error {
        DecodeError::Other(error) => error,
        DecodeError::At { at, message } => Error::Parse {
            input: message!("{name}"),
            position: match text.path(at) {
                Ok(path) => Position::Field(path),
                Err(error) => return error,
            },
            message,
        },
    }
}

impl File {
    /// Reads a message. `fields` is `None` if the numbers of its samples' fields must be detected.
    fn message(
        &mut self,
        bytes: &[u8],
        message: Message,
        fields: Option<SampleFields>,
        stop: Stop,
    ) -> WireResult<()> {
        let fields = match fields {
            Some(fields) => fields,
            None => self.detected_fields(message, stop)?,
        };
        cancel::check(stop)?;
        let size = message.bytes().len();
        let (resources, tables) = self.parts(message, stop)?;
        let mappings = self.profile.mappings.len();
        let dictionary = Dictionary::read(
            tables,
            StringTable::new(bytes, size),
            &mut self.profile,
            &mut self.problems,
            &mut self.budget,
            stop,
        )?;
        let mut reader = ResourceReader {
            file: self,
            dictionary,
            fields,
            forms: LabelForms::default(),
            unused_mappings: Vec::new(),
            watch: Watch::new(stop),
            stop,
        };
        let alone = resources.len() == 1;
        resources
            .into_iter()
            .try_for_each(|message| reader.resource(message, alone))?;
        let unused = reader.unused_mappings;
        if !unused.is_empty() {
            self.profile.place_mappings(mappings, unused)?;
        }
        Ok(())
    }

    /// The numbers of the fields of samples, by the version that the message seems to have.
    fn detected_fields(&mut self, message: Message, stop: Stop) -> WireResult<SampleFields> {
        let found = layout::detect(message, &self.origin.name, stop)?;
        if found.ambiguous {
            let position = Position::Byte(message.at() as u64);
            self.problems
                .note(ProblemKind::AmbiguousLayout, position, b"");
        }
        Ok(found.fields)
    }

    /// The resources and the dictionary of a message.
    fn parts<'a>(
        &mut self,
        mut message: Message<'a>,
        stop: Stop,
    ) -> WireResult<(Vec<Message<'a>>, Option<Message<'a>>)> {
        let mut resources = Vec::new();
        let mut tables = None;
        let mut watch = Watch::new(stop);
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            match found.number {
                data::RESOURCE_PROFILES => resources.try_push(found.message()?)?,
                data::DICTIONARY if tables.is_some() => {
                    return error_at(
                        found.at,
                        "A second dictionary. Are these several messages in one file?",
                    );
                }
                data::DICTIONARY => tables = Some(found.message()?),
                _ => continue,
            }
            self.is_known = true;
        }
        Ok((resources, tables))
    }

    /// Fills up the columns of values, and returns the profile. Fails if no message has a known
    /// field, except for JSON like `{"resourceProfiles": []}`. `bytes` is the whole file.
    fn finish(mut self, bytes: &[u8], expected: Expected) -> Result<(Profile, Problems)> {
        if !self.is_known && !is_otlp(bytes) {
            let name = &self.origin.name;
            return Err(expected
                .foreign(name, bytes)
                .unwrap_or_else(|| expected.no_message(name)));
        }
        let rows = self.profile.samples.len();
        for values in &mut self.profile.values {
            values.column.try_fill(rows, f64::NAN)?;
        }
        Ok((self.profile, self.problems))
    }
}
