//! Where in JSON a byte of the message came from.

use super::Text;
use crate::error::Result;
use crate::formats::otlp::schema::{DATA, Kind, MessageType};
use crate::limits::memory::{TryGrow, TryText, filled, owned};
use crate::protobuf::decode::Message;

const PATH: &str = "places in JSON";

impl Text {
    /// Such as `dictionary.stackTable[3].locationIndices`, behind the line where there are
    /// several.
    pub fn path(&self, at: usize) -> Result<String> {
        Ok(self.paths(&[at as u64])?.pop().unwrap_or_default())
    }

    /// The same for many bytes, in rising order: the message is gone through once.
    pub fn paths(&self, bytes: &[u64]) -> Result<Vec<String>> {
        let mut walk = Walk {
            wanted: bytes,
            path: String::new(),
            found: Vec::new(),
        };
        if let Some(line) = self.line {
            walk.path.try_write(format_args!("line {line}, "), PATH)?;
        }
        let before = walk.path.len();
        walk.inside(Message::new(&self.message), &DATA, before)?;
        walk.path.try_push_str("the message", PATH)?;
        walk.take(u64::MAX)?;
        Ok(walk.found)
    }
}

struct Walk<'w> {
    /// What is still looked for.
    wanted: &'w [u64],
    /// Where the walk is.
    path: String,
    found: Vec<String>,
}

impl Walk<'_> {
    /// Looks in a message, whose fields are named from `start` on.
    fn inside(&mut self, mut message: Message, type_: &MessageType, start: usize) -> Result<()> {
        let mut counts = filled(type_.fields.len(), 0, PATH)?;
        let before = self.path.len();
        while let (Some(&wanted), Ok(Some(found))) = (self.wanted.first(), message.field()) {
            let known = type_.fields.iter().position(|f| f.number == found.number);
            let Some(known) = known else { continue };
            let (field, count) = (&type_.fields[known], counts[known]);
            counts[known] += 1;
            // An error at the end of a message is one of its last field.
            let end = message.at() as u64 + u64::from(message.bytes().is_empty());
            if end <= wanted {
                continue;
            }
            if before > start {
                self.path.try_push_char('.', PATH)?;
            }
            self.path.try_push_str(field.name, PATH)?;
            if field.repeated {
                self.path.try_write(format_args!("[{count}]"), PATH)?;
            }
            if let (Kind::Message(of), Ok(inner)) = (field.kind, found.message()) {
                self.take(inner.at() as u64 + 1)?;
                self.inside(inner, of, start)?;
            }
            self.take(end)?;
            self.path.truncate(before);
        }
        Ok(())
    }

    /// What is wanted before byte `end` is here.
    fn take(&mut self, end: u64) -> Result<()> {
        while let Some((_, rest)) = self.wanted.split_first().filter(|(at, _)| **at < end) {
            self.found.try_push(owned(&self.path, PATH)?, PATH)?;
            self.wanted = rest;
        }
        Ok(())
    }
}
