//! JSON, written and read in pieces, so that a file is never in memory as a whole.
//!
//! - [`write`]: writes values one after the other;
//! - [`read`]: returns them one after the other, as the caller asks for them; [`token`] has the syntax of strings
//!   and numbers;
//! - [`keys`]: finds the names of fields at the start of a file, to recognise its format.
//!
//! OpenTelemetry has readers and writers of its own, since its JSON encodes messages of protocol buffers.

pub mod keys;
pub mod read;
mod token;
pub mod write;

pub use read::{Kind, Reader};
pub use token::Number;
pub use write::Json;
