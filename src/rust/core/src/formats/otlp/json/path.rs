//! Finds the JSON field that a byte of the converted message came from, for errors.

use super::Converted;
use crate::error::Result;
use crate::formats::otlp::proto::{FieldKind, MessageType, data};
use crate::limits::memory::{TryGrow, TryText, filled, owned};
use crate::protobuf::decode::Message;

impl Converted {
    /// A path such as `dictionary.stackTable[3].locationIndices`, preceded by the line if each
    /// line is a message.
    pub fn path(&self, at: usize) -> Result<String> {
        Ok(self.paths(&[at as u64])?.pop().unwrap_or_default())
    }

    /// The paths of several bytes, in increasing order, in one pass over the message.
    pub fn paths(&self, bytes: &[u64]) -> Result<Vec<String>> {
        let mut walk = Walk {
            wanted: bytes,
            path: String::new(),
            found: Vec::new(),
        };
        if let Some(line) = self.line {
            walk.path.try_write(format_args!("line {line}, "))?;
        }
        let before = walk.path.len();
        walk.inside(Message::new(&self.message), &data::SCHEMA, before)?;
        walk.path.try_push_str("the message")?;
        walk.take(u64::MAX)?;
        Ok(walk.found)
    }
}

struct Walk<'w> {
    /// The bytes that have not been found yet.
    wanted: &'w [u64],
    /// The path of the current field.
    path: String,
    found: Vec<String>,
}

impl Walk<'_> {
    /// Searches the fields of a message. `start`: where the path begins, after the line.
    fn inside(&mut self, mut message: Message, type_: &MessageType, start: usize) -> Result<()> {
        let mut counts = filled(type_.fields.len(), 0)?;
        let before = self.path.len();
        while let (Some(&wanted), Ok(Some(found))) = (self.wanted.first(), message.field()) {
            let known = type_.fields.iter().position(|f| f.number == found.number);
            let Some(known) = known else { continue };
            let (field, count) = (&type_.fields[known], counts[known]);
            counts[known] += 1;
            // An error at the end of a message belongs to its last field.
            let end = message.at() as u64 + u64::from(message.bytes().is_empty());
            if end <= wanted {
                continue;
            }
            if before > start {
                self.path.try_push_char('.')?;
            }
            self.path.try_push_str(field.name)?;
            if field.repeated {
                self.path.try_write(format_args!("[{count}]"))?;
            }
            if let (FieldKind::Message(of), Ok(inner)) = (field.kind, found.message()) {
                self.take(inner.at() as u64 + 1)?;
                self.inside(inner, of, start)?;
            }
            self.take(end)?;
            self.path.truncate(before);
        }
        Ok(())
    }

    /// Assigns the current path to the bytes before `end`.
    fn take(&mut self, end: u64) -> Result<()> {
        while let Some((_, rest)) = self.wanted.split_first().filter(|(at, _)| **at < end) {
            self.found.try_push(owned(&self.path)?)?;
            self.wanted = rest;
        }
        Ok(())
    }
}
