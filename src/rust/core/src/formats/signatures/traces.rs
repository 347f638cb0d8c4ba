//! Recognises binary files of other profilers and tracers, which need more than a constant start.

use crate::formats::bytes::is_text;
use crate::protobuf::decode::Message;
use memchr::memmem;

/// The marshalled dictionary of Python's `pstats`: its first key is a tuple of a file, a line and a name, both as types
/// of marshal, with the bit of a reference or without it. Python 2 writes longer tuples.
pub fn is_cprofile(start: &[u8]) -> bool {
    matches!(
        start,
        [b'{' | 0xfb, b')' | 0xa9, 3, ..] | [b'{', b'(', 3, 0, 0, 0, ..]
    )
}

/// `TACH` and a version as numbers of 32 bits, in the byte order of the computer.
pub fn is_tachyon(start: &[u8]) -> bool {
    matches!(
        start,
        [b'H', b'C', b'A', b'T', 1..=255, 0, 0, 0, ..]
            | [b'T', b'A', b'C', b'H', 0, 0, 0, 1..=255, ..]
    )
}

/// The header of memray, as it is written first, or in the first block of an lz4 frame.
pub fn is_memray(start: &[u8]) -> bool {
    const HEADER: &[u8] = b"memray\0";
    const FRAME: &[u8] = b"\x04\x22\x4d\x18";
    /// The frame and its first block have headers of varying size.
    const LONGEST_HEADERS: usize = 32;
    let first = &start[..start.len().min(LONGEST_HEADERS)];
    start.starts_with(HEADER) || first.starts_with(FRAME) && memmem::find(first, HEADER).is_some()
}

/// `go 1.22 trace` and NUL.
pub fn is_go(start: &[u8]) -> bool {
    let header = start.get(..16).unwrap_or_default();
    header.starts_with(b"go 1.") && memmem::find(header, b" trace\0").is_some()
}

/// `MMPD` and a version as a number of 32 bits.
pub fn is_rustc(start: &[u8]) -> bool {
    matches!(start, [b'M', b'M', b'P', b'D', 1..=255, _, 0, 0, ..])
}

/// Protocol buffers of Perfetto: packets, all in field 1. Both pprof and OpenTelemetry start with field 1 as well, but
/// its messages have no fields beyond 3. Each writer of packets has an id, field 10, and most packets have a time,
/// field 8.
pub fn is_perfetto(start: &[u8]) -> bool {
    const PACKETS: usize = 32;
    const TIME: u32 = 8;
    const WRITER: u32 = 10;
    if start.first() != Some(&0x0a) || is_text(&start[..start.len().min(256)]) {
        return false;
    }
    let mut trace = Message::new(start);
    let mut is_found = false;
    for _ in 0..PACKETS {
        // The last packet may be truncated.
        let Ok(Some(field)) = trace.field() else {
            break;
        };
        let (1, Ok(mut packet)) = (field.number, field.message()) else {
            return false;
        };
        loop {
            match packet.field() {
                Ok(Some(field)) => is_found |= matches!(field.number, TIME | WRITER),
                Ok(None) => break,
                Err(_) => return false,
            }
        }
    }
    is_found
}
