//! Splits JSON into messages and converts each to protocol buffers.

use super::context::Context;
use super::objects::ObjectSeed;
use crate::error::{Error, Position};
use crate::formats::otlp::layout::older;
use crate::formats::otlp::proto::data;
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryCollect, TryGrow, ensure};
use crate::message;
use memchr::{memchr, memchr2, memrchr};
use serde_core::de::DeserializeSeed;
use std::result::Result;

/// A message that was converted from JSON.
pub struct Converted {
    pub message: Vec<u8>,
    /// The line number, if each line of the file is a message.
    pub line: Option<u64>,
}

/// Converts a text that is a message, or has one on each line, as file exporters write it.
pub fn messages(text: &[u8], input: &str, stop: Stop) -> Result<Vec<Converted>, Error> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let context = Context::new(stop);
    match message(text, &context) {
        Ok(message) => [Converted {
            message,
            line: None,
        }]
        .into_iter()
        .try_vec(),
        Err(_) if context.interrupted.get() => Err(Error::Interrupted),
        Err(_) if context.out_of_memory.get() => Err(Error::Memory),
        Err(_) if context.outdated.get() => Err(older(input)),
        Err(error) => {
            let lines = (1..).zip(text.split(|&byte| byte == b'\n'));
            let mut full = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
            // If the first line is not a complete message, the text is one invalid message.
            let one = |line| message(line, &context);
            let first = full.next().and_then(|(n, line)| Some((n, one(line).ok()?)));
            let Some((number, message)) = first else {
                return Err(match context.interrupted.get() {
                    true => Error::Interrupted,
                    false if context.out_of_memory.get() => Error::Memory,
                    false => syntax_error(&error, 0, input),
                });
            };
            let first = Converted {
                message,
                line: Some(number),
            };
            let mut messages = [first].into_iter().try_vec()?;
            for (number, line) in full {
                let message = one(line).map_err(|error| match context.interrupted.get() {
                    true => Error::Interrupted,
                    false if context.out_of_memory.get() => Error::Memory,
                    false if context.outdated.get() => older(input),
                    false => syntax_error(&error, number - 1, input),
                })?;
                let text = Converted {
                    message,
                    line: Some(number),
                };
                messages.try_push(text)?;
            }
            Ok(messages)
        }
    }
}

fn syntax_error(error: &serde_json::Error, lines_before: u64, input: &str) -> Error {
    let text = message!("{error}");
    let end = text.rfind(" at line ").unwrap_or(text.len());
    Error::Parse {
        input: message!("{input}"),
        position: Position::Line(lines_before + error.line() as u64),
        message: message!("At column {}: {}.", error.column(), &text[..end]),
    }
}

fn message(text: &[u8], context: &Context) -> serde_json::Result<Vec<u8>> {
    // Strings with escapes are copied to a vector that doubles its capacity.
    let memory = ensure(3 * longest_escaped(text));
    memory.map_err(|_| context.no_memory::<serde_json::Error>())?;
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
    object.deserialize(&mut json)?;
    json.end()?;
    Ok(out)
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
