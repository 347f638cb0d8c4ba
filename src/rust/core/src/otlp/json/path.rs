//! Where in JSON a byte of the message came from.

use super::Text;
use crate::otlp::schema::{DATA, Kind, MessageType};
use crate::protobuf::wire::Message;
use std::fmt::Write;

impl Text {
    /// Such as `dictionary.stackTable[3].locationIndices`, behind the line where there are
    /// several.
    pub fn path(&self, at: usize) -> String {
        self.paths(&[at as u64]).pop().unwrap_or_default()
    }

    /// The same for many bytes, in rising order: the message is gone through once.
    pub fn paths(&self, bytes: &[u64]) -> Vec<String> {
        let mut walk = Walk {
            wanted: bytes,
            path: String::new(),
            found: Vec::new(),
        };
        if let Some(line) = self.line {
            let _ = write!(walk.path, "line {line}, ");
        }
        let before = walk.path.len();
        walk.inside(Message::new(&self.message), &DATA, before);
        walk.path.push_str("the message");
        walk.take(u64::MAX);
        walk.found
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
    fn inside(&mut self, mut message: Message, type_: &MessageType, start: usize) {
        let mut counts = vec![0; type_.fields.len()];
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
                self.path.push('.');
            }
            self.path.push_str(field.name);
            if field.repeated {
                let _ = write!(self.path, "[{count}]");
            }
            if let (Kind::Message(of), Ok(inner)) = (field.kind, found.message()) {
                self.take(inner.at() as u64 + 1);
                self.inside(inner, of, start);
            }
            self.take(end);
            self.path.truncate(before);
        }
    }

    /// What is wanted before byte `end` is here.
    fn take(&mut self, end: u64) {
        while let Some((_, rest)) = self.wanted.split_first().filter(|(at, _)| **at < end) {
            self.found.push(self.path.clone());
            self.wanted = rest;
        }
    }
}
