//! OpenTelemetry profiles (OTLP): messages of protocol buffers, or the same as JSON.
//!
//! The format is pprof's, in other tables: what samples refer to stands in a dictionary
//! that all profiles of a message share, a profile has one sample type, and what is said
//! of a resource, a scope, a sample or a location is an attribute. It is in development:
//! read is what versions 1.8 to 1.11 of `opentelemetry-proto` define, written the last.

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
    read: read::read,
};
