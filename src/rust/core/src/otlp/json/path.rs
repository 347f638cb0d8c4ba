//! Where in JSON a byte of the message came from.

use crate::otlp::schema::{DATA, Kind, MessageType};
use crate::protobuf::wire::Message;
use std::fmt::Write;

/// Such as `dictionary.stackTable[3].locationIndices`.
pub fn path(bytes: &[u8], at: usize) -> String {
    let mut path = String::new();
    let mut message = Message::new(bytes);
    let mut type_: &MessageType = &DATA;
    while let Some((name, index, inner)) = step(message, type_, at) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        if let Some(index) = index {
            let _ = write!(path, "[{index}]");
        }
        match inner {
            Some((inside, of)) => (message, type_) = (inside, of),
            None => break,
        }
    }
    match path.is_empty() {
        true => "the message".to_owned(),
        false => path,
    }
}

type Step<'a> = (
    &'static str,
    Option<usize>,
    Option<(Message<'a>, &'static MessageType)>,
);

/// The field that holds a byte, its number among those of its name where there may be
/// several, and the message that it is.
fn step<'a>(mut message: Message<'a>, type_: &MessageType, at: usize) -> Option<Step<'a>> {
    let mut counts = vec![0; type_.fields.len()];
    while let Ok(Some(found)) = message.field() {
        let known = type_.fields.iter().position(|f| f.number == found.number);
        let Some(known) = known else { continue };
        let field = &type_.fields[known];
        if message.at() > at || message.at() == at && message.bytes().is_empty() {
            let inner = match field.kind {
                Kind::Message(of) => found.message().ok().map(|inside| (inside, of)),
                _ => None,
            };
            let index = field.repeated.then_some(counts[known]);
            return Some((
                field.name,
                index,
                inner.filter(|(inside, _)| inside.at() < at),
            ));
        }
        counts[known] += 1;
    }
    None
}
