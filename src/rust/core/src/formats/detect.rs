//! Which of the formats that are read here some bytes look like.
//!
//! None of them has a mark of its own. It is enough to tell them from each other:
//! whether a file is right is for its reader to say.

use crate::protobuf::wire::Message;
use memchr::memmem;

/// How many bytes of a text are looked at.
const SNIFFED: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Rprof,
    Pprof,
    /// OpenTelemetry, as protocol buffers or JSON.
    Otlp,
}

impl Format {
    /// What it looks like, and who reads that.
    pub fn hint(self) -> &'static str {
        match self {
            Format::Rprof => "it looks like an Rprof file; use `read_rprof()`.",
            Format::Pprof => "it looks like a pprof profile; use `read_pprof()`.",
            Format::Otlp => "it looks like OpenTelemetry profiles; use `read_otlp()`.",
        }
    }
}

/// What the bytes look like, after decompression: all of them or their start.
pub fn of(bytes: &[u8]) -> Option<Format> {
    let start = &bytes[..bytes.len().min(SNIFFED)];
    if is_json(start) {
        let mut keys = [&b"\"resourceProfiles\""[..], b"\"dictionary\""].into_iter();
        let known = keys.any(|key| memmem::find(start, key).is_some());
        return known.then_some(Format::Otlp);
    }
    // Names of R's functions may hold anything.
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or(start);
    let header = memmem::find(line, b"sample.interval=").is_some();
    if header || line.starts_with(b"\"") && is_text(line) {
        return Some(Format::Rprof);
    }
    if is_text(start) {
        return None;
    }
    of_message(bytes).or_else(|| {
        // Messages that follow each other stand behind their lengths.
        let (length, message) = bytes.split_first_chunk::<4>()?;
        let framed = length[0] == 0 && of_message(message) == Some(Format::Otlp);
        framed.then_some(Format::Otlp)
    })
}

/// Whether it starts as a JSON object does. A message may start with the same bytes, but
/// not go on as text.
pub fn is_json(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.trim_ascii_start();
    let start = &bytes[..bytes.len().min(SNIFFED)];
    let Some(inside) = start.strip_prefix(b"{").filter(|_| is_text(start)) else {
        return false;
    };
    matches!(inside.trim_ascii_start().first(), None | Some(b'"' | b'}'))
}

/// Whether there are no control characters in it. DEL is none: JSON has it as it is.
pub fn is_text(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|&byte| byte >= 0x20 || matches!(byte, b'\n' | b'\r' | b'\t'))
}

/// Both formats are messages, whose first fields are numbered alike: `sample_type`,
/// two numbers, and `sample` in pprof; `resource_profiles`, made of messages, and
/// `dictionary` in OpenTelemetry, which has no others since version 1.7.
fn of_message(bytes: &[u8]) -> Option<Format> {
    let mut message = Message::new(bytes);
    let mut known = None;
    // Of the start of a file the last field may break off.
    while let Ok(tag) = message.varint() {
        let (number, is_inside) = (tag >> 3, tag & 7 == 2);
        if !is_inside {
            let is_pprof = tag & 7 == 0 && (3..=15).contains(&number);
            return is_pprof.then_some(Format::Pprof);
        }
        let Ok(length) = message.varint() else { break };
        let first = message.bytes().first().filter(|_| length > 0);
        match (number, first.map(|tag| tag & 7)) {
            (1, Some(2)) => return Some(Format::Otlp),
            (1, Some(0)) => return Some(Format::Pprof),
            (1 | 2, _) => known = Some(Format::Otlp),
            (3..=15, _) => return Some(Format::Pprof),
            _ => return None,
        }
        if message.skip(length).is_err() {
            break;
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        let tables: [(&[u8], Option<Format>); 13] = [
            (b"sample.interval=20000\n", Some(Format::Rprof)),
            (b"\"f\" \"g\" \n", Some(Format::Rprof)),
            (b"sample.interval=20000\n\"\x01\" \n", Some(Format::Rprof)),
            (b"hello\n", None),
            (b"", None),
            (
                b"\xef\xbb\xbf {\n \"resourceProfiles\": []}",
                Some(Format::Otlp),
            ),
            (b"{\"dictionary\": \"\x7f\"}", Some(Format::Otlp)),
            (b"{\"a\": 1}", None),
            // A sample type; a resource; a string table; only a dictionary.
            (b"\x0a\x04\x08\x01\x10\x02", Some(Format::Pprof)),
            (b"\x0a\x04\x12\x02\x12\x00", Some(Format::Otlp)),
            (b"\x0a\x00\x32\x00", Some(Format::Pprof)),
            (b"\x12\x02\x2a\x00", Some(Format::Otlp)),
            // A resource that breaks off.
            (b"\x0a\xff\x7f\x12\x02", Some(Format::Otlp)),
        ];
        for (bytes, format) in tables {
            assert_eq!(of(bytes), format, "{bytes:?}");
        }
    }
}
