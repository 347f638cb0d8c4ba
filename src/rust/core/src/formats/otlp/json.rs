//! OTLP/JSON: the same messages as text.
//!
//! What is JSON is turned into the message that it stands for, and that is read; what is
//! written as JSON is made as a message first. So there is one reader and one writer.
//! The rules are those of protocol buffers, but for ids of traces and spans, which are
//! hexadecimal digits.

mod from;
mod path;
mod to;

pub use from::{Text, messages};
pub use to::write;
