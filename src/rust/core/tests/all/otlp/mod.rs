//! Tests of OTLP profiles with independent code: encoders and decoders of the messages, the rules of
//! the specification, and messages that are valid but irregular.

mod attributes;
pub mod bombs;
mod broken;
pub mod check;
mod codes;
pub mod content;
pub mod damaged;
pub mod irregular;
mod irregular_json;
pub mod json;
mod meaning;
pub mod message;
mod names_of_fields;
pub mod nodes;
pub mod recorded;
pub mod references;
mod roundtrip;
mod rows;
pub mod same;
mod stop;
pub mod whole;
pub mod wire;
