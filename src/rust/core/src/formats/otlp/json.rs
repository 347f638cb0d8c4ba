//! OTLP/JSON: the same messages as text.
//!
//! JSON is converted to a protocol buffer message, which is then read; to write JSON, a message is
//! created and then converted. The reader and the writer therefore exist once. The rules are the
//! same as for JSON of all protocol buffers, except that trace and span ids are hexadecimal digits.

mod context;
mod from;
mod objects;
mod path;
mod to;

pub use from::{Converted, messages};
pub use to::write;
