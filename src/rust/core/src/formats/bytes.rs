//! Checks the start of a file, for the detection of several formats.

use super::lines::HOLE;
use crate::protobuf::decode::Message;

/// The number of bytes of a text that are examined.
const SNIFFED: usize = 4096;

/// Whether the content looks like the start of a JSON object. A protocol buffer message may start
/// with the same bytes, but does not continue as text.
pub fn is_json(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.trim_ascii_start();
    let start = &bytes[..bytes.len().min(SNIFFED)];
    let Some(inside) = start.strip_prefix(b"{").filter(|_| is_text(start)) else {
        return false;
    };
    matches!(inside.trim_ascii_start().first(), None | Some(b'"' | b'}'))
}

/// Whether the content has no control characters. DEL is accepted, since JSON may contain it.
pub fn is_text(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|&byte| byte >= 0x20 || matches!(byte, b'\n' | b'\r' | b'\t'))
}

/// The number at the start of the bytes, and the number of its digits. `None` if there is none, or it is
/// 2^64 or more.
pub fn digits(bytes: &[u8]) -> Option<(u64, usize)> {
    let count = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let mut value = 0_u64;
    for digit in &bytes[..count] {
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
    }
    (count > 0).then_some((value, count))
}

pub fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == b'\n').next().unwrap_or(bytes)
}

/// The lines of a text that are not blank, without their ends.
pub fn text_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.trim_ascii().is_empty())
}

/// The content without a byte order mark, which editors write, or a run of NUL bytes, which system crashes leave, at
/// its start. All readers of text skip these.
pub fn without_damage(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let bytes = if zeros < HOLE { bytes } else { &bytes[zeros..] };
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The properties of a field that distinguish formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldShape {
    Varint,
    /// A message, a string or bytes. For a message, the wire type of its first field; `None` if it is empty.
    Inside(Option<u64>),
    Other,
}

/// The numbers and shapes of the fields of a message, none if the content is text. `bytes` may be
/// only the start of a message, so the last field may be truncated.
pub fn field_shapes(bytes: &[u8]) -> impl Iterator<Item = (u64, FieldShape)> {
    let text = is_text(&bytes[..bytes.len().min(SNIFFED)]);
    let mut message = Message::new(bytes);
    let mut ended = text;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let tag = message.varint().ok()?;
        let (number, wire_type) = (tag >> 3, tag & 7);
        if wire_type != 2 {
            // No format needs the fields after this one.
            ended = true;
            let shape = match wire_type {
                0 => FieldShape::Varint,
                _ => FieldShape::Other,
            };
            return Some((number, shape));
        }
        let length = message.varint().ok()?;
        let first = message.bytes().first().filter(|_| length > 0);
        let shape = FieldShape::Inside(first.map(|tag| u64::from(tag & 7)));
        ended = message.skip(length).is_err();
        Some((number, shape))
    })
}
