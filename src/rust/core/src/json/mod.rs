//! JSON, written in pieces, so that a file is never in memory as a whole, and parts of it that are read.
//!
//! - [`write`]: writes values one by one;
//! - [`token`]: parses strings and numbers, for the reader of files, [`crate::formats::json_file`];
//! - [`keys`]: finds the names of fields at the start of a file, to recognise its format.
//!
//! OpenTelemetry has a separate reader, since its JSON encodes messages of protocol buffers.

pub mod keys;
pub mod token;
pub mod write;

pub use token::Number;
pub use write::Json;
