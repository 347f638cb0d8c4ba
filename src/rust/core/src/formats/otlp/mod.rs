//! OpenTelemetry profiles (OTLP): protocol buffer messages, or the same messages as JSON.
//!
//! The format is derived from pprof, with differences: samples refer to the tables of a dictionary
//! that all profiles of a message share, each profile has one sample type, and metadata of
//! resources, scopes, samples and locations are attributes. The format is still in development;
//! versions 1.8 to 1.11 of `opentelemetry-proto` are read, and 1.11 is written.

mod any_value;
mod detect;
mod json;
mod layout;
mod proto;
mod read;
pub mod response;
mod schema;
mod write;

pub use write::Writer;

use super::format::Format;

pub const FORMAT: Format = Format {
    name: "otlp",
    title: "an OpenTelemetry profile",
    recognises: detect::is_otlp,
    is_guessed: true,
    read: read::read,
};
