//! Splits JSON into messages and converts each to protocol buffers.

use super::context::Context;
use super::objects::ObjectSeed;
use crate::error::{Error, Position, Result};
use crate::formats::otlp::proto::data;
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryCollect, TryGrow, ensure};
use crate::message;
use memchr::{memchr, memchr2, memrchr};
use serde_core::de::DeserializeSeed;

/// A message that was converted from JSON.
pub struct Converted {
    pub message: Vec<u8>,
    /// The line number, if each line of the file is a message.
    pub line: Option<u64>,
}

/// Converts a text that is a message, or has one on each line, as file exporters write it.
pub fn messages(text: &[u8], input: &str, stop: Stop) -> Result<Vec<Converted>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let context = Context::new(input, stop);
    let as_one = match message(text, 0, &context) {
        Err(error @ Error::Parse { .. }) => Err(error),
        message => {
            return [Converted {
                message: message?,
                line: None,
            }]
            .into_iter()
            .try_vec();
        }
    };
    let mut messages = Vec::new();
    for (before, line) in text.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let before = before as u64;
        let message = match message(line, before, &context) {
            // If the first line is not a complete message, the text is one invalid message.
            Err(Error::Parse { .. }) if messages.is_empty() => break,
            message => message?,
        };
        let line = Some(before + 1);
        messages.try_push(Converted { message, line })?;
    }
    if messages.is_empty() {
        return as_one;
    }
    Ok(messages)
}

/// Converts a message, before which the file has `before` lines.
fn message(text: &[u8], before: u64, context: &Context) -> Result<Vec<u8>> {
    // Strings with escapes are copied to a vector that doubles its capacity.
    ensure(3 * longest_escaped(text))?;
    let mut out = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    // The limit of serde_json is lower than the maximum depth of values, so `ObjectSeed` checks the
    // depth.
    json.disable_recursion_limit();
    context.depth.set(0);
    let object = ObjectSeed {
        type_: &data::SCHEMA,
        out: &mut out,
        context,
    };
    let result = object.deserialize(&mut json).and_then(|()| json.end());
    result.map_err(|error| match context.failure.take() {
        Some(error) => error,
        None => syntax_error(&error, before, context.input),
    })?;
    Ok(out)
}

fn syntax_error(error: &serde_json::Error, before: u64, input: &str) -> Error {
    let text = message!("{error}");
    let end = text.rfind(" at line ").unwrap_or(text.len());
    Error::Parse {
        input: message!("{input}"),
        position: Position::Line(before + error.line() as u64),
        message: message!("At column {}: {}.", error.column(), &text[..end]),
    }
}

/// The length of the longest string with escapes.
fn longest_escaped(text: &[u8]) -> usize {
    let mut longest = 0;
    let mut at = 0;
    while let Some(escape) = memchr(b'\\', &text[at..]).map(|escape| at + escape) {
        let start = memrchr(b'"', &text[at..escape]).map_or(at, |quote| at + quote);
        at = escape;
        while let Some(next) = memchr2(b'\\', b'"', &text[at..]).map(|next| at + next) {
            let is_end = text[next] == b'"';
            at = (next + if is_end { 1 } else { 2 }).min(text.len());
            if is_end {
                break;
            }
        }
        longest = longest.max(at - start);
    }
    longest
}
