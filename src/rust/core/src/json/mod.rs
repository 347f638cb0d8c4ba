//! JSON, written and read in pieces, so that a file is never in memory as a whole.
//!
//! - [`write`]: writes values one by one;
//! - [`read`]: returns values one by one, as the caller requests them; [`token`] parses strings and numbers;
//! - [`keys`]: finds the names of fields at the start of a file, to recognise its format.
//!
//! OpenTelemetry has separate readers and writers, since its JSON encodes messages of protocol buffers.

pub mod keys;
pub mod read;
mod token;
pub mod write;

pub use read::{Kind, Reader};
pub use token::Number;
pub use write::Json;
