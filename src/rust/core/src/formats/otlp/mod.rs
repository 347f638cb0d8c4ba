//! OpenTelemetry profiles (OTLP): protocol buffer messages, or the same messages as JSON.
//!
//! The format is derived from pprof, with differences: samples refer to the tables of a dictionary
//! that all profiles of a message share, each profile has one sample type, and metadata of
//! resources, scopes, samples and locations are attributes. The format is still in development;
//! versions 1.9 to 1.11 of `opentelemetry-proto` are read, and 1.11 is written.

mod any_value;
mod detect;
mod json;
mod layout;
mod proto;
mod read;
pub mod response;
mod write;

pub use write::Writer;

use crate::formats::format::Format;

pub const FORMAT: Format = Format {
    name: "otlp",
    title: "an OpenTelemetry profile",
    recognises: detect::is_otlp,
    is_guessed: true,
    is_aggregated: true,
    read: Some(read::read),
    write: Some(|options| Ok(Box::new(Writer::from_options(options)?))),
    file_names: &["*.otlp", "*.otlp.json"],
    r_reader: Some("read_otlp"),
    r_writer: Some("write_otlp"),
    ..Format::NONE
};
