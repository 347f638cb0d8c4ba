//! The header of a core file, and its segments: the parts of the address space and where they are in the file.

use super::input::Input;
use super::processor::{MACHINE, NAME};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, sort_by_key};
use profile_core::message;
use profile_runtime::memory::{at, half_at};
use std::ops::Range;

const HEADER: usize = 64;
/// The type of core files.
const CORE: u16 = 4;
const SEGMENT: usize = 56;
const LOAD: u32 = 1;
const NOTE: u32 = 4;
/// If there are more segments than a field of 16 bits can express, it has this value, and the number is in the first
/// section header (`PN_XNUM`).
const MANY: u64 = 0xffff;
/// Twice as many as Linux permits by default on any distribution (`vm.max_map_count`).
const MOST_SEGMENTS: u64 = 1 << 21;
/// The number of segments that are read at once.
const AT_ONCE: usize = 256;

/// A part of the address space.
#[derive(Debug, Clone)]
pub struct Segment {
    pub addresses: Range<u64>,
    /// Where it is in the file, and how much of it.
    offset: u64,
    size: u64,
}

/// The parts of the address space, in the order of their addresses.
#[derive(Debug, Default)]
pub struct Segments(Vec<Segment>);

impl Segments {
    /// The segments, and the ranges of notes in the file.
    pub fn read(input: &Input) -> Result<(Segments, Vec<Range<u64>>)> {
        let header = header(input)?;
        let table = at(&header, 32);
        let count = match at(&header, 56) & 0xffff {
            MANY => match input.array::<HEADER>(at(&header, 40)) {
                Some(section) => u64::from(half_at(&section, 44)),
                None => return Err(input.cut_off(at(&header, 40), "the section headers")),
            },
            count => count,
        };
        if count > MOST_SEGMENTS {
            return Err(input.damaged(56, &message!("It cannot have {count} segments.")));
        }
        let size = count * SEGMENT as u64;
        if !input.has(table, size) {
            return Err(input.cut_off(table, "the program headers"));
        }
        let (mut segments, mut notes) = (Vec::new(), Vec::new());
        let mut bytes = [0; SEGMENT * AT_ONCE];
        let mut from = 0;
        while from < size {
            let part = (size - from).min(bytes.len() as u64) as usize;
            let bytes = bytes.get_mut(..part).unwrap_or_default();
            if !input.read(table + from, bytes) {
                return Err(input.damaged(table + from, "The program headers cannot be read."));
            }
            for (number, header) in bytes.chunks_exact(SEGMENT).enumerate() {
                let (offset, address) = (at(header, 8), at(header, 16));
                let (in_file, in_memory) = (at(header, 32), at(header, 40));
                let end = (offset.checked_add(in_file), address.checked_add(in_memory));
                let (Some(end_in_file), Some(end)) = end else {
                    let at = table + from + (number * SEGMENT) as u64;
                    return Err(input.damaged(at, "The segment has no valid range of addresses."));
                };
                match half_at(header, 0) {
                    LOAD if in_memory > 0 => segments.try_push(Segment {
                        addresses: address..end,
                        offset,
                        size: in_file.min(in_memory),
                    })?,
                    NOTE => notes.try_push(offset..end_in_file)?,
                    _ => {}
                }
            }
            from += part as u64;
        }
        sort_by_key(&mut segments, |segment| segment.addresses.start)?;
        Ok((Segments(segments), notes))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }

    /// Where the memory at an address is in the file, and how much of it until the end of the segment; `None` if the
    /// file does not contain it.
    pub fn at(&self, address: u64) -> Option<(u64, u64)> {
        let after = self
            .0
            .partition_point(|segment| segment.addresses.start <= address);
        let segment = self.0.get(after.checked_sub(1)?)?;
        let inside = address.checked_sub(segment.addresses.start)?;
        (inside < segment.size).then(|| (segment.offset + inside, segment.size - inside))
    }

    /// The size of the file, if all segments are in it.
    pub fn end_in_file(&self) -> u64 {
        let ends = self.iter().map(|segment| segment.offset + segment.size);
        ends.max().unwrap_or(0)
    }
}

/// The header, if it is that of a core file of a supported machine.
fn header(input: &Input) -> Result<[u8; HEADER]> {
    if input.size() == 0 {
        return Err(input.foreign("it is empty", ""));
    }
    let mut start = [0; 8];
    let length = input.size().min(8) as usize;
    input.read(0, start.get_mut(..length).unwrap_or_default());
    if let Some((_, program, remedy)) = COMPRESSED.iter().find(|kind| start.starts_with(kind.0)) {
        return Err(input.foreign(&message!("it is compressed with {program}"), remedy));
    }
    if !start.starts_with(b"\x7fELF") {
        return Err(input.foreign("it does not start with an ELF header", ""));
    }
    let Some(header) = input.array::<HEADER>(0) else {
        return Err(input.cut_off(0, "parts of the header"));
    };
    let half = |offset: usize| at(&header, offset) as u16;
    // 64 bits, little-endian.
    let is_this = header.get(4..6) == Some(&[2, 1]);
    if is_this && half(16) != CORE {
        return Err(input.foreign("it is a program or a library", ""));
    }
    if !is_this || half(18) != MACHINE {
        return Err(Error::Unsupported(message!(
            "`{}` is of another kind of machine: only core files of {NAME} can be read.",
            input.shown
        )));
    }
    if half(54) != SEGMENT as u16 {
        return Err(input.damaged(54, "The program headers have a wrong size."));
    }
    Ok(header)
}

/// The first bytes of compressed files, the name of the program, and how to decompress them. `systemd-coredump`
/// compresses core files.
const COMPRESSED: [(&[u8], &str, &str); 5] = [
    (
        b"\x28\xb5\x2f\xfd",
        "zstd",
        "Decompress it with `zstd -d FILE`, or write it with `coredumpctl dump -o core PID`.",
    ),
    (
        b"\x04\x22\x4d\x18",
        "lz4",
        "Decompress it with `lz4 -d FILE`, or write it with `coredumpctl dump -o core PID`.",
    ),
    (
        b"\xfd7zXZ\0",
        "xz",
        "Decompress it with `xz -d FILE`, or write it with `coredumpctl dump -o core PID`.",
    ),
    (b"\x1f\x8b", "gzip", "Decompress it with `gzip -d FILE`."),
    (b"BZh", "bzip2", "Decompress it with `bzip2 -d FILE`."),
];
